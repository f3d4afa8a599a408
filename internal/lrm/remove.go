package lrm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const (
	// MaxDepth limits how deep directories may be nested below an attempt's
	// root directory: what is deeper can be neither measured nor kept.
	MaxDepth = 256
	// MaxEntries limits the files and directories of an attempt: empty ones
	// cost the host, too.
	MaxEntries = 1 << 17

	moveDepth  = 128  // of what is moved up before it is removed
	moveRounds = 4096 // of looking for more of it
	ownerAll   = 0o700
)

// RemoveTree removes a directory into which attempts wrote, also where they left
// directories that their owner may not read, or more of them in each other than
// files can be open. Nothing may run in it any more.
func RemoveTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	root, wrong := os.OpenRoot(dir)
	if wrong != nil {
		return errors.Join(err, wrong)
	}
	for round := range moveRounds {
		if moved := tame(root, round); moved == 0 {
			break
		}
	}
	return errors.Join(root.Close(), os.RemoveAll(dir))
}

// tame lets the owner into all directories and moves deep ones to the top.
// It is best effort: what it cannot do shows when the tree is removed.
func tame(root *os.Root, round int) (moved int) {
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, _ error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		_ = root.Chmod(name, ownerAll)
		if strings.Count(name, "/") < moveDepth {
			return nil
		}
		if root.Rename(name, fmt.Sprintf(".deep-%d-%d", round, moved)) == nil {
			moved++
		}
		return fs.SkipDir
	})
	return moved
}
