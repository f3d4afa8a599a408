package signed_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
)

// full is a template with something in every line.
func full() grid.Spec {
	return grid.Spec{
		Name: "count", Kind: grid.KindCommand, Module: grid.Input{CID: "bafymodule", Bytes: 7},
		Args: []string{"sh", "-c", "wc < \"/in/a b\"\narg \"x\""},
		Env:  []grid.EnvVar{{Name: "LANG", Value: "C"}},
		Inputs: []grid.Input{
			{Path: "/in/a b", CID: "bafyinput", Bytes: 9}, {Path: "/d", CID: "bafydir", Dir: true},
		},
		Outputs: []grid.Output{{Path: "/out/n", To: "n.txt"}},
		Need: grid.Resources{
			MilliCPUs: 1000, MemoryBytes: 1 << 20, DiskBytes: 1 << 21, MFLOPS: 500, NetBps: 8,
		},
		OS: "linux", Arch: "amd64", Runtime: time.Minute, TimeLimit: time.Hour,
		Checkpoint: grid.Saving{Whole: true},
	}
}

// The text of a template never changes: signatures outlive versions.
func TestTheTextOfATemplate(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(filepath.Join("testdata", "template.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got := signed.Template(full(), grid.Signature{Items: 3, Root: strings.Repeat("0f", 32)})
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("signatures of earlier versions fit no more: %s", diff)
	}
}

// covered says of each field of a template whether it changes what is run. A new field has to be
// entered here, and thought about.
func covered() map[string]bool {
	return map[string]bool{
		"Name":        false,
		"Kind":        true,
		"Module":      true,
		"Args":        true,
		"Env":         true,
		"Inputs":      true,
		"Outputs":     true,
		"Need":        true,
		"OS":          true,
		"Arch":        true,
		"Runtime":     false,
		"TimeLimit":   true,
		"Window":      false,
		"Map":         false,
		"Weights":     false,
		"Axes":        false,
		"Unattended":  false,
		"Priority":    false,
		"Project":     false,
		"Reservation": false,
		"Overrun":     false,
		"Checkpoint":  true,
		"Signature":   false,
		"Encrypted":   false, // a job that is signed cannot be
	}
}

// left are the parts of covered fields that do not change what is run.
func left() map[string]bool {
	return map[string]bool{
		"Module.Path":      true,
		"Module.Bytes":     true,
		"Module.Dir":       true,
		"Inputs.Bytes":     true,
		"Outputs.To":       true,
		"Checkpoint.Off":   true,
		"Checkpoint.Every": true,
		"Checkpoint.Rule":  true,
	}
}

// A change of any field that changes what is run changes the text, and no other change does.
func TestWhatChangesTheText(t *testing.T) {
	t.Parallel()
	before := signed.Template(full(), grid.Signature{})
	seen := map[string]bool{}
	spec := reflect.TypeFor[grid.Spec]()
	for i := range spec.NumField() {
		name := spec.Field(i).Name
		changes, known := covered()[name]
		if !known {
			t.Errorf(
				"%s: does it change what is run? Enter it in this test, and in a new version of "+
					"the template if it does",
				name,
			)
		}
		mutate(t, full, i, name, func(path string, s grid.Spec) {
			seen[path] = true
			if got := signed.Template(
				s,
				grid.Signature{},
			) != before; got != (changes && !left()[path]) {
				t.Errorf("a change of %s changes the text: %t", path, got)
			}
		})
	}
	for path := range left() {
		if !seen[path] {
			t.Errorf("%s was not tried", path)
		}
	}
}

// mutate changes one part after the other of a field, by itself.
func mutate(
	t *testing.T, fresh func() grid.Spec, field int, name string, try func(string, grid.Spec),
) {
	t.Helper()
	at := func(s *grid.Spec) reflect.Value { return reflect.ValueOf(s).Elem().Field(field) }
	probe := fresh()
	v := at(&probe)
	parts := func(v reflect.Value) int {
		if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]() {
			return v.NumField()
		}
		return 0
	}
	change := func(s *grid.Spec, within func(reflect.Value) reflect.Value, path string) {
		bump(t, within(at(s)))
		try(path, *s)
	}
	self := func(v reflect.Value) reflect.Value { return v }
	switch {
	case v.Kind() == reflect.Slice:
		s := fresh()
		grown := reflect.Append(at(&s), reflect.New(v.Type().Elem()).Elem())
		at(&s).Set(grown)
		try(name, s)
		if v.Len() == 0 {
			return
		}
		if n := parts(v.Index(0)); n > 0 {
			for i := range n {
				s = fresh()
				change(&s, func(v reflect.Value) reflect.Value { return v.Index(0).Field(i) },
					name+"."+v.Index(0).Type().Field(i).Name)
			}
			return
		}
		s = fresh()
		change(&s, func(v reflect.Value) reflect.Value { return v.Index(0) }, name)
	case parts(v) > 0:
		for i := range parts(v) {
			s := fresh()
			change(&s, func(v reflect.Value) reflect.Value { return v.Field(i) },
				name+"."+v.Type().Field(i).Name)
		}
	default:
		s := fresh()
		change(&s, self, name)
	}
}

// bump gives a value another one.
func bump(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(v.Uint() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Struct:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
	default:
		t.Fatalf("no way to change a %s", v.Kind())
	}
}

// Two templates that differ in their texts never give the same text, however the words are cut.
func TestNoTwoTemplatesShareAText(t *testing.T) {
	t.Parallel()
	words := rapid.SliceOfN(rapid.SampledFrom([]string{
		"",
		"a",
		"\n",
		"\"",
		"arg",
		"\narg \"a\"",
		"env",
		" ",
		"\\n",
		"\x00",
		"é",
		"\"\nitems 0 \"\"",
	}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		spec := func(name string) grid.Spec {
			s := grid.Spec{Kind: grid.KindCommand, Args: words.Draw(t, name+" args")}
			for _, w := range words.Draw(t, name+" env") {
				s.Env = append(s.Env, grid.EnvVar{Name: w, Value: "v" + w})
			}
			for _, w := range words.Draw(t, name+" inputs") {
				s.Inputs = append(s.Inputs, grid.Input{Path: w, CID: grid.CID(w)})
			}
			return s
		}
		a, b := spec("one"), spec("other")
		same := cmp.Equal(a.Args, b.Args, noNil()) && cmp.Equal(a.Env, b.Env) &&
			cmp.Equal(a.Inputs, b.Inputs)
		if got := signed.Template(
			a,
			grid.Signature{},
		) == signed.Template(
			b,
			grid.Signature{},
		); got != same {
			t.Fatalf("the same text: %t\n%+v\n%+v", got, a, b)
		}
	})
}

// noNil takes no list and an empty one for the same.
func noNil() cmp.Option {
	return cmp.Transformer("words", func(list []string) [4]string {
		var out [4]string
		copy(out[:], list)
		if len(list) < len(out) {
			out[len(list)] = "the end"
		}
		return out
	})
}
