package lrm

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
)

const (
	// MaxDepth limits how deep directories may be nested below an attempt's
	// root directory: what is deeper can be neither measured nor kept.
	MaxDepth = 256
	// MaxEntries limits the files and directories of an attempt: empty ones
	// cost the host, too.
	MaxEntries = 1 << 17

	ownerAll = 0o700

	// LogName is the name of the file in an attempt's directory that takes what its supervisor has
	// to say.
	LogName = "supervisor.log"
)

// Empty removes all that RemoveTree would, but the directory itself and a log that says nothing.
// Nothing may run in it any more.
func Empty(dir string) error {
	if err := scratch.Unmount(filepath.Join(dir, workName)); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = errors.Join(err, RemoveTree(name))
		case e.Name() == LogName && isEmpty(e):
		default:
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

func isEmpty(e os.DirEntry) bool {
	info, err := e.Info()
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// RemoveTree removes an attempt's directory, or another into which attempts wrote, with the file
// system that it had for that, also where they left
// directories that their owner may not read, or more of them in each other than
// files can be open. It takes time in proportion to what is in it, however deep it lies.
// Nothing may run in it any more.
func RemoveTree(dir string) error {
	if err := scratch.Unmount(filepath.Join(dir, workName)); err != nil {
		return err
	}
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	root, wrong := os.OpenRoot(dir)
	if wrong != nil {
		return errors.Join(err, wrong)
	}
	f := flattener{root: root, prefix: "." + rand.Text() + "-"}
	f.flatten()
	return errors.Join(root.Close(), os.RemoveAll(dir))
}

// flattener empties a tree: it moves each directory to the top before it looks into it, so that
// no path is long. It is best effort: what it cannot do shows when the tree is removed.
type flattener struct {
	root   *os.Root
	prefix string // of the names at the top, which no attempt guessed
	moved  int
}

// batch bounds how many entries of a directory are held at a time.
const batch = 1024

func (f *flattener) flatten() {
	for {
		removed := false
		for _, e := range f.some(".") {
			if e.IsDir() {
				f.spill(e.Name())
			}
			removed = f.root.Remove(e.Name()) == nil || removed
		}
		if !removed {
			return
		}
	}
}

// spill removes what a directory at the top holds, and moves the directories in it to the top.
func (f *flattener) spill(dir string) {
	_ = f.root.Chmod(dir, ownerAll)
	for {
		gone := false
		for _, e := range f.some(dir) {
			gone = f.lift(dir+"/"+e.Name(), e.IsDir()) == nil || gone
		}
		if !gone {
			return
		}
	}
}

// lift moves a directory to the top, and removes a file.
func (f *flattener) lift(name string, isDir bool) error {
	if !isDir {
		return f.root.Remove(name)
	}
	_ = f.root.Chmod(name, ownerAll) // a directory that moves is written to
	f.moved++
	return f.root.Rename(name, f.prefix+strconv.Itoa(f.moved))
}

// some are entries of a directory, not more than a batch.
func (f *flattener) some(dir string) []os.DirEntry {
	opened, err := f.root.Open(dir)
	if err != nil {
		return nil
	}
	defer opened.Close()
	entries, _ := opened.ReadDir(batch)
	return entries
}
