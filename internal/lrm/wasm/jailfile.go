package wasm

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// OpenFile implements experimentalsys.FS.
func (j *jail) OpenFile(
	p string, flag experimentalsys.Oflag, _ fs.FileMode,
) (experimentalsys.File, experimentalsys.Errno) {
	at, info, no := j.look(p)
	if no == experimentalsys.ENOENT && flag&experimentalsys.O_CREAT != 0 {
		return j.create(at, flag)
	}
	if no != 0 {
		return nil, no
	}
	if no = refuse(at, info, flag); no != 0 {
		return nil, no
	}
	if info.IsDir() {
		return j.openDir(at), 0
	}
	f, no := j.openRegular(at, flag, 0)
	if no != 0 {
		return nil, no
	}
	return f, 0
}

// refuse says why what is there cannot be opened in that way, 0 if it can.
func refuse(at place, info fs.FileInfo, flag experimentalsys.Oflag) experimentalsys.Errno {
	const writing = experimentalsys.O_RDWR | experimentalsys.O_WRONLY | experimentalsys.O_TRUNC
	switch mode := info.Mode(); {
	case flag&experimentalsys.O_CREAT != 0 && flag&experimentalsys.O_EXCL != 0:
		return experimentalsys.EEXIST
	case mode.IsDir() && flag&(writing|experimentalsys.O_CREAT) != 0:
		return experimentalsys.EISDIR
	case mode.IsDir():
		return 0
	case flag&experimentalsys.O_DIRECTORY != 0:
		return experimentalsys.ENOTDIR
	case mode&fs.ModeSymlink != 0:
		return experimentalsys.ELOOP
	case !mode.IsRegular():
		return experimentalsys.EPERM
	case at.readOnly && flag&writing != 0:
		return experimentalsys.EROFS
	default:
		return 0
	}
}

func (j *jail) create(
	at place, flag experimentalsys.Oflag,
) (experimentalsys.File, experimentalsys.Errno) {
	switch {
	case at.readOnly:
		return nil, experimentalsys.EROFS
	case at.mustDir:
		return nil, experimentalsys.EISDIR
	case !j.quota.enter():
		return nil, experimentalsys.EIO
	}
	f, no := j.openRegular(at, flag, os.O_CREATE|os.O_EXCL)
	if no != 0 {
		j.quota.entries--
		return nil, no
	}
	f.wrote()
	return f, 0
}

func (j *jail) openRegular(
	at place, flag experimentalsys.Oflag, extra int,
) (*file, experimentalsys.Errno) {
	mode := os.O_RDONLY
	switch {
	case flag&experimentalsys.O_RDWR != 0:
		mode = os.O_RDWR
	case flag&experimentalsys.O_WRONLY != 0:
		mode = os.O_WRONLY
	case flag&experimentalsys.O_TRUNC != 0:
		mode = os.O_RDWR
	}
	opened, err := at.root.OpenFile(at.name, mode|extra, 0o600)
	if err != nil {
		return nil, j.failed(err)
	}
	info, err := opened.Stat()
	if err != nil {
		opened.Close()
		return nil, errno(err)
	}
	j.handles++
	f := &file{
		jail: j, file: opened, id: identify(info), path: at.path,
		writable: mode != os.O_RDONLY, appends: flag&experimentalsys.O_APPEND != 0,
	}
	if !at.readOnly {
		f.counted = true
		j.hold(f.id)
	}
	if flag&experimentalsys.O_TRUNC != 0 {
		if no := f.Truncate(0); no != 0 {
			f.Close()
			return nil, no
		}
	}
	return f, 0
}

func (j *jail) hold(id inode) {
	if j.open[id] == nil {
		j.open[id] = &opened{}
	}
	j.open[id].count++
}

// letGo ends a descriptor of a scratch file of that size.
func (j *jail) letGo(id inode, size int64) {
	o := j.open[id]
	if o.count--; o.count > 0 {
		return
	}
	delete(j.open, id)
	if o.removed {
		delete(j.times, id)
		j.quota.take(-size)
	}
}

// fileOffset is int64 by another name: Seek of experimentalsys.File is not that of
// io.Seeker, which a reader of "Seek(int64, int)" would expect.
type fileOffset = int64

// file is an open regular file.
type file struct {
	experimentalsys.UnimplementedFile
	jail     *jail
	file     *os.File
	id       inode
	path     string // by which it was opened
	writable bool
	appends  bool
	counted  bool // in jail.open
	closed   bool
}

// Dev implements experimentalsys.File.
func (f *file) Dev() (uint64, experimentalsys.Errno) { return device, 0 }

// Ino implements experimentalsys.File.
func (f *file) Ino() (sys.Inode, experimentalsys.Errno) { return inodeOf(f.path), 0 }

// IsDir implements experimentalsys.File.
func (f *file) IsDir() (bool, experimentalsys.Errno) { return false, 0 }

// IsAppend implements experimentalsys.File.
func (f *file) IsAppend() bool { return f.appends }

// SetAppend implements experimentalsys.File.
func (f *file) SetAppend(enable bool) experimentalsys.Errno {
	f.appends = enable
	return 0
}

// Stat implements experimentalsys.File.
func (f *file) Stat() (sys.Stat_t, experimentalsys.Errno) {
	info, err := f.file.Stat()
	if err != nil {
		return sys.Stat_t{}, errno(err)
	}
	return f.jail.describe(f.path, info), 0
}

// Read implements experimentalsys.File.
func (f *file) Read(buf []byte) (int, experimentalsys.Errno) {
	if len(buf) == 0 {
		return 0, 0
	}
	n, err := f.file.Read(buf)
	return n, readErrno(err)
}

// Pread implements experimentalsys.File.
func (f *file) Pread(buf []byte, off int64) (int, experimentalsys.Errno) {
	if off < 0 {
		return 0, experimentalsys.EINVAL
	}
	n, err := f.file.ReadAt(buf, off)
	return n, readErrno(err)
}

// readErrno is errno for reading, where the end of a file is none.
func readErrno(err error) experimentalsys.Errno {
	if errors.Is(err, io.EOF) {
		return 0
	}
	return errno(err)
}

// Seek implements experimentalsys.File.
func (f *file) Seek(offset fileOffset, whence int) (int64, experimentalsys.Errno) {
	if whence < io.SeekStart || whence > io.SeekEnd {
		return 0, experimentalsys.EINVAL
	}
	n, err := f.file.Seek(offset, whence)
	return n, errno(err)
}

// Readdir implements experimentalsys.File.
func (f *file) Readdir(int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	return nil, experimentalsys.ENOTDIR
}

// Write implements experimentalsys.File.
func (f *file) Write(buf []byte) (int, experimentalsys.Errno) {
	if !f.writable {
		return 0, experimentalsys.EBADF
	}
	whence := io.SeekCurrent
	if f.appends {
		whence = io.SeekEnd
	}
	off, err := f.file.Seek(0, whence)
	if err != nil {
		return 0, errno(err)
	}
	n, no := f.Pwrite(buf, off)
	if _, err := f.file.Seek(off+int64(n), io.SeekStart); err != nil && no == 0 {
		no = errno(err)
	}
	return n, no
}

// Pwrite implements experimentalsys.File.
func (f *file) Pwrite(buf []byte, off int64) (int, experimentalsys.Errno) {
	switch {
	case !f.writable:
		return 0, experimentalsys.EBADF
	case off < 0 || off > math.MaxInt64-int64(len(buf)):
		return 0, experimentalsys.EINVAL
	case len(buf) == 0:
		return 0, 0
	}
	size, no := f.size()
	if no != 0 {
		return 0, no
	}
	grow := max(off+int64(len(buf))-size, 0)
	if !f.jail.quota.take(grow) {
		return 0, experimentalsys.EIO
	}
	f.wrote()
	n, err := f.file.WriteAt(buf, off)
	if err == nil {
		return n, 0
	}
	if now, no := f.size(); no == 0 {
		f.jail.quota.take(now - size - grow) // what was not written after all
	}
	return n, f.jail.failed(err)
}

// Truncate implements experimentalsys.File.
func (f *file) Truncate(size int64) experimentalsys.Errno {
	switch {
	case !f.writable:
		return experimentalsys.EBADF
	case size < 0:
		return experimentalsys.EINVAL
	}
	old, no := f.size()
	if no != 0 {
		return no
	}
	if !f.jail.quota.take(size - old) {
		return experimentalsys.EIO
	}
	if err := f.file.Truncate(size); err != nil {
		f.jail.quota.take(old - size)
		return f.jail.failed(err)
	}
	f.wrote()
	return 0
}

// wrote notes when the file was changed.
func (f *file) wrote() {
	if f.counted {
		f.jail.times[f.id] = f.jail.clock.unix()
	}
}

func (f *file) size() (int64, experimentalsys.Errno) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, errno(err)
	}
	return info.Size(), 0
}

// Sync implements experimentalsys.File: scratch need not survive a crash.
func (f *file) Sync() experimentalsys.Errno { return 0 }

// Datasync implements experimentalsys.File.
func (f *file) Datasync() experimentalsys.Errno { return 0 }

// Close implements experimentalsys.File.
func (f *file) Close() experimentalsys.Errno {
	if f.closed {
		return 0
	}
	f.closed = true
	f.jail.handles--
	if f.counted {
		size, _ := f.size()
		f.jail.letGo(f.id, size)
	}
	return errno(f.file.Close())
}
