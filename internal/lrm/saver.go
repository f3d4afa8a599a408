package lrm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// nextName names a state that is being written here, before it is renamed.
const nextName = "next"

// StateDirIn is the directory for states in the sandbox whose root is workDir, for a runner that
// saves in place of its program.
func StateDirIn(workDir string) StateDir { return StateDir{workDir: workDir} }

// SaveName is the directory's name below the sandbox's root.
func SaveName() string { return sandboxName(SaveDir) }

// Asked describes the wish for a new state, nil if there is none. Two wishes differ as two states
// do: SameState tells.
func (d StateDir) Asked() (wish fs.FileInfo) {
	_ = d.within(func(dir *os.Root) (err error) {
		wish, err = dir.Lstat(wantedName)
		return err
	})
	return wish
}

// Put saves what write writes in place of the state before. Percent says how much is done, from 1
// to 100; 0 says nothing. After an error the state before is still there.
func (d StateDir) Put(percent uint8, write func(*os.File) error) error {
	err := d.within(func(dir *os.Root) error {
		if err := remove(dir, nextName); err != nil {
			return err
		}
		f, err := dir.OpenFile(nextName, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err = errors.Join(write(f), f.Close()); err != nil {
			return errors.Join(err, remove(dir, nextName))
		}
		if percent > 0 {
			if err = dir.WriteFile(percentName, fmt.Appendln(nil, percent), 0o600); err != nil {
				return err
			}
		}
		return errors.Join(dir.Rename(nextName, stateName), remove(dir, problemName))
	})
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}

// Drop removes the state that is there, if there is one.
func (d StateDir) Drop() error {
	return d.within(func(dir *os.Root) error { return remove(dir, stateName) })
}

// remove removes a file if it is there.
func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Explain says why no state is saved.
func (d StateDir) Explain(problem string) error {
	return d.within(func(dir *os.Root) error {
		return dir.WriteFile(problemName, []byte(ExitText(problem)), 0o600)
	})
}

// Problem reads why no state is saved, "" if nothing says so. Whatever the program has written
// there, it is one printable line of at most 1 KiB.
func (d StateDir) Problem() (text string) {
	_ = d.within(func(dir *os.Root) error {
		f, err := dir.OpenFile(problemName, os.O_RDONLY|noWait, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		all, err := io.ReadAll(io.LimitReader(f, maxExitText))
		text = strings.Map(printable, strings.TrimSpace(ExitText(string(all))))
		return err
	})
	return text
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}
