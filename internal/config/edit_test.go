package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestEditKeepsWhatItIsNotAbout(t *testing.T) {
	before := `# my site
name: attic # upstairs
domain: home
ceilings:
  # not more
  cpus: 2
peers: [12D3KooWa, 12D3KooWb]
`
	after, err := Edit([]byte(before), []Value{
		{"domain", "lab"}, {"peers", "12D3KooWa,12D3KooWc"}, {"domain-key", "ed25519:x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `# my site
name: attic # upstairs
domain: "lab"
ceilings:
  # not more
  cpus: 2
peers: "12D3KooWa,12D3KooWc"
domain-key: "ed25519:x"
`
	if diff := cmp.Diff(want, string(after)); diff != "" {
		t.Errorf("Edit (-want +got):\n%s", diff)
	}
	for text, ok := range map[string]bool{"": true, "# only a comment\n": true, "[1]": false, "a: [": false} {
		if _, err := Edit([]byte(text), []Value{{"domain", "lab"}}); (err == nil) != ok || !ok && !errors.Is(err, ErrNoFile) {
			t.Errorf("Edit(%q) = %v", text, err)
		}
	}
}

// What Edit writes into the file that init writes is what LoadAgent reads.
func TestEditedFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	c := Default(PresetTest, func(string) (string, bool) { return "", false })
	c.StateDir, c.API.Socket = filepath.Join(dir, "state"), filepath.Join(dir, "s")
	rapid.Check(t, func(t *rapid.T) {
		domain := rapid.StringMatching(`[a-z]([a-z0-9-]{0,20}[a-z0-9])?`).Draw(t, "domain")
		key := string(grid.NewDomainKey(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key")))
		edited, err := Edit(c.File(), []Value{{"domain", domain}, {"domain-key", key}})
		if err != nil {
			t.Fatal(err)
		}
		values, err := fromYAML("f", edited)
		if err != nil {
			t.Fatal(err)
		}
		got := c
		if err := apply(&got, agentSettings(), values); err != nil {
			t.Fatal(err)
		}
		want := c
		want.Domain, want.DomainKey = grid.DomainID(domain), grid.DomainKey(key)
		if got.String() != want.String() || strings.Count(string(edited), "#") != strings.Count(string(c.File()), "#") {
			t.Fatalf("edited file reads as\n%s\nwant\n%s", got, want)
		}
	})
}
