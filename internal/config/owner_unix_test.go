//go:build unix

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownerOf is a file's user and group.
func ownerOf(t *testing.T, info fs.FileInfo) [2]uint32 {
	t.Helper()
	st, known := info.Sys().(*syscall.Stat_t)
	if !known {
		t.Fatal("nobody's file")
	}
	return [2]uint32{st.Uid, st.Gid}
}

// A file that root writes belongs to whom it belonged; where it cannot be written it says so.
func TestWhoseFileItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f.yaml")
	if err := os.WriteFile(file, []byte("one"), 0o640); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 12345, 23456); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err = WriteFile(file, []byte("two")); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if ownerOf(t, before) != ownerOf(t, after) || after.Mode() != before.Mode() {
		t.Errorf("before %v of %v, after %v of %v",
			before.Mode(), ownerOf(t, before), after.Mode(), ownerOf(t, after))
	}
	fresh := filepath.Join(dir, "new", "f.yaml")
	if err = WriteFile(fresh, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Dir(fresh)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a new directory: %v, %v", info, err)
	}
	for _, path := range []string{dir, filepath.Join(file, "below")} {
		if err := WriteFile(path, nil); err == nil ||
			!strings.HasPrefix(err.Error(), "write the configuration: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
