package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

const ownerAll = 0o700

// treeUse sums what the files of a tree take on disk, or says why that cannot be
// measured: a program may try to hide what it writes. Files that vanish meanwhile
// do not count.
func treeUse(dir string) (total int64, wild string) { return useUpTo(dir, lrm.MaxEntries) }

// useUpTo is treeUse of so many files and directories at most.
func useUpTo(dir string, most int) (total int64, wild string) {
	u := use{root: dir, most: most}
	u.walk(dir)
	return u.bytes, u.wild
}

// use is a walk through a tree: where it goes, how far it may, and its count so far.
type use struct {
	root    string
	most    int // files and directories
	entries int
	bytes   int64
	wild    string // why the tree cannot be measured; empty while it can
}

func (u *use) walk(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		u.entries++
		switch {
		case u.entries > u.most:
			u.wild = fmt.Sprintf("made more than %d files and directories", u.most)
		case strings.Count(path[min(len(u.root), len(path)):], "/") > lrm.MaxDepth || isTooLong(err):
			u.wild = fmt.Sprintf("made more than %d directories in each other", lrm.MaxDepth)
		case errors.Is(err, fs.ErrPermission) && path == dir:
			u.wild = "hid what it wrote"
		case errors.Is(err, fs.ErrPermission):
			u.unhide(path)
		case err == nil:
			if info, err := d.Info(); err == nil {
				u.bytes += diskUse(info)
			}
		default: // vanished: look at the others
		}
		if u.wild != "" {
			return fs.SkipAll
		}
		return nil
	})
}

// unhide makes a directory below the root readable and walks through it. Links that the
// program puts in its place meanwhile lead nowhere.
func (u *use) unhide(path string) {
	root, err := os.OpenRoot(u.root)
	if err != nil {
		return
	}
	defer root.Close()
	name, err := filepath.Rel(u.root, path)
	if err != nil {
		return
	}
	if err = root.Chmod(name, ownerAll); err != nil {
		return // it just vanished
	}
	below, err := root.OpenRoot(name)
	if err != nil {
		return
	}
	below.Close()
	u.walk(path)
}
