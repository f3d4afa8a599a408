package config

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// edits are changes to a text: what is set, or, with a value of "-", taken out.
func edited(t *testing.T, before string, changes ...Value) (string, error) {
	t.Helper()
	text := []byte(before)
	for _, v := range changes {
		var err error
		if v.Text == "-" {
			text, err = Remove(text, []string{v.Name})
		} else {
			text, err = Edit(text, []Value{v})
		}
		if err != nil {
			return "", err
		}
	}
	return string(text), nil
}

func TestEditKeepsWhatItIsNotAbout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, want string
		changes      []Value
	}{
		"in its place": {
			"# my site\nname: attic # upstairs\ndomain: 'home'   # ours\n\npeers: [a, \"b\"] # two\n",
			"# my site\nname: attic # upstairs\ndomain: lab   # ours\n\npeers: \"a,c\" # two\n",
			[]Value{{"domain", "lab"}, {"peers", "a,c"}},
		},
		"nested": {
			"ceilings:\n  # not more\n  cpus: 2\n\n  memory: 1GiB # half\n",
			"ceilings:\n  # not more\n  cpus: 1.5\n\n  memory: 2GiB # half\n",
			[]Value{{"ceilings.cpus", "1.5"}, {"ceilings.memory", "2GiB"}},
		},
		"braces": {
			"ceilings: {cpus: 2, memory: \"1GiB\"} # x\n", "ceilings: {cpus: 3, memory: 512MiB} # x\n",
			[]Value{{"ceilings.cpus", "3"}, {"ceilings.memory", "512MiB"}},
		},
		"a list over lines": {
			"peers:\n  - a\n  - b # last\nname: x\n", "peers:\n  c # last\nname: x\n",
			[]Value{{"peers", "c"}},
		},
		"no value": {
			"name:\ndomain: home\n", "name: x\ndomain: home\n", []Value{{"name", "x"}},
		},
		"a comment's place": {
			"# what\n#owner.hours: \"\"\nname: x", "# what\nowner.hours: \"mon 1-2, x\"\nname: x",
			[]Value{{"owner.hours", "mon 1-2, x"}},
		},
		"new": {"name: x", "name: x\ndomain: lab\n", []Value{{"domain", "lab"}}},
		"nothing there": {
			"# only a comment\n", "# only a comment\nname: x\n", []Value{{"name", "x"}},
		},
		"advanced": {
			"name: x\n", "name: x\nadvanced:\n  dht: true\n", []Value{{"dht", "true"}},
		},
		"more advanced": {
			"advanced:\n    dht: true # y\nname: x\n",
			"advanced:\n    nat.punch: true\n    dht: true # y\nname: x\n",
			[]Value{{"nat.punch", "true"}},
		},
		"advanced in braces": {
			"advanced: {dht: true}\n", "nat.punch: true\nadvanced: {dht: true}\n",
			[]Value{{"nat.punch", "true"}},
		},
		"old style stays": {
			"lease:\n  length: 3s\n", "lease:\n  length: 5s\n", []Value{{"lease.length", "5s"}},
		},
		"text that is nothing": {
			"name: x\n", "name: \"null\"\n", []Value{{"name", "null"}},
		},
		"out": {
			"# my site\nname: x # why\ndomain: lab\n", "# my site\ndomain: lab\n", []Value{{"name", "-"}},
		},
		"out of braces": {
			"ceilings: {cpus: 2, memory: 1GiB, disk: 1GiB}\n", "ceilings: {memory: 1GiB}\n",
			[]Value{{"ceilings.cpus", "-"}, {"ceilings.disk", "-"}},
		},
		"out, the last": {
			"advanced:\n  lease:\n    length: 3s\n  nat: {punch: false}\nname: x\n", "name: x\n",
			[]Value{{"lease.length", "-"}, {"nat.punch", "-"}},
		},
		"out, a list":    {"peers:\n  - a\n  - b\nname: x\n", "name: x\n", []Value{{"peers", "-"}}},
		"out, not there": {"name: x\n", "name: x\n", []Value{{"domain", "-"}}},
	} {
		got, err := edited(t, c.before, c.changes...)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestEditRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[1]", "a: [", "name: |\n  x\n  y\n", "name: &a x\n", "name: x\nname: y\n", "a: {b: 1}\na.b: 2\n",
	} {
		if got, err := Edit([]byte(text), []Value{{"name", "y"}}); err == nil {
			t.Errorf("Edit(%q) = %q, want an error", text, got)
		} else if !errors.Is(err, errNoFile) {
			t.Errorf("Edit(%q) = %v, want %v", text, err, errNoFile)
		}
	}
}

// What Edit writes into any file says what was said before and what was set, however
// the file is written, and no comment is lost.
func TestEditedFilesSayWhatIsMeant(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile("testdata/written-by-0.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hand := "# by hand\nname: attic # up\nceilings: {cpus: 2} # two\n\n# the router\nnat:\n  relay: " +
		"serve\nadvanced:\n  dht: true # ask\n"
	texts := []string{
		"", hand, string(old), string(NewFile(nil)),
		string(NewFile([]Value{{"name", "x"}, {"dht", "true"}})),
	}
	var names []string
	for _, s := range agentSettings() {
		names = append(names, s.Name)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.SampledFrom(texts).Draw(t, "text"))
		before := remarks(text)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			want, err := Says(text)
			if err != nil {
				t.Fatal(err)
			}
			name := rapid.SampledFrom(names).Draw(t, "name")
			if rapid.Bool().Draw(t, "unset") {
				text, err = Remove(text, []string{name})
				delete(want, name)
			} else {
				want[name] = rapid.StringMatching(`[ -~äß]{0,20}`).Draw(t, "value")
				text, err = Edit(text, []Value{{name, want[name]}})
			}
			if err != nil {
				t.Fatal(err)
			}
			if have, err := Says(text); err != nil || !maps.Equal(want, have) {
				t.Fatalf("%v: the file says %v, want %v:\n%s", err, have, want, text)
			}
		}
		if got := remarks(text); got != before {
			t.Fatalf("%d lines of comment are left, want %d:\n%s", got, before, text)
		}
	})
}

// remarks counts the lines that are nothing but a comment for people.
func remarks(text []byte) (n int) {
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "# ") {
			n++
		}
	}
	return n
}

func FuzzEdit(f *testing.F) {
	f.Add("name: a\nceilings: {memory: 1GiB}\n", "ceilings.cpus", "2")
	f.Add("a: &x [1]\nb: *x\n", "name", "#")
	f.Add("peers:\n- a\n- b\n", "peers", "\"")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		want, err := Says([]byte(text))
		if err != nil {
			return
		}
		if after, err := Edit([]byte(text), []Value{{name, value}}); err == nil {
			want[name] = value
			if have, err := Says(after); err != nil || !maps.Equal(want, have) {
				t.Errorf("set %q in %q: %v", name, text, err)
			}
		}
		if after, err := Remove([]byte(text), []string{name}); err == nil {
			delete(want, name)
			if have, err := Says(after); err != nil || !maps.Equal(want, have) {
				t.Errorf("take %q out of %q: %v", name, text, err)
			}
		}
	})
}
