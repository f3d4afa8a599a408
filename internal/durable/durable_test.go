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

func TestRewriteGoesOnAppending(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "log")
	var open *os.File
	for _, content := range []string{"first", "second"} {
		var err error
		if open, err = Rewrite(open, file, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if _, err := open.WriteString("+"); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(file); string(got) != content+"+" {
			t.Errorf("the file has %q, want %q", got, content+"+")
		}
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if open, err := Rewrite(nil, filepath.Join(dir, "none", "log"), nil); err == nil || open != nil {
		t.Errorf("in a folder that is not there: %v, %v", open, err)
	}
}

// What cannot be replaced goes on with what was there before.
func TestRewriteThatFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	open, err := Rewrite(nil, file, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	_ = open.Close() // closing it twice fails, as a full disk may
	open, err = Rewrite(open, file, []byte("after"))
	if err == nil || open == nil {
		t.Fatalf("Rewrite = %v, %v; want the file and an error", open, err)
	}
	if err := open.Close(); err != nil {
		t.Error(err)
	}
}
