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
	entries := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		entries++
		switch {
		case entries > most:
			wild = fmt.Sprintf("made more than %d files and directories", most)
		case strings.Count(path[min(len(dir), len(path)):], "/") > lrm.MaxDepth || isTooLong(err):
			wild = fmt.Sprintf("made more than %d directories in each other", lrm.MaxDepth)
		case errors.Is(err, fs.ErrPermission) && path == dir:
			wild = "hid what it wrote"
		case errors.Is(err, fs.ErrPermission):
			hidden, stays := unhide(dir, path)
			total, wild = total+hidden, stays
		case err == nil:
			if info, err := d.Info(); err == nil {
				total += diskUse(info)
			}
		default: // vanished: look at the others
		}
		if wild != "" {
			return fs.SkipAll
		}
		return nil
	})
	return total, wild
}

// unhide makes a directory below dir readable and measures it. Links that the
// program puts in its place meanwhile lead nowhere.
func unhide(dir, path string) (int64, string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, ""
	}
	defer root.Close()
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return 0, ""
	}
	if err = root.Chmod(name, ownerAll); err != nil {
		return 0, "" // it just vanished
	}
	below, err := root.OpenRoot(name)
	if err != nil {
		return 0, ""
	}
	below.Close()
	return treeUse(path)
}
