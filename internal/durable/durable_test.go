package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestFilesAreWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	for _, content := range []string{"first", "", "second"} {
		if err := Replace(file, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("read %q, %v, want %q", got, err, content)
		}
	}
	if err := Create(file, []byte("third")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a file = %v, want fs.ErrExist", err)
	}
	if got, _ := os.ReadFile(file); string(got) != "second" {
		t.Errorf("Create changed the file to %q", got)
	}
	other := filepath.Join(dir, "g")
	if err := Create(other, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(other)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o, want 600", info.Mode().Perm())
	}
	for _, write := range []func(string, []byte) error{Replace, Create} {
		if write(filepath.Join(dir, "none", "f"), nil) == nil {
			t.Error("a missing directory is no error")
		}
		if write(dir, nil) == nil {
			t.Error("a directory in the place is no error")
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
