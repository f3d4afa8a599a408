//go:build unix

package lrm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// All goes that may go, from several batches at a time and from closed directories, and what
// must stay keeps nothing else from going. No name of an attempt's is in the way.
func TestATreeIsFlattened(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "attempt")
	for i := range batch + 1 {
		for _, name := range []string{fmt.Sprint("wide/", i), fmt.Sprint(i, strings.Repeat("/d", 3))} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i), "file"), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"wide", "0/d", "1"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(top, "outside")
	if err := os.WriteFile(outside, []byte("of others"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(top, filepath.Join(dir, "2", "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := flattener{root: root, prefix: ".x-"}
	f.flatten()
	if left := f.some("."); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error("what a link leads to went with it")
	}
	if deep := (batch + 1) * 4; f.moved != deep {
		t.Errorf("%d directories were moved to the top, want %d", f.moved, deep)
	}
}
