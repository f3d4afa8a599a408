package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// fixed are the settings whose defaults depend on who runs the test, and where.
func fixed(c Agent) Agent {
	c.Name, c.Owner.Yield = "host", true
	return c
}

// Each setting, what it is in each preset, and what is said of it.
func TestAllSettings(t *testing.T) {
	t.Parallel()
	env := environ("HOME", "/home/u", "XDG_RUNTIME_DIR", "/run/u")
	var b strings.Builder
	presets := map[string]Agent{}
	for _, preset := range []string{PresetLAN, PresetWAN, PresetTest} {
		presets[preset] = fixed(Default(preset, env))
	}
	for _, k := range AgentKeys(env) {
		fmt.Fprintf(&b, "%s\n  --%s %s, %s\n  topic: %s; documented: %t, live: %t\n", k.Name, k.Flag,
			k.Env, k.Type, k.Topic, k.Documented, k.Live)
		fmt.Fprintf(&b, "  %s\n", explanation(k.Name))
		for _, preset := range []string{PresetLAN, PresetWAN, PresetTest} {
			c := presets[preset]
			fmt.Fprintf(&b, "  %s: %q\n", preset, c.ValueOf(k.Name))
		}
		if k.WAN != "" {
			fmt.Fprintf(&b, "  with preset wan: %s\n", k.WAN)
		}
	}
	for _, k := range SubmitKeys(env) {
		fmt.Fprintf(&b, "submit %s\n  --%s %s, %s\n  %s\n  %q\n", k.Name, k.Flag, k.Env, k.Type, k.Help,
			k.Default)
	}
	golden(t, "settings.txt", b.String())
}

// A new file, before and after its site is named and something rare is chosen.
func TestANewFile(t *testing.T) {
	t.Parallel()
	text := string(NewFile([]Value{
		{"name", "attic"}, {"owner.yield", "true"}, {"dht", "true"}, {"log.format", "json"},
	}))
	golden(t, "new.yaml", text)
	for _, name := range []string{"", "no.such"} {
		if explanation(name) != "" || defaultOf(name) != "" || (Agent{}).ValueOf(name) != "" {
			t.Errorf("%q is explained", name)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	c := Default(PresetLAN, environ())
	if c.Name != host || c.Owner.Yield != (os.Getuid() != 0) {
		t.Errorf("name %q, yield %t", c.Name, c.Owner.Yield)
	}
}

// A file into which a setting is written equals a new one with it, and taken out again it
// leaves no trace: the file is as it was.
func TestWhatIsChosenAndTakenBack(t *testing.T) {
	t.Parallel()
	before := string(NewFile(nil))
	for _, k := range AgentKeys(os.LookupEnv) {
		with, err := Edit([]byte(before), []Value{{k.Name, "any text"}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(NewFile([]Value{{k.Name, "any text"}})), string(with)); diff != "" {
			t.Errorf("%s is set (-want +got):\n%s", k.Name, diff)
		}
		after, err := Remove(with, []string{k.Name})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, string(after)); diff != "" {
			t.Errorf("%s is set and taken back (-want +got):\n%s", k.Name, diff)
		}
	}
}
