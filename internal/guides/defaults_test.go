package guides

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// rowPattern is a row of a table of defaults: name, value, meaning.
var rowPattern = regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| ([^ |]+) \\| [^|]+ \\|$")

// The tables of docs/protocol.md are what the machines decide with, all of it.
func TestDefaultsAreWhatTheProtocolSays(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Defaults\n")
	section, _, _ = strings.Cut(section, "\n## ")
	ofSubmitter, ofSite, both := strings.Cut(section, "\nOf a site:\n")
	if !found || !both {
		t.Fatal("docs/protocol.md has no tables of defaults")
	}
	const self = grid.SiteID("self")
	for _, c := range []struct {
		name, table string
		config      any
		without     []string // what is no number of the protocol
	}{
		{
			"submitter", ofSubmitter, broker.Default(self),
			[]string{"Owner", "Here", "Domain", "Capability"},
		},
		{
			"site", ofSite, site.Default(self, grid.Capability{}),
			[]string{"Self", "Domain", "Capability", "Prior"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := make(map[string]string)
			for _, row := range rowPattern.FindAllStringSubmatch(c.table, -1) {
				said[row[1]] = row[2]
			}
			set := fieldsOf("", reflect.ValueOf(c.config))
			for _, name := range c.without {
				maps.DeleteFunc(set, func(field, _ string) bool {
					return field == name || strings.HasPrefix(field, name+".")
				})
			}
			if diff := cmp.Diff(set, said); diff != "" {
				t.Errorf("the code and docs/protocol.md differ (-code +document):\n%s", diff)
			}
		})
	}
}

// fieldsOf gives the fields that are set, by their names, as a document writes them.
func fieldsOf(prefix string, v reflect.Value) map[string]string {
	fields := make(map[string]string)
	for i := range v.NumField() {
		name, field := prefix+v.Type().Field(i).Name, v.Field(i)
		d, isTime := reflect.TypeAssert[time.Duration](field)
		switch {
		case field.IsZero():
		case isTime:
			fields[name] = shortTime(d)
		case field.Kind() == reflect.Struct:
			maps.Copy(fields, fieldsOf(name+".", field))
		default:
			fields[name] = fmt.Sprint(field.Interface())
		}
	}
	return fields
}

// shortTime leaves out what is nought: 1m0s is 1m.
func shortTime(d time.Duration) string {
	text := d.String()
	for _, nought := range []string{"m0s", "h0m"} {
		if short, is := strings.CutSuffix(text, nought); is {
			text = short + nought[:1]
		}
	}
	return text
}
