package lrm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func savingAttempt(t *testing.T) Attempt {
	t.Helper()
	a := Attempt{Dir: t.TempDir(), Task: grid.Task{Kind: grid.KindWasm}}
	a.StatePath = filepath.Join(a.Dir, "state-7")
	if err := os.WriteFile(a.StatePath, []byte("seven"), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// A program finds the state that it goes on from, and what it renames over it is seen as another
// one. A reader of the first goes on to read that.
func TestAStateIsReplaced(t *testing.T) {
	a := savingAttempt(t)
	if err := PrepareDir(a); err != nil {
		t.Fatal(err)
	}
	d := a.StateDir()
	first := d.Look()
	if first == nil || first.Size() != 5 || !SameState(first, d.Look()) || SameState(first, nil) {
		t.Fatalf("the state that was laid out: %+v", first)
	}
	f, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := filepath.Join(a.WorkDir(), "ckpt")
	if err := os.WriteFile(filepath.Join(dir, "next"), []byte("eight"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	if SameState(first, d.Look()) {
		t.Error("another state of the same size is taken for the same")
	}
	text := make([]byte, 9)
	if n, err := f.Read(text); err != nil || string(text[:n]) != "seven" {
		t.Errorf("read %q, %v", text[:n], err)
	}
}

func TestAProgramIsAsked(t *testing.T) {
	a := savingAttempt(t)
	if err := PrepareDir(a); err != nil {
		t.Fatal(err)
	}
	d, wanted := a.StateDir(), filepath.Join(a.WorkDir(), "ckpt", "wanted")
	for _, on := range []bool{true, true, false, false, true} {
		if err := d.Ask(on); err != nil {
			t.Fatalf("asked %t: %v", on, err)
		}
		if _, err := os.Stat(wanted); (err == nil) != on {
			t.Errorf("asked %t: %v", on, err)
		}
	}
}

// What the program says of its progress is a number, or nothing.
func TestPercent(t *testing.T) {
	a := savingAttempt(t)
	if err := PrepareDir(a); err != nil {
		t.Fatal(err)
	}
	d := a.StateDir()
	if got := d.Percent(); got != 0 {
		t.Errorf("nothing reads %d", got)
	}
	for text, want := range map[string]uint8{
		"41": 41, "41\n": 41, "100 %\n": 100, "1%": 1, "0": 0, "101": 0, "-1": 0, "": 0, "forty": 0,
		"41 of 100": 0, "1e1": 0,
	} {
		file := filepath.Join(a.WorkDir(), "ckpt", "percent")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := d.Percent(); got != want {
			t.Errorf("%q reads %d, want %d", text, got, want)
		}
	}
}

// A program that puts something else in the state's place leads nobody out of its sandbox.
func TestAStateThatIsNone(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(dir string) error{
		"nothing": func(string) error { return nil },
		"a link": func(dir string) error {
			return os.Symlink(outside, filepath.Join(dir, "state"))
		},
		"a directory": func(dir string) error {
			return os.Mkdir(filepath.Join(dir, "state"), 0o700)
		},
		"no directory":  os.Remove,
		"a linked home": func(dir string) error { return os.Rename(dir, dir+"2") },
	} {
		a := Attempt{Dir: t.TempDir(), Task: grid.Task{Kind: grid.KindCommand}}
		if err := PrepareDir(a); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(a.WorkDir(), "ckpt")
		if err := put(dir); err != nil {
			t.Fatal(err)
		}
		if name == "a linked home" {
			if err := os.Symlink(filepath.Dir(outside), dir); err != nil {
				t.Fatal(err)
			}
		}
		d := a.StateDir()
		if info := d.Look(); info != nil {
			t.Errorf("%s: looks like %+v", name, info)
		}
		if f, err := d.Open(); err == nil {
			f.Close()
			t.Errorf("%s: is opened", name)
		}
		_ = d.Ask(true) // it may fail: nobody is asked then
		if _, err := os.Stat(filepath.Join(filepath.Dir(outside), "wanted")); err == nil {
			t.Errorf("%s: a file was made outside", name)
		}
	}
}

func TestWhoCanSave(t *testing.T) {
	in := func(p string) grid.Task {
		return grid.Task{Kind: grid.KindWasm, Inputs: []grid.Input{{Path: p}}}
	}
	out := grid.Task{Kind: grid.KindWasm, Outputs: []grid.Output{{Path: "/ckpt/x"}}}
	off := grid.Task{Kind: grid.KindWasm}
	off.Checkpoint.Off = true
	for _, c := range []struct {
		task grid.Task
		want bool
	}{
		{grid.Task{Kind: grid.KindWasm}, true},
		{grid.Task{Kind: grid.KindCommand}, true},
		{grid.Task{Kind: grid.KindReservation}, false},
		{off, false},
		{in("/ckpt"), false},
		{in("/ckpt/x"), false},
		{in("/ckpts"), true},
		{out, false},
	} {
		vars := Attempt{Task: c.task}.Variables()
		if got := CanSave(c.task); got != c.want || (len(vars) > 0) != c.want {
			t.Errorf("%+v: %t, variables %v", c.task, got, vars)
		}
	}
	whole := grid.Task{Kind: grid.KindCommand, Checkpoint: grid.Saving{Whole: true}}
	if vars := (Attempt{Task: whole}).Variables(); !CanSave(whole) || len(vars) > 0 {
		t.Errorf("saved whole: variables %v", vars)
	}
}
