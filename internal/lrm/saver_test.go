package lrm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a runner saves in its program's place is found as what a program saves; one that could not
// be written leaves the one before.
func TestARunnerSaves(t *testing.T) {
	a := savingAttempt(t)
	if err := PrepareDir(a); err != nil {
		t.Fatal(err)
	}
	outside, inside := a.StateDir(), StateDirIn(a.WorkDir())
	if inside.Asked() != nil {
		t.Error("a wish that nobody has")
	}
	if err := outside.Ask(true); err != nil {
		t.Fatal(err)
	}
	wish := inside.Asked()
	if wish == nil || !SameState(wish, inside.Asked()) {
		t.Errorf("the wish: %v", wish)
	}
	put := func(text string, percent uint8) error {
		return inside.Put(percent, func(f *os.File) error {
			_, err := f.WriteString(text)
			return err
		})
	}
	before := outside.Look()
	if err := put("eight", 80); err != nil {
		t.Fatal(err)
	}
	if SameState(outside.Look(), before) || outside.Percent() != 80 {
		t.Errorf("it is not seen, %d %%", outside.Percent())
	}
	full := errors.New("full")
	before = outside.Look()
	if err := inside.Put(90, func(*os.File) error { return full }); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	if !SameState(outside.Look(), before) || outside.Percent() != 80 {
		t.Error("one that could not be written is seen")
	}
	if err := put("nine", 0); err != nil || outside.Percent() != 80 {
		t.Errorf("one that says no percent: %v, %d %%", err, outside.Percent())
	}
	left, err := os.ReadDir(filepath.Join(a.WorkDir(), SaveName()))
	if err != nil || len(left) != 3 {
		t.Errorf("there are %v, %v", left, err)
	}
	for range 2 {
		if err := inside.Drop(); err != nil || outside.Look() != nil {
			t.Errorf("dropped: %v", err)
		}
	}
	gone := StateDirIn(filepath.Join(a.Dir, "gone"))
	if gone.Put(0, func(*os.File) error { return nil }) == nil || gone.Asked() != nil ||
		gone.Explain("x") == nil || gone.Problem() != "" || gone.Drop() == nil {
		t.Error("a directory that is not there is used")
	}
}

// Why no state is saved is one short line, whatever stands there; it ends with the next wish and
// with the next state.
func TestWhyNoStateIsSaved(t *testing.T) {
	a := savingAttempt(t)
	if err := PrepareDir(a); err != nil {
		t.Fatal(err)
	}
	d := a.StateDir()
	for text, want := range map[string]string{
		"": "", " a file\nis\x1b open \n": "a file is  open", "\xff": "?",
		strings.Repeat("x", maxExitText+1): strings.Repeat("x", maxExitText-3) + "...",
	} {
		if err := d.Explain(text); err != nil || d.Problem() != want {
			t.Errorf("%.20q: %.20q, %v, want %.20q", text, d.Problem(), err, want)
		}
	}
	if err := d.Ask(true); err != nil || d.Problem() != "" {
		t.Errorf("with the next wish: %v, %q", err, d.Problem())
	}
	if err := d.Explain("x"); err != nil {
		t.Fatal(err)
	}
	if err := d.Put(1, func(*os.File) error { return nil }); err != nil || d.Problem() != "" {
		t.Errorf("with the next state: %v, %q", err, d.Problem())
	}
	path := filepath.Join(a.WorkDir(), SaveName(), "problem")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := d.Problem(); got != "" {
		t.Errorf("a directory says %q", got)
	}
}
