package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// newSpares are spares, and the directory beside which attempts have theirs.
func newSpares(t *testing.T) (s *spares, base string) {
	t.Helper()
	base = t.TempDir()
	s = &spares{dir: filepath.Join(base, "spare")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return s, base
}

// A directory that an attempt has left is the next one's, and nothing of the one before is in it.
func TestDirectoriesAreUsedAgain(t *testing.T) {
	t.Parallel()
	s, base := newSpares(t)
	first, next := filepath.Join(base, "first"), filepath.Join(base, "next")
	if err := s.take(first); err != nil {
		t.Fatal(err)
	}
	made, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(first, "work", "closed", "deep")
	if err = os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"in-0": "input", "stdout": "printed", lrm.LogName: "", "work/closed/deep/file": "written",
	} {
		if err = os.WriteFile(filepath.Join(first, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err = os.Symlink(base, filepath.Join(first, "link")); err != nil {
		t.Fatal(err)
	}
	if err = os.Chmod(filepath.Dir(deep), 0); err != nil {
		t.Fatal(err)
	}
	if err = s.give(first); err != nil {
		t.Fatal(err)
	}
	if err = s.take(next); err != nil {
		t.Fatal(err)
	}
	again, err := os.Stat(next)
	if err != nil || !os.SameFile(made, again) || again.Mode() != made.Mode() {
		t.Errorf("the next attempt has %v, %v", again, err)
	}
	entries, err := os.ReadDir(next)
	if err != nil || len(entries) != 1 || entries[0].Name() != lrm.LogName {
		t.Errorf("in it are %v, %v; want an empty log", entries, err)
	}
	if err = os.WriteFile(filepath.Join(next, lrm.LogName), []byte("of one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err = lrm.Empty(next); err != nil {
		t.Fatal(err)
	}
	if entries, err = os.ReadDir(next); err != nil || len(entries) != 0 {
		t.Errorf("a log that says something is kept: %v, %v", entries, err)
	}
}

// No more directories are kept than there may be, and one that is gone is made anew.
func TestSparesAreBounded(t *testing.T) {
	t.Parallel()
	s, base := newSpares(t)
	for i := range mostSpares + 2 {
		dir := filepath.Join(base, fmt.Sprint("attempt", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := s.give(dir); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
	if kept, err := os.ReadDir(s.dir); err != nil || len(kept) != mostSpares {
		t.Errorf("%d are kept, %v; want %d", len(kept), err, mostSpares)
	}
	if err := os.RemoveAll(s.dir); err != nil { // below the test's own directory
		t.Fatal(err)
	}
	dir := filepath.Join(base, "new")
	if err := s.take(dir); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("it is %v, %v", info, err)
	}
	if err := s.give(dir); err != nil { // there is no place for it
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
