//go:build unix

package lrm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Directories too deep to be removed go to the top, each with what is in it; files stay as they
// are, and so does what is not as deep.
func TestDeepDirectoriesComeUp(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, chain := range []string{"a", "b"} {
		deep := chain + strings.Repeat("/d", moveDepth)
		if err := os.MkdirAll(filepath.Join(dir, deep, "last"), 0o700); err != nil {
			t.Fatal(err)
		}
		put(filepath.Dir(deep) + "/file") // as deep as the first directory that comes up
	}
	put("file")
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for round, want := range []int{2, 0} {
		if moved := tame(root, round); moved != want {
			t.Errorf("round %d moved %d, want %d", round, moved, want)
		}
	}
	for name, want := range map[string]bool{
		".deep-0-0/last": true, ".deep-0-1/last": true, ".deep-0-2": false, ".deep-1-0": false,
		"a" + strings.Repeat("/d", moveDepth-1) + "/file": true,
		"b" + strings.Repeat("/d", moveDepth-1) + "/file": true,
		"b" + strings.Repeat("/d", moveDepth):             false,
	} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v, want that it is there: %v", name, err, want)
		}
	}
	for name, want := range map[string]os.FileMode{"file": 0o600, "a": ownerAll} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is %v, %v, want %s", name, info, err, want)
		}
	}
}
