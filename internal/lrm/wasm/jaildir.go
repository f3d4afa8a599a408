package wasm

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// dir is an open directory. It is held by its name, as WASI in wazero does.
type dir struct {
	experimentalsys.DirFile
	jail *jail
	at   place
	list []experimentalsys.Dirent // nil = to be read
	next int

	isRoot bool // the guest begins with it
	closed bool
}

func (j *jail) openDir(at place) *dir {
	d := &dir{jail: j, at: at, isRoot: at.path == "." && j.root == rootUnused}
	if d.isRoot {
		j.root = rootOpen
	} else {
		j.handles++
	}
	return d
}

// Dev implements experimentalsys.File.
func (d *dir) Dev() (uint64, experimentalsys.Errno) {
	st, no := d.Stat()
	return st.Dev, no
}

// Ino implements experimentalsys.File.
func (d *dir) Ino() (sys.Inode, experimentalsys.Errno) {
	st, no := d.Stat()
	return st.Ino, no
}

// Stat implements experimentalsys.File.
func (d *dir) Stat() (sys.Stat_t, experimentalsys.Errno) {
	info, no := d.at.lstat()
	if no != 0 {
		return sys.Stat_t{}, no
	}
	return d.jail.describe(d.at.path, info), 0
}

// Seek implements experimentalsys.File: only back to the start.
func (d *dir) Seek(offset fileOffset, whence int) (int64, experimentalsys.Errno) {
	if offset != 0 || whence != io.SeekStart {
		return 0, experimentalsys.EINVAL
	}
	d.list, d.next = nil, 0
	return 0, 0
}

// Readdir implements experimentalsys.File. Names come in order, so that programs
// behave alike on every host.
func (d *dir) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if d.list == nil {
		list, no := d.jail.list(d.at)
		if no != 0 {
			return nil, no
		}
		d.list = list
	}
	end := len(d.list)
	if n > 0 {
		end = min(end, d.next+n)
	}
	part := slices.Clone(d.list[d.next:end])
	d.next = end
	return part, 0
}

// Sync implements experimentalsys.File.
func (d *dir) Sync() experimentalsys.Errno { return 0 }

// Datasync implements experimentalsys.File.
func (d *dir) Datasync() experimentalsys.Errno { return 0 }

// Utimens implements experimentalsys.File.
func (d *dir) Utimens(atim, mtim int64) experimentalsys.Errno {
	return d.jail.Utimens(d.at.path, atim, mtim)
}

// Close implements experimentalsys.File.
func (d *dir) Close() experimentalsys.Errno {
	switch {
	case d.closed:
	case d.isRoot:
		d.jail.root = rootClosed
	default:
		d.jail.handles--
	}
	d.closed = true
	return 0
}

// list is a directory's content with the binds that stand in it.
func (j *jail) list(at place) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	opened, err := at.root.Open(at.name)
	if err != nil {
		return nil, errno(err)
	}
	defer opened.Close()
	entries, err := opened.ReadDir(-1)
	if err != nil {
		return nil, errno(err)
	}
	list := make([]experimentalsys.Dirent, 0, len(entries)+len(j.binds))
	for _, b := range j.binds {
		if path.Dir(b.name) != at.path {
			continue
		}
		if info, err := b.root.Lstat(b.base); err == nil {
			list = append(list, dirent(at.path, path.Base(b.name), info))
		}
	}
	bound := list
	for _, e := range entries {
		hidden := slices.ContainsFunc(bound, func(d experimentalsys.Dirent) bool {
			return d.Name == e.Name()
		}) || at.path == "." && e.Name() == j.hidden
		if info, err := e.Info(); err == nil && !hidden {
			list = append(list, dirent(at.path, e.Name(), info))
		}
	}
	slices.SortFunc(list, func(a, b experimentalsys.Dirent) int {
		return strings.Compare(a.Name, b.Name)
	})
	return list, 0
}

func dirent(in, name string, info fs.FileInfo) experimentalsys.Dirent {
	return experimentalsys.Dirent{
		Name: name, Type: info.Mode().Type(), Ino: inodeOf(path.Join(in, name)),
	}
}
