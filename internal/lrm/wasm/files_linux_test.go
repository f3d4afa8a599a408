package wasm

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	wasi "github.com/tetratelabs/wazero/experimental/sys"
)

// A file is read and written where it should be, what it may not do it does not, and the space
// it takes follows its size.
func TestReadingAndWriting(t *testing.T) {
	t.Parallel()
	j, scratch := furnished(t)
	f := mustOpen(t, j, "file", wasi.O_RDWR)
	text := func() string {
		all, err := os.ReadFile(scratch + "/file")
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	buffer := make([]byte, 4)
	for i, c := range []struct {
		do    func() (int64, wasi.Errno)
		n     int64
		no    wasi.Errno
		after string
	}{
		{func() (int64, wasi.Errno) { return whole(f.Read(buffer)) }, 4, 0, "0123456789"},
		{func() (int64, wasi.Errno) { return whole(f.Read(nil)) }, 0, 0, "0123456789"},
		{func() (int64, wasi.Errno) { return whole(f.Write([]byte("ab"))) }, 2, 0, "0123ab6789"},
		{func() (int64, wasi.Errno) { return f.Seek(0, io.SeekCurrent) }, 6, 0, "0123ab6789"},
		{func() (int64, wasi.Errno) { return f.Seek(-1, io.SeekEnd) }, 9, 0, "0123ab6789"},
		{func() (int64, wasi.Errno) { return whole(f.Write([]byte("cd"))) }, 2, 0, "0123ab678cd"},
		{func() (int64, wasi.Errno) { return f.Seek(0, 3) }, 0, wasi.EINVAL, "0123ab678cd"},
		{func() (int64, wasi.Errno) { return f.Seek(0, -1) }, 0, wasi.EINVAL, "0123ab678cd"},
		{func() (int64, wasi.Errno) { return f.Seek(1, io.SeekStart) }, 1, 0, "0123ab678cd"},
		{func() (int64, wasi.Errno) { return 0, f.SetAppend(true) }, 0, 0, "0123ab678cd"},
		{func() (int64, wasi.Errno) { return whole(f.Write([]byte("e"))) }, 1, 0, "0123ab678cde"},
		{func() (int64, wasi.Errno) { return f.Seek(0, io.SeekCurrent) }, 12, 0, "0123ab678cde"},
		{func() (int64, wasi.Errno) { return whole(f.Pwrite([]byte("xy"), 0)) }, 2, 0, "xy23ab678cde"},
		{func() (int64, wasi.Errno) { return whole(f.Pwrite(nil, 99)) }, 0, 0, "xy23ab678cde"},
		{
			func() (int64, wasi.Errno) { return whole(f.Pwrite([]byte("x"), -1)) }, 0,
			wasi.EINVAL, "xy23ab678cde",
		},
		{
			func() (int64, wasi.Errno) { return whole(f.Pwrite([]byte("x"), math.MaxInt64)) }, 0,
			wasi.EINVAL, "xy23ab678cde",
		},
		{
			func() (int64, wasi.Errno) { return whole(f.Pwrite([]byte("x"), 1000)) }, 0,
			wasi.EIO, "xy23ab678cde",
		},
		{func() (int64, wasi.Errno) { return whole(f.Pread(buffer, 9)) }, 3, 0, "xy23ab678cde"},
		{
			func() (int64, wasi.Errno) { return whole(f.Pread(buffer, -1)) }, 0,
			wasi.EINVAL, "xy23ab678cde",
		},
		{func() (int64, wasi.Errno) { return whole(f.Read(buffer)) }, 0, 0, "xy23ab678cde"},
		{func() (int64, wasi.Errno) { return 0, f.Truncate(2) }, 0, 0, "xy"},
		{
			func() (int64, wasi.Errno) { return 0, f.Truncate(-1) }, 0, wasi.EINVAL, "xy",
		},
		{
			func() (int64, wasi.Errno) { return 0, f.Truncate(1000) }, 0, wasi.EIO, "xy",
		},
		{func() (int64, wasi.Errno) { return 0, f.Truncate(4) }, 0, 0, "xy\x00\x00"},
		{func() (int64, wasi.Errno) { return 0, f.Sync() | f.Datasync() }, 0, 0, "xy\x00\x00"},
	} {
		if n, no := c.do(); n != c.n || no != c.no {
			t.Errorf("step %d: %d, %v, want %d, %v", i, n, no, c.n, c.no)
		}
		if got := text(); got != c.after || j.quota.used != int64(1+len(got)) {
			t.Errorf("step %d: %q with %d bytes used, want %q", i, got, j.quota.used, c.after)
		}
	}
}

// What is told of an open file is so, until it is closed.
func TestAnOpenFile(t *testing.T) {
	t.Parallel()
	j, _ := furnished(t)
	f := mustOpen(t, j, "file", wasi.O_RDWR|appends)
	isDir, no := f.IsDir()
	_, listed := f.Readdir(1)
	st, wrong := f.Stat()
	dev, _ := f.Dev()
	ino, _ := f.Ino()
	if isDir || no != 0 || listed != wasi.ENOTDIR || wrong != 0 || st.Size != 10 ||
		st.Dev != dev || st.Ino != ino || ino == 0 || !f.IsAppend() {
		t.Errorf("it is a directory: %v, listed: %v, %+v", isDir, listed, st)
	}
	for range 2 {
		if no = f.Close(); no != 0 || len(j.open) != 0 {
			t.Errorf("closed: %v, %v are open", no, j.open)
		}
	}
	if _, no = f.Read(make([]byte, 4)); no != wasi.EBADF {
		t.Errorf("read after its end: %v", no)
	}
	if _, no = f.Stat(); no == 0 {
		t.Error("told after its end")
	}
}

// Who did not open a file to write does not, of its own files and of inputs.
func TestWritingWithoutARight(t *testing.T) {
	t.Parallel()
	j, scratch := furnished(t)
	for _, name := range []string{"file", "in/data"} {
		f := mustOpen(t, j, name, ro)
		_, wrote := f.Write([]byte("x"))
		_, put := f.Pwrite([]byte("x"), 0)
		if cut := f.Truncate(0); wrote != wasi.EBADF || put != wrote || cut != wrote {
			t.Errorf("%s is written without a right: %v, %v, %v", name, wrote, put, cut)
		}
		if held := len(j.open); (held == 1) != (name == "file") {
			t.Errorf("%s: %d are counted as open", name, held)
		}
		f.Close()
	}
	f := mustOpen(t, j, "file", wo|appends)
	defer f.Close()
	n, no := f.Write([]byte("!"))
	text, err := os.ReadFile(scratch + "/file")
	if n != 1 || no != 0 || err != nil || string(text) != "0123456789!" {
		t.Errorf("appended %d, %v: %q, %v", n, no, text, err)
	}
}

func mustOpen(t *testing.T, j *jail, name string, flag wasi.Oflag) wasi.File {
	t.Helper()
	f, no := j.OpenFile(name, flag, 0)
	if no != 0 {
		t.Fatalf("open %s: %v", name, no)
	}
	return f
}

func whole(n int, no wasi.Errno) (int64, wasi.Errno) { return int64(n), no }

// The space of a file that has no name any more is free with its last descriptor, not before.
func TestSpaceOfWhatIsOpen(t *testing.T) {
	t.Parallel()
	j, _ := furnished(t)
	var files []wasi.File
	for range 2 {
		files = append(files, mustOpen(t, j, "file", wasi.O_RDWR))
	}
	if no := j.Rename("dir/file", "file"); no != 0 || j.quota.used != 11 || j.quota.entries != 6 {
		t.Errorf("%v: %d bytes in %d entries", no, j.quota.used, j.quota.entries)
	}
	if _, no := files[0].Pwrite([]byte("more"), 10); no != 0 || j.quota.used != 15 {
		t.Errorf("%v: %d bytes", no, j.quota.used)
	}
	for i, want := range []int64{15, 1} {
		if files[i].Close(); j.quota.used != want {
			t.Errorf("after descriptor %d are %d bytes used, want %d", i, j.quota.used, want)
		}
	}
}

// A directory is listed in order, in parts of any size, with its inputs in place of what they
// hide; from the start again when it is asked.
func TestListingDirectories(t *testing.T) {
	t.Parallel()
	j, scratch := furnished(t)
	for _, name := range []string{"/in/data", "/in/own"} {
		if err := os.WriteFile(scratch+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := mustOpen(t, j, "in", ro)
	list := func(n int) string {
		t.Helper()
		entries, no := d.Readdir(n)
		if no != 0 {
			t.Fatal(no)
		}
		var all []string
		for _, e := range entries {
			all = append(all, fmt.Sprint(e.Name, " ", e.Type.IsDir(), " ", e.Ino > 0))
		}
		return strings.Join(all, ", ")
	}
	const data, own, tree = "data false true", "own false true", "tree true true"
	for i, c := range []struct {
		n    int
		want string
	}{{2, data + ", " + own}, {1, tree}, {1, ""}, {-1, ""}} {
		if got := list(c.n); got != c.want {
			t.Errorf("part %d: %q, want %q", i, got, c.want)
		}
	}
	for _, c := range []struct {
		offset int64
		whence int
		want   wasi.Errno
	}{
		{1, io.SeekStart, wasi.EINVAL},
		{0, io.SeekEnd, wasi.EINVAL},
		{0, io.SeekStart, 0},
	} {
		if at, no := d.Seek(c.offset, c.whence); at != 0 || no != c.want {
			t.Errorf("seek %d from %d: %d, %v, want %v", c.offset, c.whence, at, no, c.want)
		}
	}
	if got := list(0); got != strings.Join([]string{data, own, tree}, ", ") {
		t.Errorf("all: %q", got)
	}
	st, no := d.Stat()
	dev, _ := d.Dev()
	ino, _ := d.Ino()
	if no != 0 || !st.Mode.IsDir() || st.Dev != dev || st.Ino != ino || ino == 0 ||
		d.Sync() != 0 || d.Datasync() != 0 || d.Close() != 0 || d.Utimens(5, 6) != 0 {
		t.Errorf("%+v, %v", st, no)
	}
	if info, err := os.Stat(scratch + "/in"); err != nil || !info.ModTime().Equal(time.Unix(0, 6)) {
		t.Errorf("its time is %v, %v", info, err)
	}
	empty := mustOpen(t, j, "empty", ro)
	if err := os.Remove(scratch + "/empty"); err != nil {
		t.Fatal(err)
	}
	if _, no := empty.Readdir(1); no != wasi.ENOENT {
		t.Errorf("one that is gone is listed: %v", no)
	}
	if _, no := empty.Stat(); no != wasi.ENOENT {
		t.Errorf("one that is gone is told: %v", no)
	}
}
