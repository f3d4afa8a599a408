//go:build unix

package socket

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// users are the owner of what the test makes and somebody else, neither of them root: root's files
// are trusted.
func users(t *testing.T, paths ...string) (owner, other int) {
	t.Helper()
	owner = os.Getuid()
	if owner == root {
		owner = 1001
		for _, path := range paths {
			if err := os.Lchown(path, owner, owner); err != nil {
				t.Fatal(err)
			}
		}
	}
	return owner, owner + 1
}

// folderWith makes a folder of this mode with a file in it, whose owner is all that is looked at.
func folderWith(t *testing.T, mode fs.FileMode) (folder, path string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "f")
	path = filepath.Join(folder, "s")
	err := os.Mkdir(folder, 0o700)
	if err == nil {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err = errors.Join(err, os.Chmod(folder, mode)); err != nil {
		t.Fatal(err)
	}
	return folder, path
}

// A socket is one's own, or root's, and nobody else can put another in its place.
func TestWhoseSocketItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode  fs.FileMode
		folds string // what is said to its owner; empty: nothing
	}{
		"of its own":           {0o700, ""},
		"that others may read": {0o755, ""},
		"of a group":           {0o775, ""},
		"like /tmp":            {0o777 | fs.ModeSticky, ""},
		"open to any user":     {0o777, "can be written to by any user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, path := folderWith(t, c.mode)
			owner, other := users(t, folder, path)
			for _, me := range []int{owner, root} {
				for _, err := range []error{check(path, me), checkFolder(path, me)} {
					if said := errorText(err); (said == "") != (c.folds == "") ||
						!strings.Contains(said, c.folds) {
						t.Errorf("user %d: %q, want %q", me, said, c.folds)
					}
				}
			}
			for _, err := range []error{check(path, other), checkFolder(path, other)} {
				if said := errorText(err); !strings.Contains(said, "belongs to another user") {
					t.Errorf("somebody else: %q", said)
				}
			}
		})
	}
}

// In a folder like /tmp the socket itself has to be one's own.
func TestASocketOfSomebodyElse(t *testing.T) {
	t.Parallel()
	_, path := folderWith(t, 0o777|fs.ModeSticky)
	owner, other := users(t, path)
	link := filepath.Join(filepath.Dir(path), "l")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == root { // then the folder is root's, as /tmp is
		if err := check(path, other); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("a socket of user %d, for %d: %v", owner, other, err)
		}
	}
	if err := check(path, owner); err != nil {
		t.Error(err)
	}
	if err := check(filepath.Join(filepath.Dir(path), "none"), other); err != nil {
		t.Errorf("no socket: %v", err)
	}
	if err := checkFolder("/none/at/all", owner); err == nil {
		t.Error("a folder that is not there")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
