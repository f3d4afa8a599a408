package site

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

var updateStories = flag.Bool("update", false, "write testdata/stories anew")

// story tells of one site. What the site does then, input by input, stands in
// testdata/stories under the story's name, for people to read: all messages, timers, facts and
// reports, in their order, and what the site shows of itself in the end.
type story struct {
	name   string
	change func(*Config) // nil: only quiet
	happen func(r *rig)
}

func TestStories(t *testing.T) {
	names := make(map[string]bool)
	for _, s := range append(storiesOfJobs(), storiesOfSites()...) {
		if names[s.name] {
			t.Fatalf("two stories of %s", s.name)
		}
		names[s.name] = true
		t.Run(s.name, func(t *testing.T) { s.compare(t) })
	}
}

func (s story) compare(t *testing.T) {
	t.Helper()
	file := filepath.Join("testdata", "stories", s.name+".txt")
	now := s.write(t)
	if *updateStories {
		if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	before, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(before), "\n"), strings.Split(now, "\n")); diff != "" {
		t.Errorf("the site does something else than before (-before +now);"+
			" if that is right: go test ./pkg/site -run TestStories -update\n%s", diff)
	}
}

// write lets the story happen and writes it down.
func (s story) write(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	// Seldom asked for leases a site is quiet, and what it does is short to read.
	quiet := func(c *Config) { c.RenewRetry = 10 * time.Minute }
	r := unbooted(t, quiet, func(c *Config) {
		if s.change != nil {
			s.change(c)
		}
	})
	last := r // after a restart it is another one
	r.tell = func(r *rig, in step.Input) {
		last = r
		fmt.Fprintf(&text, "%s %s\n", r.now.Sub(epoch()), written(reflect.ValueOf(in)))
		for _, e := range r.out {
			fmt.Fprintf(&text, "    %s\n", effectOf(e))
		}
	}
	r.step(step.Boot{Incarnation: 1})
	s.happen(r)
	status := last.m.Status()
	for _, a := range status.Attempts {
		fmt.Fprintf(&text, "in the end %s\n", written(reflect.ValueOf(a)))
	}
	status.Attempts = nil
	fmt.Fprintf(&text, "in the end %s\n", written(reflect.ValueOf(status)))
	return text.String()
}

// effectOf is one line. A fact leaves its task out, which other lines show.
func effectOf(e step.Effect) string {
	persist, is := e.(step.Persist)
	if !is {
		return written(reflect.ValueOf(e))
	}
	f := persist.Fact
	var value map[string]any
	if json.Unmarshal(f.Value, &value) != nil {
		return fmt.Sprintf("Persist{no %s %s}", f.Kind, f.Key)
	}
	delete(value, "task")
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("Persist{%s %s %s}", f.Kind, f.Key, text)
}

// written is a value in one line: of a struct only what is not zero, times from when the story
// begins.
func written(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Time:
		return x.Sub(epoch()).String()
	case step.Level:
		return [...]string{"debug", "info", "warn"}[x]
	case grid.Token:
		return fmt.Sprint(uint64(x))
	case fmt.Stringer:
		return x.String()
	case string:
		return fmt.Sprintf("%q", x)
	case float64: // the last digits are the processor's
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return written(v.Elem())
	case reflect.Struct:
		var fields []string
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				fields = append(fields, v.Type().Field(i).Name+": "+written(f))
			}
		}
		return v.Type().Name() + "{" + strings.Join(fields, ", ") + "}"
	case reflect.Slice:
		var items []string
		for i := range v.Len() {
			items = append(items, written(v.Index(i)))
		}
		return "[" + strings.Join(items, " ") + "]"
	default:
		return fmt.Sprint(v.Interface())
	}
}
