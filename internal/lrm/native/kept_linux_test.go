package native

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// packedState is a state of a directory with a file, a link and an empty directory.
func packedState(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = errors.Join(
		root.Mkdir("empty", 0o700), root.WriteFile("file", []byte("content"), 0o640),
		root.Symlink("file", "link"), root.MkdirAll("ckpt/deep", 0o700),
		root.Chtimes("file", time.Unix(1, 2), time.Unix(1, 2)),
	)
	if err != nil {
		t.Fatal(err)
	}
	files, err := listFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	var state bytes.Buffer
	state.WriteString("imagecontentoutputerr")
	p := packer{to: &state}
	if err := p.finish(kept{
		Version: "v", Machine: "m", Image: 5, Files: files, Stdout: 6, Stderr: 3,
	}); err != nil {
		t.Fatal(err)
	}
	return state.Bytes()
}

// What was packed is laid out as it was, without the states' own directory.
func TestAStateIsLaidOutAsItWas(t *testing.T) {
	t.Parallel()
	state := packedState(t)
	d, err := readKept(bytes.NewReader(state), int64(len(state)))
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "stray"), "of the start")
	if k.root, err = os.OpenRoot(dir); err != nil {
		t.Fatal(err)
	}
	if err := k.layOut(d.Files, bytes.NewReader(state[d.Image:])); err != nil {
		t.Fatal(err)
	}
	again, err := listFiles(k.root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again { // the time of a link is nobody's
		if again[i].Mode.Type() == fs.ModeSymlink {
			again[i].At, d.Files[i].At = time.Time{}, time.Time{}
		}
		again[i].At, d.Files[i].At = again[i].At.UTC(), d.Files[i].At.UTC()
	}
	same(t, "files", again, d.Files)
	if got := holds(t, filepath.Join(dir, "file")); got != "content" {
		t.Errorf("the file holds %q", got)
	}
}

// Paths out of the root or into the states' directory, other kinds of files and sizes that do not
// add up are refused.
func TestForeignStatesAreRefused(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]keptFile{
		"out of the root": {Path: "../x"}, "absolute": {Path: "/x"}, "not clean": {Path: "a/../b"},
		"a state": {Path: "ckpt/state"}, "a device": {Path: "x", Mode: fs.ModeDevice},
		"a directory with content": {Path: "x", Mode: fs.ModeDir, Bytes: 1},
		"a link to nothing":        {Path: "x", Mode: fs.ModeSymlink},
		"too large":                {Path: "x", Bytes: 1}, "less than nothing": {Path: "x", Bytes: -1},
	} {
		var state bytes.Buffer
		p := packer{to: &state}
		if err := p.finish(kept{Files: []keptFile{f}}); err != nil {
			t.Fatal(err)
		}
		_, err := readKept(bytes.NewReader(state.Bytes()), int64(state.Len()))
		if !errors.Is(err, errKept) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := packedState(t)
	for n := range whole {
		if _, err := readKept(bytes.NewReader(whole[:n]), int64(n)); err == nil {
			t.Fatalf("a state cut to %d of %d bytes is taken", n, len(whole))
		}
	}
}

func FuzzReadKept(f *testing.F) {
	f.Add(packedState(f))
	f.Add([]byte(keptMagic))
	f.Fuzz(func(t *testing.T, state []byte) {
		d, err := readKept(bytes.NewReader(state), int64(len(state)))
		if err != nil {
			return
		}
		if sum, ok := d.size(); !ok || sum > int64(len(state)) {
			t.Errorf("a state of %d bytes describes %d", len(state), sum)
		}
		for _, file := range d.Files {
			if !filepath.IsLocal(file.Path) || ofStates(file.Path) {
				t.Errorf("path %q", file.Path)
			}
		}
	})
}
