package wasm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// jail is the guest's file system, mounted at /. Every path leads either to the
// bind with the longest matching name, which is read-only, or to the scratch
// tree. The host is reached only through os.Root. Symbolic links are never
// followed, nothing but files and directories is opened, and no link can be made.
//
// It serves one guest, that is one thread.
type jail struct {
	experimentalsys.UnimplementedFS
	scratch *os.Root
	binds   []bind
	quota   *quota
	clock   *clock
	open    map[inode]*opened
	times   map[inode]int64 // when the guest wrote what, by its own clock, in nanoseconds
	handles int             // files and directories that the guest has open
	root    rootState       // whether its root is open
	hidden  string          // a name at the root that the guest does not see; empty: none
}

type bind struct {
	name string   // in the sandbox, without the leading slash
	root *os.Root // the directory itself, or the directory of the file
	base string   // "." or the file's name in root
	dir  bool
}

// rootState follows the descriptor of the root, with which every guest begins. The runtime opens
// it itself, before the guest opens anything.
type rootState uint8

const (
	rootUnused rootState = iota
	rootOpen
	rootClosed // by the guest, or at its end
)

// inode is a file's identity on the host.
type inode struct{ dev, ino uint64 }

// opened counts the descriptors of a scratch file: one that was removed takes
// space until the last of them is closed.
type opened struct {
	count   int
	removed bool
}

// place is the target of a sandbox path.
type place struct {
	path     string // cleaned, "." is the root
	root     *os.Root
	name     string // in root
	readOnly bool
	mustDir  bool // the path ended in a slash
}

// newJail opens the scratch tree and the binds.
func newJail(scratch string, inputs []lrm.Bind, diskBytes int64) (*jail, error) {
	root, err := os.OpenRoot(scratch)
	if err != nil {
		return nil, fmt.Errorf("open scratch: %w", err)
	}
	j := &jail{
		scratch: root, quota: &quota{limit: diskBytes}, clock: &clock{},
		open: make(map[inode]*opened), times: make(map[inode]int64),
	}
	j.countState()
	for _, in := range inputs {
		b, err := openBind(in)
		if err != nil {
			return nil, err
		}
		j.binds = append(j.binds, b)
	}
	slices.SortStableFunc(j.binds, func(a, b bind) int { return cmp.Compare(a.name, b.name) })
	return j, nil
}

// countState counts the saved state that was put into the scratch tree for the guest.
func (j *jail) countState() {
	if info, err := j.scratch.Lstat(lrm.StateFile()); err == nil && info.Mode().IsRegular() {
		j.quota.entries++
		j.quota.used += info.Size()
	}
}

func openBind(in lrm.Bind) (bind, error) {
	dir, base := in.HostPath, "."
	if !in.Dir {
		dir, base = filepath.Split(in.HostPath)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return bind{}, fmt.Errorf("open input %s: %w", in.SandboxPath, err)
	}
	info, err := root.Lstat(base)
	if err != nil {
		return bind{}, fmt.Errorf("open input %s: %w", in.SandboxPath, err)
	}
	if info.IsDir() != in.Dir || !in.Dir && !info.Mode().IsRegular() {
		return bind{}, fmt.Errorf("open input %s: is %s", in.SandboxPath, info.Mode().Type())
	}
	return bind{name: cleanName(in.SandboxPath), root: root, base: base, dir: in.Dir}, nil
}

// cleanName is a sandbox path relative to the root, "." for the root itself.
func cleanName(p string) string {
	name := strings.TrimPrefix(path.Clean("/"+p), "/")
	if name == "" {
		return "."
	}
	return name
}

// resolve finds where a path leads, without looking whether it exists.
func (j *jail) resolve(p string) (place, experimentalsys.Errno) {
	if strings.IndexByte(p, 0) >= 0 {
		return place{}, experimentalsys.EINVAL
	}
	name := cleanName(p)
	if j.hidden != "" && (name == j.hidden || strings.HasPrefix(name, j.hidden+"/")) {
		return place{}, experimentalsys.EPERM // ENOENT would let it be made
	}
	at := place{path: name, root: j.scratch, name: name, mustDir: strings.HasSuffix(p, "/")}
	longest := -1
	for i, b := range j.binds {
		if (name == b.name || strings.HasPrefix(name, b.name+"/")) && len(b.name) > longest {
			longest = len(b.name)
			rest := strings.TrimPrefix(strings.TrimPrefix(name, b.name), "/")
			if rest != "" && !b.dir {
				return place{}, experimentalsys.ENOTDIR
			}
			at.root, at.name, at.readOnly = j.binds[i].root, path.Join(b.base, rest), true
		}
	}
	return at, 0
}

// lstat looks at a place. Components that are symbolic links are refused; the
// last one is told as what it is.
func (at place) lstat() (fs.FileInfo, experimentalsys.Errno) {
	for i := range len(at.name) {
		if at.name[i] != '/' {
			continue
		}
		info, err := at.root.Lstat(at.name[:i])
		switch {
		case err != nil:
			return nil, errno(err)
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, experimentalsys.ELOOP
		case !info.IsDir():
			return nil, experimentalsys.ENOTDIR
		}
	}
	info, err := at.root.Lstat(at.name)
	if err != nil {
		return nil, errno(err)
	}
	if at.mustDir && !info.IsDir() {
		return nil, experimentalsys.ENOTDIR
	}
	return info, 0
}

// look resolves a path and looks at what is there.
func (j *jail) look(p string) (place, fs.FileInfo, experimentalsys.Errno) {
	at, no := j.resolve(p)
	if no != 0 {
		return at, nil, no
	}
	info, no := at.lstat()
	return at, info, no
}

// holdsBind reports whether a bind stands at or below the place, so that it must
// stay where it is.
func (j *jail) holdsBind(at place) bool {
	for _, b := range j.binds {
		if b.name == at.path || at.path == "." || strings.HasPrefix(b.name, at.path+"/") {
			return true
		}
	}
	return at.path == "."
}

// Lstat implements experimentalsys.FS.
func (j *jail) Lstat(p string) (sys.Stat_t, experimentalsys.Errno) {
	at, info, no := j.look(p)
	if no != 0 {
		return sys.Stat_t{}, no
	}
	return j.describe(at.path, info), 0
}

// Stat implements experimentalsys.FS.
func (j *jail) Stat(p string) (sys.Stat_t, experimentalsys.Errno) {
	st, no := j.Lstat(p)
	if no == 0 && st.Mode&fs.ModeSymlink != 0 {
		return sys.Stat_t{}, experimentalsys.ELOOP
	}
	return st, no
}

// Readlink implements experimentalsys.FS: there are no links to read.
func (j *jail) Readlink(string) (string, experimentalsys.Errno) {
	return "", experimentalsys.EINVAL
}

// Link implements experimentalsys.FS.
func (j *jail) Link(string, string) experimentalsys.Errno { return experimentalsys.EPERM }

// Symlink implements experimentalsys.FS.
func (j *jail) Symlink(string, string) experimentalsys.Errno { return experimentalsys.EPERM }

// Chmod implements experimentalsys.FS.
func (j *jail) Chmod(string, fs.FileMode) experimentalsys.Errno { return experimentalsys.EPERM }

// Mkdir implements experimentalsys.FS.
func (j *jail) Mkdir(p string, _ fs.FileMode) experimentalsys.Errno {
	at, _, no := j.look(strings.TrimRight(p, "/"))
	switch {
	case no == 0:
		return experimentalsys.EEXIST
	case no != experimentalsys.ENOENT:
		return no
	case at.readOnly:
		return experimentalsys.EROFS
	case !j.quota.enter():
		return experimentalsys.EIO
	}
	if err := at.root.Mkdir(at.name, 0o700); err != nil {
		j.quota.entries--
		return j.failed(err)
	}
	return 0
}

// Rmdir implements experimentalsys.FS.
func (j *jail) Rmdir(p string) experimentalsys.Errno {
	at, info, no := j.look(p)
	switch {
	case no != 0:
		return no
	case !info.IsDir():
		return experimentalsys.ENOTDIR
	case at.readOnly:
		return experimentalsys.EROFS
	case j.holdsBind(at):
		return experimentalsys.ENOTEMPTY
	}
	if err := at.root.Remove(at.name); err != nil {
		return j.failed(err)
	}
	j.forget(info)
	return 0
}

// Unlink implements experimentalsys.FS.
func (j *jail) Unlink(p string) experimentalsys.Errno {
	at, info, no := j.look(p)
	switch {
	case no != 0:
		return no
	case info.IsDir():
		return experimentalsys.EISDIR
	case at.readOnly:
		return experimentalsys.EROFS
	}
	if err := at.root.Remove(at.name); err != nil {
		return j.failed(err)
	}
	j.forget(info)
	return 0
}

// Rename implements experimentalsys.FS.
func (j *jail) Rename(from, to string) experimentalsys.Errno {
	src, info, no := j.look(from)
	if no != 0 {
		return no
	}
	dst, old, no := j.look(strings.TrimRight(to, "/"))
	switch {
	case no != 0 && no != experimentalsys.ENOENT:
		return no
	case src.readOnly || dst.readOnly:
		return experimentalsys.EROFS
	case j.holdsBind(src) || j.holdsBind(dst):
		return experimentalsys.EPERM
	case src.path == dst.path:
		return 0
	case strings.HasPrefix(dst.path, src.path+"/"):
		return experimentalsys.EINVAL
	}
	old, no = j.makeWay(dst, old, info)
	if no != 0 {
		return no
	}
	if err := j.scratch.Rename(src.name, dst.name); err != nil {
		return j.failed(err)
	}
	if old != nil {
		j.forget(old)
	}
	return 0
}

// makeWay says why a file cannot take the place of the old one, nil where there is none, and
// what is left to replace: an empty directory is removed, as os.Root puts nothing in its place.
func (j *jail) makeWay(
	dst place, old, by fs.FileInfo,
) (left fs.FileInfo, no experimentalsys.Errno) {
	switch {
	case old == nil || !old.IsDir() && !by.IsDir():
		return old, 0
	case !by.IsDir():
		return old, experimentalsys.EISDIR
	case !old.IsDir():
		return old, experimentalsys.ENOTDIR
	}
	if err := j.scratch.Remove(dst.name); err != nil {
		return old, j.failed(err)
	}
	j.forget(old)
	return nil, 0
}

// Utimens implements experimentalsys.FS.
func (j *jail) Utimens(p string, atim, mtim int64) experimentalsys.Errno {
	at, info, no := j.look(p)
	switch {
	case no != 0:
		return no
	case at.readOnly:
		return experimentalsys.EROFS
	case info.Mode()&fs.ModeSymlink != 0:
		return experimentalsys.ELOOP
	}
	if err := at.root.Chtimes(at.name, fileTime(atim), fileTime(mtim)); err != nil {
		return errno(err)
	}
	if mtim != experimentalsys.UTIME_OMIT {
		j.times[identify(info)] = mtim
	}
	return 0
}

// fileTime is the time that os understands; its zero leaves a time as it is.
func fileTime(nanos int64) time.Time {
	if nanos == experimentalsys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// forget gives back the space of a file or directory that has no name any more.
func (j *jail) forget(info fs.FileInfo) {
	j.quota.entries--
	if info.IsDir() {
		delete(j.times, identify(info))
		return
	}
	if o := j.open[identify(info)]; o != nil {
		o.removed = true
		return
	}
	delete(j.times, identify(info))
	j.quota.take(-info.Size())
}

func identify(info fs.FileInfo) inode {
	st := sys.NewStat_t(info)
	return inode{dev: st.Dev, ino: st.Ino}
}

// failed is errno for a change of the scratch tree: it notes a full host.
func (j *jail) failed(err error) experimentalsys.Errno {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		j.quota.hostFull.Store(true)
	}
	return errno(err)
}

// errno is the guest's view of an error. What os.Root refuses has no number of
// its own.
func errno(err error) experimentalsys.Errno {
	var number syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, fs.ErrNotExist):
		return experimentalsys.ENOENT
	case errors.As(err, &number):
		return experimentalsys.UnwrapOSError(number)
	case errors.Is(err, fs.ErrClosed):
		return experimentalsys.EBADF
	default:
		return experimentalsys.EPERM
	}
}
