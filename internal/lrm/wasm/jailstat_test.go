package wasm

import (
	"os"
	"testing"
	"time"

	wasi "github.com/tetratelabs/wazero/experimental/sys"
)

// What a guest is told of its files is the same on every host: not when they were written there,
// where they lie, or how large a directory is.
func TestFilesTellNothingOfTheHost(t *testing.T) {
	t.Parallel()
	for i, at := range []time.Time{time.Unix(5, 0), time.Unix(7_000_000, 0)} {
		scratch := t.TempDir()
		if err := os.WriteFile(scratch+"/old", make([]byte, 7), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(scratch+"/dir", 0o700); err != nil {
			t.Fatal(err)
		}
		for range i * 100 {
			f, err := os.CreateTemp(scratch+"/dir", "")
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		for _, name := range []string{"/old", "/dir"} {
			if err := os.Chtimes(scratch+name, at, at); err != nil {
				t.Fatal(err)
			}
		}
		j := openJail(t, scratch, 1000)
		for path, want := range map[string]int64{"old": 7, "dir": 0} {
			st, no := j.Stat(path)
			if no != 0 || st.Mtim != clockStart || st.Ctim != clockStart || st.Atim != clockStart ||
				st.Dev != device || st.Ino != inodeOf(path) || st.Nlink != 1 || st.Size != want {
				t.Errorf("%s: %+v, %v", path, st, no)
			}
		}
	}
	if inodeOf("a") == inodeOf("b") {
		t.Error("numbers of files do not belong to their paths")
	}
}

// A file is as old as its last change by the guest's own clock, also when it has another name, and
// keeps a time that the guest gives it.
func TestTimesAreTheGuests(t *testing.T) {
	t.Parallel()
	j := openJail(t, t.TempDir(), 1000)
	mtime := func(name string) int64 {
		t.Helper()
		st, no := j.Stat(name)
		if no != 0 {
			t.Fatalf("%s: %v", name, no)
		}
		return st.Mtim - clockStart
	}
	j.clock.now = 10
	f, no := j.OpenFile("new", rw, 0)
	if no != 0 || mtime("new") != 10 {
		t.Fatalf("made at %d, %v", mtime("new"), no)
	}
	j.clock.now = 20
	if _, no := f.Read(make([]byte, 1)); no != 0 || mtime("new") != 10 {
		t.Errorf("read, it is of %d, %v", mtime("new"), no)
	}
	if _, no := f.Write([]byte("x")); no != 0 || mtime("new") != 20 {
		t.Errorf("written, it is of %d, %v", mtime("new"), no)
	}
	j.clock.now = 30
	if no := f.Truncate(0); no != 0 || mtime("new") != 30 {
		t.Errorf("cut, it is of %d, %v", mtime("new"), no)
	}
	j.clock.now = 40
	if st, no := f.Stat(); no != 0 || st.Mtim != clockStart+30 || f.Close() != 0 {
		t.Errorf("open, it is of %d, %v", st.Mtim, no)
	}
	if no := j.Rename("new", "other"); no != 0 || mtime("other") != 30 {
		t.Errorf("renamed, it is of %d, %v", mtime("other"), no)
	}
	for _, at := range []int64{7, wasi.UTIME_OMIT} {
		if no := j.Utimens("other", 1, at); no != 0 || mtime("other")+clockStart != 7 {
			t.Errorf("set, it is of %d, %v", mtime("other"), no)
		}
	}
	if no := j.Unlink("other"); no != 0 || len(j.times) != 0 {
		t.Errorf("removed, it has the times %v, %v", j.times, no)
	}
	if no := j.Mkdir("dir", 0); no != 0 || j.Utimens("dir", 1, 2) != 0 || j.Rmdir("dir") != 0 ||
		len(j.times) != 0 {
		t.Errorf("a directory that is removed leaves %v, %v", j.times, no)
	}
}
