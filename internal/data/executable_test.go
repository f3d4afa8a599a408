package data

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// mayRun is the owner's x bit of a file.
func mayRun(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&0o100 != 0
}

// TestExecutableFilesStayExecutable moves files of no, one and several blocks between
// sites.
func TestExecutableFilesStayExecutable(t *testing.T) {
	t.Parallel()
	a, b := newSite(t, nil), newSite(t, nil)
	b.knows(a)
	for _, size := range []int{0, 20, chunkBytes, 3*chunkBytes + 1} {
		content := noise(7, size)
		plain := mustAdd(t, a.Store, content)
		ref, err := a.AddExecutable(within(t), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if !ref.Executable || ref.Dir || ref.Bytes != int64(size) || plain.Executable ||
			ref.CID == plain.CID {
			t.Errorf("%d bytes: %+v, and without the bit %+v", size, ref, plain)
		}
		mustFetch(t, b.Store, ref.CID, a.id)
		if got, err := b.Stat(ref.CID); err != nil || got != ref {
			t.Errorf("%d bytes: fetched %+v, %v; want %+v", size, got, err, ref)
		}
		if got := mustCat(t, b.Store, ref.CID); !bytes.Equal(got, content) {
			t.Errorf("%d bytes came as %d", size, len(got))
		}
		to := filepath.Join(t.TempDir(), "program")
		if err := b.Export(within(t), ref.CID, to); err != nil || !mayRun(t, to) {
			t.Errorf("%d bytes: exported without the x bit, %v", size, err)
		}
		if err := a.Export(within(t), plain.CID, to+"2"); err != nil || mayRun(t, to+"2") {
			t.Errorf("%d bytes: plain ones are exported with the x bit, %v", size, err)
		}
	}
}

// TestDirectoriesKeepEachFilesBit compares the three ways into the store, and the way out.
func TestDirectoriesKeepEachFilesBit(t *testing.T) {
	t.Parallel()
	a := newSite(t, nil)
	files := map[string]string{"bin/run": "#!/bin/sh\n", "bin/data": "1", "z": "2"}
	plain, err := a.AddDir(within(t), writeTree(t, files))
	if err != nil {
		t.Fatal(err)
	}
	dir := writeTree(t, files)
	if err = os.Chmod(filepath.Join(dir, "bin/run"), 0o751); err != nil {
		t.Fatal(err)
	}
	ref, err := a.AddDir(within(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	if ref.CID == plain.CID || ref.Executable {
		t.Errorf("with an executable file %+v, without %+v", ref, plain)
	}
	r, err := a.Tar(within(t), ref.CID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if again, wrong := a.AddTar(within(t), r); wrong != nil || again != ref {
		t.Errorf("AddTar of Tar = %+v, %v; want %+v", again, wrong, ref)
	}
	to := filepath.Join(t.TempDir(), "out")
	if err = a.Export(within(t), ref.CID, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"bin/run": true, "bin/data": false, "z": false} {
		if mayRun(t, filepath.Join(to, name)) != want {
			t.Errorf("%s: the x bit is not %v", name, want)
		}
	}
}

// TestNamesOfPlainDataStay keeps what was stored before there was an x bit under its
// name: these were taken from that version.
func TestNamesOfPlainDataStay(t *testing.T) {
	t.Parallel()
	a := newSite(t, nil)
	for size, want := range map[int]string{
		20:               "bafkreif7rhfoiinovjgnbv34ro7qeokm3llzo5gfvfpixan36r2wnylv64",
		3*chunkBytes + 1: "bafybeia52rywj6rl3etmbxpbeuuui2rpwps6za4omgbqwh7gi6pdqfgtia",
	} {
		if got := mustAdd(t, a.Store, noise(7, size)); string(got.CID) != want {
			t.Errorf("%d bytes are called %s, want %s", size, got.CID, want)
		}
	}
	ref, err := a.AddDir(within(t), writeTree(t, map[string]string{"x/y": "1", "z": "2"}))
	if want := "bafybeiayl4e2zryaidxfvebj7qvhllbzkcuvtymn7eiu3y4ql63irrchji"; err != nil ||
		string(ref.CID) != want {
		t.Errorf("the directory is called %s, want %s; %v", ref.CID, want, err)
	}
}
