//go:build unix

package lrm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

func TestRemoveTree(t *testing.T) {
	for name, lay := range map[string]func(t *testing.T, dir string){
		"nothing": func(t *testing.T, _ string) { t.Helper() },
		"closed directories": func(t *testing.T, dir string) {
			t.Helper()
			inner := filepath.Join(dir, "a", "b", "c")
			if err := os.MkdirAll(inner, 0o700); err != nil {
				t.Fatal(err)
			}
			for d := inner; d != dir; d = filepath.Dir(d) {
				if err := os.Chmod(d, 0); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a link to a directory of others": func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
				t.Skip(err)
			}
		},
		"deep": func(t *testing.T, dir string) {
			t.Helper()
			nest(t, dir, 3000)
		},
		"many in a closed directory": func(t *testing.T, dir string) {
			t.Helper()
			for i := range 1100 {
				inner := filepath.Join(dir, "closed", fmt.Sprint(i), "deep")
				if err := os.MkdirAll(inner, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(inner, "file"), nil, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "attempt")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			lay(t, dir)
			if err := lrm.RemoveTree(dir); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// TestRemoveDeepTree wants a tree to go that is deeper than files can be open.
func TestRemoveDeepTree(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(t.TempDir(), "attempt")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	nest(t, dir, 1500)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{
		Cur: 300, Max: old.Max,
	}); err != nil {
		t.Skip(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) }()
	if err := lrm.RemoveTree(dir); err != nil {
		t.Error(err)
	}
}

// nest makes directories in each other.
func nest(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := at.Mkdir("d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		at.Close()
		at = next
	}
	at.Close()
}
