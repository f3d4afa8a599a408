package wasm

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

func bindOf(sandboxPath, hostPath string) lrm.Bind {
	return lrm.Bind{SandboxPath: sandboxPath, HostPath: hostPath}
}

func openJail(t testing.TB, scratch string, disk int64, binds ...lrm.Bind) *jail {
	t.Helper()
	j, err := newJail(scratch, binds, disk)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

const rw = experimentalsys.O_RDWR | experimentalsys.O_CREAT

func TestJailPaths(t *testing.T) {
	dir := t.TempDir()
	scratch, data := filepath.Join(dir, "work"), filepath.Join(dir, "data")
	for _, d := range []string{
		scratch, data, filepath.Join(scratch, "in"), filepath.Join(data, "sub"),
	} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{
		filepath.Join(dir, "secret"), filepath.Join(data, "f"), filepath.Join(dir, "over"),
	} {
		if err := os.WriteFile(f, []byte(filepath.Base(f)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := openJail(t, scratch, 1<<20, lrm.Bind{SandboxPath: "/in/data", HostPath: data, Dir: true},
		bindOf("/in/data/sub/over", filepath.Join(dir, "over")))
	tests := []struct {
		path string
		flag experimentalsys.Oflag
		want experimentalsys.Errno
	}{
		{"in/data/f", 0, 0},
		{"in/data/sub/over", 0, 0},
		{"/in//data/./f", 0, 0},
		{"in/data/f/", 0, experimentalsys.ENOTDIR},
		{"in/data/f/x", 0, experimentalsys.ENOTDIR},
		{"in/data/sub/over/x", 0, experimentalsys.ENOTDIR},
		{"in/data/f", experimentalsys.O_RDWR, experimentalsys.EROFS},
		{"in/data/f", experimentalsys.O_TRUNC, experimentalsys.EROFS},
		{"in/data/new", rw, experimentalsys.EROFS},
		{"in/data/f", experimentalsys.O_DIRECTORY, experimentalsys.ENOTDIR},
		{"in/data/../../../secret", 0, experimentalsys.ENOENT},
		{"../secret", 0, experimentalsys.ENOENT},
		{"in", experimentalsys.O_RDWR, experimentalsys.EISDIR},
		{"new", rw | experimentalsys.O_EXCL, 0},
		{"new", rw | experimentalsys.O_EXCL, experimentalsys.EEXIST},
		{"new/x", rw, experimentalsys.ENOTDIR},
		{"no/x", rw, experimentalsys.ENOENT},
		{"a\x00b", rw, experimentalsys.EINVAL},
		{strings.Repeat("x", 300), rw, experimentalsys.ENAMETOOLONG},
	}
	for _, tt := range tests {
		f, no := j.OpenFile(tt.path, tt.flag, 0o600)
		if no == 0 {
			f.Close()
		}
		if no != tt.want {
			t.Errorf("open %q %v: %v, want %v", tt.path, tt.flag, no, tt.want)
		}
	}
	if no := j.Rename("in", "elsewhere"); no != experimentalsys.EPERM {
		t.Errorf("rename of what holds an input: %v", no)
	}
	if no := j.Rmdir("in"); no != experimentalsys.ENOTEMPTY {
		t.Errorf("removal of what holds an input: %v", no)
	}
}

func TestJailListsBinds(t *testing.T) {
	dir := t.TempDir()
	hidden := filepath.Join(dir, "f")
	if err := os.WriteFile(hidden, []byte("input"), 0o600); err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(dir, "work")
	if err := os.MkdirAll(filepath.Join(scratch, "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	j := openJail(t, scratch, 1<<20, bindOf("/c", hidden), bindOf("/a", hidden))
	root, no := j.OpenFile(".", 0, 0)
	if no != 0 {
		t.Fatal(no)
	}
	var names []string
	for range 2 { // from the start again after Seek
		names = nil
		for {
			entries, no := root.Readdir(1)
			if no != 0 {
				t.Fatal(no)
			}
			if len(entries) == 0 {
				break
			}
			names = append(names, entries[0].Name)
		}
		if _, no := root.Seek(0, io.SeekStart); no != 0 {
			t.Fatal(no)
		}
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("names = %q, want a b c", got)
	}
}

// TestJailAgainstTwin plays random operations on the jail and on a map.
func TestJailAgainstTwin(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		//nolint:usetesting // one for each check, not for the whole test
		scratch, err := os.MkdirTemp(base, "")
		if err != nil {
			rt.Fatal(err)
		}
		const limit = 1000
		twin := &twin{files: make(map[string][]byte), limit: limit}
		j := openJail(t, scratch, limit)
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				n, off := name.Draw(rt, "name"), rapid.IntRange(0, 300).Draw(rt, "offset")
				data := bytes.Repeat([]byte("x"), rapid.IntRange(1, 300).Draw(rt, "length"))
				same(rt, "write", writeAt(j, n, data, int64(off)), twin.write(n, data, off))
			},
			"truncate": func(rt *rapid.T) {
				n, size := name.Draw(rt, "name"), rapid.IntRange(0, 600).Draw(rt, "size")
				same(rt, "truncate", truncate(j, n, int64(size)), twin.truncate(n, size))
			},
			"remove": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				same(rt, "remove", j.Unlink(n) == 0, twin.remove(n))
			},
			"rename": func(rt *rapid.T) {
				from, to := name.Draw(rt, "from"), name.Draw(rt, "to")
				same(rt, "rename", j.Rename(from, to) == 0, twin.rename(from, to))
			},
			"": func(rt *rapid.T) { twin.check(rt, j, scratch) },
		})
		if err := os.RemoveAll(scratch); err != nil {
			rt.Fatal(err)
		}
	})
}

func same(rt *rapid.T, what string, got, want bool) {
	if got != want {
		rt.Fatalf("%s: done %v, the twin %v", what, got, want)
	}
}

func writeAt(j *jail, name string, data []byte, off int64) bool {
	f, no := j.OpenFile(name, rw, 0)
	if no != 0 {
		return false
	}
	defer f.Close()
	n, no := f.Pwrite(data, off)
	return no == 0 && n == len(data)
}

func truncate(j *jail, name string, size int64) bool {
	f, no := j.OpenFile(name, rw, 0)
	if no != 0 {
		return false
	}
	defer f.Close()
	return f.Truncate(size) == 0
}

// twin is the file system as a map.
type twin struct {
	files map[string][]byte
	limit int
}

func (w *twin) used() int {
	sum := 0
	for _, content := range w.files {
		sum += len(content)
	}
	return sum
}

func (w *twin) resize(name string, size int) bool {
	content := w.files[name]
	w.files[name] = content // opening made it
	if size > len(content) && w.used()+size-len(content) > w.limit {
		return false
	}
	w.files[name] = append(
		content[:min(size, len(content)):min(size, len(content))],
		make([]byte, max(size-len(content), 0))...,
	)
	return true
}

func (w *twin) truncate(name string, size int) bool { return w.resize(name, size) }

func (w *twin) write(name string, data []byte, off int) bool {
	if !w.resize(name, max(len(w.files[name]), off+len(data))) {
		return false
	}
	copy(w.files[name][off:], data)
	return true
}

func (w *twin) remove(name string) bool {
	_, ok := w.files[name]
	delete(w.files, name)
	return ok
}

func (w *twin) rename(from, to string) bool {
	content, ok := w.files[from]
	if !ok {
		return false
	}
	delete(w.files, from)
	w.files[to] = content
	return true
}

func (w *twin) check(rt *rapid.T, j *jail, scratch string) {
	if int64(w.used()) != j.quota.used || len(w.files) != j.quota.entries {
		rt.Fatalf(
			"quota says %d bytes in %d files, there are %d in %d", j.quota.used, j.quota.entries, w.used(),
			len(w.files),
		)
	}
	found := 0
	err := filepath.WalkDir(scratch, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found++
		content, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(content, w.files[d.Name()]) {
			rt.Errorf("%s differs from the twin", d.Name())
		}
		return err
	})
	if err != nil || found != len(w.files) {
		rt.Fatalf("%d files, the twin has %d; %v", found, len(w.files), err)
	}
}

func TestQuotaOfOpenRemovedFile(t *testing.T) {
	j := openJail(t, t.TempDir(), 100)
	f, no := j.OpenFile("f", rw, 0)
	if no != 0 {
		t.Fatal(no)
	}
	if _, no := f.Write(make([]byte, 60)); no != 0 {
		t.Fatal(no)
	}
	if no := j.Unlink("f"); no != 0 {
		t.Fatal(no)
	}
	if j.quota.used != 60 {
		t.Errorf("used = %d while the file is open, want 60", j.quota.used)
	}
	f.Close()
	if j.quota.used != 0 {
		t.Errorf("used = %d after closing, want 0", j.quota.used)
	}
}
