package data

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What was laid out fits its identifier until anything about it changes.
func TestCompareSeesEveryChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil).Store
	long := strings.Repeat("0123456789abcdef", 100_000) // several blocks
	file := mustAdd(t, s, []byte(long))
	program, err := s.AddExecutable(t.Context(), strings.NewReader("#!/bin/sh\n"))
	if err != nil {
		t.Fatal(err)
	}
	from := t.TempDir()
	for name, text := range map[string]string{"a": "one", "sub/b": "", "sub/deep/c": "three"} {
		at := filepath.Join(from, name)
		if err = os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err = os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err = os.Mkdir(filepath.Join(from, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := s.AddDir(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) func(string) error {
		return func(at string) error {
			return os.WriteFile(filepath.Join(at, name), []byte(text), 0o600)
		}
	}
	mode := func(m os.FileMode) func(string) error {
		return func(at string) error { return os.Chmod(at, m) }
	}
	remove := func(name string) func(string) error {
		return func(at string) error { return os.Remove(filepath.Join(at, name)) }
	}
	mkdir := func(at string) error { return os.Mkdir(filepath.Join(at, "d"), 0o700) }
	for name, c := range map[string]struct {
		cid    grid.CID
		change func(at string) error
		same   bool
	}{
		"a file":             {file.CID, nil, true},
		"a program":          {program.CID, nil, true},
		"a directory":        {dir.CID, nil, true},
		"its last byte":      {file.CID, write("", long[:len(long)-1]+"x"), false},
		"a shorter file":     {file.CID, write("", long[:len(long)-1]), false},
		"a longer file":      {file.CID, write("", long+"x"), false},
		"no file":            {file.CID, os.Remove, false},
		"no program":         {program.CID, mode(0o600), false},
		"a file that runs":   {file.CID, mode(0o700), false},
		"a file in it":       {dir.CID, write("sub/deep/c", "thrEe"), false},
		"an empty one":       {dir.CID, write("sub/b", "x"), false},
		"one more":           {dir.CID, write("sub/more", ""), false},
		"a directory more":   {dir.CID, mkdir, false},
		"one less":           {dir.CID, remove("a"), false},
		"no empty directory": {dir.CID, remove("empty"), false},
		"a link to the same": {dir.CID, func(at string) error {
			moved := os.Rename(at+"/a", at+"/../elsewhere")
			return errors.Join(moved, os.Symlink("../elsewhere", at+"/a"))
		}, false},
	} {
		at := filepath.Join(t.TempDir(), "it")
		if err := s.Export(t.Context(), c.cid, at); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			if err := c.change(at); err != nil {
				t.Fatal(err)
			}
		}
		err := s.Compare(t.Context(), c.cid, at)
		if c.same && err != nil || !c.same && !errors.Is(err, errDiffers) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
