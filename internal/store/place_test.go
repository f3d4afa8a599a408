package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func at(t *testing.T, dir string, options Options) *Store {
	t.Helper()
	s, err := OpenWith(dir, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// copyDir restores a backup: it copies what is there, as new files.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func TestStateBelongsToAMachine(t *testing.T) {
	dir := t.TempDir()
	_ = at(t, dir, Options{Machine: "one"}).Close()
	s := at(t, dir, Options{Machine: "one"})
	if s.Restored() {
		t.Error("the same machine takes it for restored")
	}
	_ = s.Close()
	if _, err := OpenWith(dir, Options{Machine: "two"}, nil); !errors.Is(err, ErrElsewhere) {
		t.Fatalf("another machine: %v, want ErrElsewhere", err)
	}
	if err := Adopt(dir, "two"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also when the first start came to nothing
		if s = at(t, dir, Options{Machine: "two"}); !s.Restored() {
			t.Fatal("an adopted state is not taken for restored")
		}
		_ = s.Close()
	}
	s = at(t, dir, Options{Machine: "two"})
	if err := s.Trust(); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if s = at(t, dir, Options{Machine: "two"}); s.Restored() {
		t.Error("taken for restored although that was taken up")
	}
	_ = s.Close()
	if _, err := OpenWith(dir, Options{Machine: "one"}, nil); !errors.Is(err, ErrElsewhere) {
		t.Errorf("the machine that it was moved away from: %v, want ErrElsewhere", err)
	}
}

// A system without a name for the machine binds nothing, and takes nothing off.
func TestStateOfANamelessMachine(t *testing.T) {
	dir := t.TempDir()
	for _, machine := range []string{"", "one", ""} {
		_ = at(t, dir, Options{Machine: machine}).Close()
	}
	if _, err := OpenWith(dir, Options{Machine: "two"}, nil); !errors.Is(err, ErrElsewhere) {
		t.Errorf("%v, want ErrElsewhere", err)
	}
}

func TestARestoredBackupIsNoticed(t *testing.T) {
	for name, restore := range map[string]func(t *testing.T, backup, dir string){
		"the directory, as new files": copyDir,
		"the facts alone": func(t *testing.T, backup, dir string) {
			text, err := os.ReadFile(filepath.Join(backup, factsFile))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, factsFile), text, fileMode)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, backup := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "backup")
			_ = at(t, dir, Options{}).Close()
			if f, err := os.Open(filepath.Join(dir, placeFile)); err != nil || identityOf(f) == nil {
				t.Skip("this system does not tell a file from its copy")
			}
			copyDir(t, dir, backup)
			_ = at(t, dir, Options{}).Close()
			restore(t, backup, dir)
			if !at(t, dir, Options{}).Restored() {
				t.Error("not noticed")
			}
		})
	}
}

func TestIncarnationsFollowTheClock(t *testing.T) {
	wall := epoch().Add(1000 * time.Second)
	for _, c := range []struct {
		last uint64
		wall time.Time
		want uint64
	}{
		{0, time.Time{}, 1},
		{5, wall, 1000},
		{1000, wall, 1001}, // twice within a second, or the clock was set back
		{5, epoch().Add(-time.Hour), 6},
		{5, epoch().AddDate(5000, 0, 0), 6}, // no clock is that right
	} {
		if got := next(c.last, c.wall); got != c.want {
			t.Errorf("after %d at %s: %d, want %d", c.last, c.wall, got, c.want)
		}
	}
}

func TestAdoptWantsAState(t *testing.T) {
	if err := Adopt(t.TempDir(), "one"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that it does not exist", err)
	}
	dir := t.TempDir()
	at(t, dir, Options{})
	if err := Adopt(dir, "one"); !errors.Is(err, ErrLocked) {
		t.Errorf("%v, want ErrLocked", err)
	}
}
