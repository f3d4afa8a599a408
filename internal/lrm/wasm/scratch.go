package wasm

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// files lists what the guest has in its scratch tree, in the order of the paths.
func (j *jail) files() ([]savedFile, error) {
	var all []savedFile
	err := fs.WalkDir(j.scratch.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case name == j.hidden:
			return fs.SkipDir
		case !d.IsDir() && !d.Type().IsRegular():
			return fmt.Errorf("%s is no file", name) // nothing here can make one
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := savedFile{Path: []byte(name), Dir: d.IsDir(), Written: j.times[identify(info)]}
		if !f.Dir {
			f.Bytes = info.Size()
		}
		all = append(all, f)
		return nil
	})
	slices.SortFunc(all, func(a, b savedFile) int {
		return cmp.Compare(string(a.Path), string(b.Path))
	})
	return all, err
}

// layOut puts files in place of what the scratch tree holds. Their content is read one after the
// other.
func (j *jail) layOut(files []savedFile, next func(n int64) io.Reader) error {
	if err := j.clear(); err != nil {
		return err
	}
	for _, f := range files {
		name := string(f.Path)
		if f.Dir {
			if err := j.scratch.Mkdir(name, 0o700); err != nil {
				return err
			}
		} else if err := j.write(name, next(f.Bytes)); err != nil {
			return err
		}
		if f.Written == 0 {
			continue
		}
		info, err := j.scratch.Lstat(name)
		if err != nil {
			return err
		}
		j.times[identify(info)] = f.Written
	}
	return nil
}

// clear removes all that the guest sees of its scratch tree.
func (j *jail) clear() error {
	top, err := fs.ReadDir(j.scratch.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range top {
		if e.Name() == j.hidden {
			continue
		}
		if err := j.scratch.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (j *jail) write(name string, content io.Reader) error {
	f, err := j.scratch.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if wrong := f.Close(); err == nil {
		err = wrong
	}
	return err
}

// hideStates hides the directory for states from the guest: the runner saves in its place.
func (j *jail) hideStates(states lrm.StateDir) {
	j.hidden = lrm.SaveName()
	j.quota.used, j.quota.entries = 0, 0 // of a state that is there
	if info := states.Look(); info != nil {
		j.quota.saved = info.Size()
	}
	j.quota.shed = func() { _ = states.Drop() }
}
