package data

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A reader that has ended says so to who asks for something, and to nobody else.
func TestReadersGiveWholeBytes(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	ref := mustAdd(t, s.Store, []byte("content"))
	ctx, cancel := context.WithCancel(within(t))
	r, err := s.Cat(ctx, ref.CID)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 20)
	for _, want := range []struct {
		into int
		text string
		err  error
	}{{0, "", nil}, {3, "con", nil}, {20, "tent", nil}, {0, "", nil}, {20, "", io.EOF}} {
		n, wrong := r.Read(p[:want.into])
		if string(p[:n]) != want.text || !errors.Is(wrong, want.err) {
			t.Errorf("up to %d bytes: %q, %v; want %q, %v", want.into, p[:n], wrong, want.text, want.err)
		}
	}
	if err = r.Close(); err != nil {
		t.Error(err)
	}
	if !s.Has(ref.CID) {
		t.Error("reading to the end takes the data off the held")
	}
	other, err := s.Cat(ctx, ref.CID)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if n, err := other.Read(p); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %d, %v; want 0 and the context's error", n, err)
	}
	_ = other.Close()
	wantIdle(t, s.Store)
}

// What cannot be read leaves nothing under way.
func TestReadingFails(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	dir, err := s.AddTar(within(t), bytes.NewReader(tarOf(t, tarFileEntry{name: "x"})))
	if err != nil {
		t.Fatal(err)
	}
	split := pbNode(t, shardContent(t, 2))
	shard := gridCID(split.Cid())
	hostile(t, s.Store, split)
	if _, err = s.enter(split.Cid()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		c    grid.CID
		want error
	}{
		{dir.CID, ErrUnsupported},
		{shard, ErrUnsupported},
		{"no-cid", ErrUnsupported},
		{gridCID(hashed(t, cid.Raw, 0x12, 32)), ErrNotHeld},
	} {
		if r, err := s.Cat(within(t), tt.c); r != nil || !errors.Is(err, tt.want) {
			t.Errorf("Cat(%s) = %v, %v; want %v", tt.c, r, err, tt.want)
		}
	}
	if r, err := s.Tar(within(t), "no-cid"); r != nil || !errors.Is(err, ErrUnsupported) {
		t.Errorf("Tar of no CID = %v, %v", r, err)
	}
	wantIdle(t, s.Store)
	s.closed = true
	if _, err := s.Cat(within(t), dir.CID); !errors.Is(err, ErrClosed) {
		t.Errorf("Cat of a closed store: %v", err)
	}
	if _, err := s.Tar(within(t), dir.CID); !errors.Is(err, ErrClosed) {
		t.Errorf("Tar of a closed store: %v", err)
	}
}

// A root whose block is gone is held no longer, once somebody wanted to read it.
func TestReadingFindsWhatIsGone(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	for name, read := range map[string]func(grid.CID) error{
		"Cat": func(c grid.CID) error { _, err := s.Cat(within(t), c); return err },
		"Tar": func(c grid.CID) error {
			r, err := s.Tar(within(t), c)
			if err == nil {
				_, err = io.ReadAll(r)
				_ = r.Close()
			}
			return err
		},
		"Export": func(c grid.CID) error { return s.Export(within(t), c, t.TempDir()+"/x") },
	} {
		ref, err := s.AddExecutable(within(t), bytes.NewReader([]byte(name)))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(s.blocks.path(digestFor(t, rootOf(t, ref.CID)))); err != nil {
			t.Fatal(err)
		}
		if err := read(ref.CID); !errors.Is(err, ErrNotHeld) {
			t.Errorf("%s: %v, want ErrNotHeld", name, err)
		}
		if s.Has(ref.CID) {
			t.Errorf("%s: it is still called held", name)
		}
		wantIdle(t, s.Store)
	}
}

// fileOf is a file with links to these blocks.
func fileOf(t *testing.T, s *Store, children ...cid.Cid) grid.CID {
	t.Helper()
	f := unixfs.NewFSNode(unixfs.TFile)
	var links []*ipld.Link
	for _, c := range children {
		f.AddBlockSize(1)
		links = append(links, &ipld.Link{Cid: c, Size: 1})
	}
	content, err := f.GetBytes()
	if err != nil {
		t.Fatal(err)
	}
	return hostile(t, s, pbNode(t, content, links...))
}

// A file is made of files: a directory inside of it ends the reading.
func TestFilesHoldNoDirectories(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	one := hostileLeaf(t, s.Store, "1")
	inner := rootOf(t, fileOf(t, s.Store, one, hostileLeaf(t, s.Store, "2")))
	good := fileOf(t, s.Store, inner, one)
	dir := pbNode(t, unixfs.FolderPBData())
	hostile(t, s.Store, dir)
	split := pbNode(t, shardContent(t, 2))
	hostile(t, s.Store, split)
	for c, want := range map[grid.CID]error{
		good: nil, fileOf(t, s.Store, one, dir.Cid()): ErrUnsupported,
		fileOf(t, s.Store, one, split.Cid()): ErrUnsupported,
	} {
		if _, err := s.enter(rootOf(t, c)); err != nil {
			t.Fatal(err)
		}
		r, err := s.Cat(within(t), c)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if !errors.Is(err, want) || want == nil && string(text) != "121" {
			t.Errorf("%q, %v; want %v", text, err, want)
		}
		_ = r.Close()
	}
}

// A file has as many blocks as the limits allow, and what is still to be read is bounded.
func TestReadersAreBounded(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	one := hostileLeaf(t, s.Store, "1")
	c := rootOf(t, fileOf(t, s.Store, one, one, one))
	for nodes, want := range map[int]error{4: nil, 3: ErrTooLarge} {
		s.cfg.Limits.Nodes = nodes
		text, err := io.ReadAll(s.newFileReader(t.Context(), c))
		if !errors.Is(err, want) || want == nil && string(text) != "111" {
			t.Errorf("four blocks of %d: %q, %v; want %v", nodes, text, err, want)
		}
	}
	const most = 16 * 1024 * 256 // what is still to be read of as many levels, each of them full
	s.cfg.Limits.Nodes = 10
	for n, want := range map[int]error{most: nil, most + 1: ErrTooLarge} {
		r := s.newFileReader(t.Context(), one)
		r.todo = make([]cid.Cid, n)
		r.todo[n-1] = one
		if err := r.next(); !errors.Is(err, want) || want == nil && string(r.now) != "1" {
			t.Errorf("%d blocks are to be read: %q, %v; want %v", n, r.now, err, want)
		}
	}
}

// headersOf reads a tar stream.
func headersOf(t *testing.T, s *Store, c grid.CID) (headers []*tar.Header, raw []byte) {
	t.Helper()
	r, err := s.Tar(within(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if raw, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return headers, raw
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
	}
}

// A tar stream has the entries by name, with one of two modes for files, and its own end.
func TestTarStreams(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	dir := writeTree(t, map[string]string{"b/run": "12345", "a": "1", "e/": ""})
	if err := os.Chmod(dir+"/b/run", 0o700); err != nil {
		t.Fatal(err)
	}
	ref, err := s.AddDir(within(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	headers, raw := headersOf(t, s.Store, ref.CID)
	want := []tar.Header{
		{Name: "a", Typeflag: tar.TypeReg, Size: 1, Mode: 0o644},
		{Name: "b/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "b/run", Typeflag: tar.TypeReg, Size: 5, Mode: 0o755},
		{Name: "e/", Typeflag: tar.TypeDir, Mode: 0o755},
	}
	if len(headers) != len(want) {
		t.Fatalf("%d entries, want %d", len(headers), len(want))
	}
	for i, h := range headers {
		if h.Name != want[i].Name || h.Typeflag != want[i].Typeflag || h.Size != want[i].Size ||
			h.Mode != want[i].Mode {
			t.Errorf("entry %d is %s, %d bytes, mode %o; want %+v", i, h.Name, h.Size, h.Mode, want[i])
		}
	}
	if end := make([]byte, 1024); !bytes.HasSuffix(raw, end) || len(raw)%512 != 0 {
		t.Errorf("the stream of %d bytes has no end", len(raw))
	}
	file := mustAdd(t, s.Store, []byte("1"))
	if headers, _ := headersOf(t, s.Store, file.CID); len(headers) != 1 ||
		headers[0].Name != string(file.CID) {
		t.Errorf("a file's stream has %d entries, the first %s; want it named by its CID",
			len(headers), headers[0].Name)
	}
	wantIdle(t, s.Store)
}

// Who closes a tar stream before its end has let go of the data.
func TestTarStreamsEndEarly(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	ref := mustAdd(t, s.Store, noise(1, 4*chunkBytes))
	for range 20 {
		r, err := s.Tar(within(t), ref.CID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		wantIdle(t, s.Store)
	}
}
