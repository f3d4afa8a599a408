package lrm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A program saves its state as a file of this name in the directory that SaveVar names: written
// beside it and then renamed, so that there is a whole one at any time. While wantedName stands
// there a new state is wanted; who has nothing better to go by looks for it now and then.
// percentName, if it is there, says how much is done: a number from 1 to 100; problemName why no
// state is saved.
const (
	// SaveVar is the environment variable with the directory's path in the sandbox.
	SaveVar     = "MRS_CKPT_DIR"
	SaveDir     = "/ckpt" // that path
	stateName   = "state"
	wantedName  = "wanted"
	percentName = "percent"
	problemName = "problem"
)

// CanSave reports whether a task's program finds a directory for its state: not if its job wants no
// checkpoints, or has put something else in that place.
func CanSave(t grid.Task) bool {
	if t.Checkpoint.Off || t.Kind == grid.KindReservation {
		return false
	}
	paths := make([]string, 0, len(t.Inputs)+len(t.Outputs))
	for _, in := range t.Inputs {
		paths = append(paths, in.Path)
	}
	for _, out := range t.Outputs {
		paths = append(paths, out.Path)
	}
	for _, p := range paths {
		if p = path.Clean(p); p == SaveDir || strings.HasPrefix(p, SaveDir+"/") {
			return false
		}
	}
	return true
}

// Variables are those that the sandbox adds for saving to the task's own.
func (a Attempt) Variables() [][2]string {
	if !CanSave(a.Task) || a.Task.Checkpoint.Whole {
		return nil
	}
	return [][2]string{{SaveVar, SaveDir}}
}

// StateFile is the state's place below the sandbox's root.
func StateFile() string { return path.Join(sandboxName(SaveDir), stateName) }

// prepareSaving makes the directory in the sandbox's root, with the state to go on from.
func prepareSaving(root *os.Root, a Attempt) error {
	if !CanSave(a.Task) {
		return nil
	}
	if err := root.MkdirAll(sandboxName(SaveDir), 0o700); err != nil {
		return err
	}
	if a.StatePath == "" {
		return nil
	}
	return moveFile(a.StatePath, filepath.Join(a.WorkDir(), filepath.FromSlash(StateFile())))
}

// moveFile moves a file, also into another file system.
func moveFile(from, to string) error {
	if err := os.Rename(from, to); !errors.Is(err, syscall.EXDEV) {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	const private = 0o600
	copied, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, source)
	return errors.Join(err, copied.Close(), os.Remove(from))
}

// StateDir is the directory in which an attempt's program saves its state, as seen from outside of
// its sandbox. The program may do anything there: nothing is followed out of the sandbox's root.
type StateDir struct {
	workDir string
}

// StateDir is the attempt's.
func (a Attempt) StateDir() StateDir { return StateDir{workDir: a.WorkDir()} }

// within does something with the directory.
func (d StateDir) within(do func(*os.Root) error) error {
	root, err := os.OpenRoot(d.workDir)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.OpenRoot(sandboxName(SaveDir))
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(dir)
}

// Look describes the state that is there now, nil if there is none.
func (d StateDir) Look() fs.FileInfo {
	var info fs.FileInfo
	err := d.within(func(dir *os.Root) (err error) {
		info, err = dir.Lstat(stateName)
		return err
	})
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return info
}

// SameState reports whether two looks saw the same state.
func SameState(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Open opens the state that is there now. It stays the same when the program renames another one
// over it.
func (d StateDir) Open() (f *os.File, err error) {
	err = d.within(func(dir *os.Root) error {
		f, err = dir.OpenFile(stateName, os.O_RDONLY|noWait, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	if info, wrong := f.Stat(); wrong != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("open state: it is no file"), f.Close())
	}
	return f, nil
}

// Ask says to the program that a new state is wanted, or no more.
func (d StateDir) Ask(wanted bool) error {
	err := d.within(func(dir *os.Root) error {
		if !wanted {
			return dir.Remove(wantedName)
		}
		if err := remove(dir, problemName); err != nil {
			return err
		}
		f, err := dir.OpenFile(wantedName, os.O_CREATE|os.O_EXCL|os.O_WRONLY|noWait, 0o600)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil // the program has removed it, or it is there
	}
	return err
}

const maxPercentText = 8

// Percent reads how much the program says is done, 1 to 100; 0 if nothing can be read.
func (d StateDir) Percent() uint8 {
	var percent uint64
	err := d.within(func(dir *os.Root) error {
		f, err := dir.OpenFile(percentName, os.O_RDONLY|noWait, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		text := make([]byte, maxPercentText)
		n, err := f.Read(text)
		if err != nil {
			return err
		}
		percent, err = strconv.ParseUint(strings.TrimRight(string(text[:n]), "%\r\n \x00"), 10, 8)
		return err
	})
	if err != nil || percent > 100 {
		return 0
	}
	return uint8(percent)
}
