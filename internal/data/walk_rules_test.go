package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
)

// visits notes what it is told of.
type visits struct{ names []string }

func (v *visits) dir(name string) error { v.names = append(v.names, name+"/"); return nil }

func (v *visits) file(name string, _ node, _ io.Reader) error {
	v.names = append(v.names, name)
	return nil
}

// Going through a graph is bounded as taking it in is: by its entries, levels and bytes.
func TestLimitsOfWhatIsVisited(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	ref, err := s.AddTar(within(t), bytes.NewReader(tarOf(t,
		tarFileEntry{name: "a/b/c", content: "12345"}, tarFileEntry{name: "d", content: "12345"})))
	if err != nil {
		t.Fatal(err)
	}
	root := rootOf(t, ref.CID)
	whole := Limits{Files: 4, Bytes: 10, Depth: 2, Nodes: 100}
	for name, tt := range map[string]struct {
		change func(*Limits)
		want   error
	}{
		"as many as there are": {func(*Limits) {}, nil},
		"an entry less":        {func(l *Limits) { l.Files-- }, ErrTooLarge},
		"a byte less":          {func(l *Limits) { l.Bytes-- }, ErrTooLarge},
		"a level less":         {func(l *Limits) { l.Depth-- }, ErrTooLarge},
	} {
		s.cfg.Limits = whole
		tt.change(&s.cfg.Limits)
		v := new(visits)
		err := s.visit(t.Context(), root, v)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if got := strings.Join(v.names, " "); tt.want == nil && got != "a/ a/b/ a/b/c d" {
			t.Errorf("%s: visited %s", name, got)
		}
	}
	s.cfg.Limits = whole
	w := &visitWalk{s: s.Store, v: new(visits), limits: whole}
	leaf := hostileLeaf(t, s.Store, "1")
	if err := w.entry(t.Context(), strings.Repeat("n", maxPathBytes), leaf, 1); err != nil {
		t.Errorf("a path of %d bytes: %v", maxPathBytes, err)
	}
	if err := w.entry(
		t.Context(), strings.Repeat("n", maxPathBytes+1), leaf, 1,
	); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a path of a byte more: %v, want ErrTooLarge", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.visit(ctx, root, new(visits)); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}

// Levels count in describing a graph, too: files may stand one level below the last
// directory.
func TestLevelsOfADescription(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	ref, err := s.AddTar(within(t), bytes.NewReader(tarOf(t,
		tarFileEntry{name: "1/2/x", content: "12345"}, tarFileEntry{name: "y", content: "12"})))
	if err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[int]error{2: nil, 1: ErrTooLarge} {
		s.cfg.Limits.Depth = depth
		got, err := s.describe(rootOf(t, ref.CID))
		if !errors.Is(err, want) || want == nil && (got != ref || got.Bytes != 7 || !got.Dir) ||
			want != nil && (got.Bytes != 0 || got.Dir) {
			t.Errorf("two directories where %d are allowed: %+v, %v; want %v", depth, got, err, want)
		}
	}
}

// A directory that is split is read to a depth of 32; each of its parts is one, and each
// name has the number of its place before it.
func TestPartsOfSplitDirectories(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	leaf := hostileLeaf(t, s.Store, "1")
	shard := func(links ...*ipld.Link) cid.Cid {
		return rootOf(t, hostile(t, s.Store, pbNode(t, shardContent(t, 256), links...)))
	}
	chain := func(depth int) cid.Cid {
		c := shard(&ipld.Link{Name: "00name", Cid: leaf})
		for range depth {
			c = shard(&ipld.Link{Name: "00", Cid: c})
		}
		return c
	}
	dir := rootOf(t, hostile(t, s.Store, pbNode(t, unixfs.FolderPBData())))
	for name, tt := range map[string]struct {
		c    cid.Cid
		want error
	}{
		"32 parts below":        {chain(maxShardDepth), nil},
		"33":                    {chain(maxShardDepth + 1), ErrUnsupported},
		"no place":              {shard(&ipld.Link{Name: "0", Cid: leaf}), ErrUnsupported},
		"a directory as a part": {shard(&ipld.Link{Name: "00", Cid: dir}), ErrUnsupported},
		"a name not allowed":    {shard(&ipld.Link{Name: "00..", Cid: leaf}), ErrUnsupported},
		"a part is missing": {
			shard(&ipld.Link{Name: "00", Cid: hashed(t, cid.DagProtobuf, 0x12, 32)}), ErrNotHeld,
		},
		"a name in two parts": {
			shard(&ipld.Link{Name: "00name", Cid: leaf}, &ipld.Link{Name: "01other", Cid: leaf},
				&ipld.Link{Name: "02name", Cid: leaf}), ErrUnsupported,
		},
	} {
		n, err := s.node(tt.c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.entries(n)
		if !errors.Is(err, tt.want) || tt.want == nil && (len(got) != 1 || got[0].name != "name") {
			t.Errorf("%s: %+v, %v; want %v", name, got, err, tt.want)
		}
	}
	for _, kind := range []nodeKind{kindLeaf, kindFile} {
		if got, err := s.entries(node{kind: kind}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("entries of kind %d: %+v, %v", kind, got, err)
		}
	}
}

// A directory has as many entries as the limits allow files.
func TestEntriesOfADirectory(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	leaf := hostileLeaf(t, s.Store, "1")
	var links []*ipld.Link
	for i := range 5 {
		links = append(links, &ipld.Link{Name: fmt.Sprint(i), Cid: leaf})
	}
	for files, want := range map[int]error{5: nil, 4: ErrUnsupported} {
		s.cfg.Limits.Files = files
		got, err := s.entries(node{kind: kindDir, links: links})
		if !errors.Is(err, want) || want == nil && len(got) != 5 {
			t.Errorf("five entries where %d are allowed: %d, %v; want %v", files, len(got), err, want)
		}
	}
}

// What is exported is the owner's alone, and programs may be run.
func TestModesOfExports(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	dir := writeTree(t, map[string]string{"a/run": "1", "a/data": "2"})
	if err := os.Chmod(filepath.Join(dir, "a/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	ref, err := s.AddDir(within(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	run, err := s.AddExecutable(within(t), strings.NewReader("1"))
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	file := mustAdd(t, s.Store, []byte("1"))
	for name, c := range map[string]Ref{"dir": ref, "run": run, "file": file} {
		if err := s.Export(within(t), c.CID, filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]fs.FileMode{
		"dir": 0o700 | fs.ModeDir, "dir/a": 0o700 | fs.ModeDir, "dir/a/run": 0o700,
		"dir/a/data": 0o600, "run": 0o700, "file": 0o600,
	} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %s, %v; want %s", name, info.Mode(), err, want)
		}
	}
	wantIdle(t, s.Store)
}

// An export that fails leaves nothing behind, and says why.
func TestExportsThatFail(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	file := mustAdd(t, s.Store, noise(1, 3*chunkBytes))
	dir, err := s.AddDir(within(t), writeTree(t, map[string]string{"empty/": ""}))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "x")
	for _, c := range []Ref{file, dir} {
		wrong := s.Export(within(t), c.CID, filepath.Join(to, "below"))
		if !errors.Is(wrong, fs.ErrNotExist) || errors.Is(wrong, errExists) {
			t.Errorf("into what is not there: %v", wrong)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if wrong = s.Export(ctx, c.CID, to); !errors.Is(wrong, context.Canceled) {
			t.Errorf("after its context: %v", wrong)
		}
		if _, wrong = os.Lstat(to); !errors.Is(wrong, fs.ErrNotExist) {
			t.Errorf("it left something: %v", wrong)
		}
	}
	if err := os.Remove(s.blocks.path(leavesOf(t, s.Store, file.CID)[2])); err != nil {
		t.Fatal(err)
	}
	if err := s.Export(within(t), file.CID, to); !errors.Is(err, ErrNotHeld) || s.Has(file.CID) {
		t.Errorf("a block is gone: %v, held %t", err, s.Has(file.CID))
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file is left: %v", err)
	}
	if err := os.WriteFile(to, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := mustAdd(t, s.Store, []byte("other"))
	if err := s.Export(within(t), other.CID, to); !errors.Is(err, errExists) {
		t.Errorf("onto a file: %v, want errExists", err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "mine" {
		t.Errorf("what was there is %q, %v", text, err)
	}
	wantIdle(t, s.Store)
}

// Who fills a file hears what was wrong: with the data as it is, with the disk in words.
func TestFillingAFile(t *testing.T) {
	t.Parallel()
	create := func() *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	fails := func(err error) io.Reader {
		return readerFunc(func([]byte) (int, error) { return 0, err })
	}
	for _, want := range []error{ErrNotHeld, context.Canceled} {
		err := copyFile(create(), fails(want))
		if !errors.Is(err, want) || err.Error() != want.Error() {
			t.Errorf("%v became %v", want, err)
		}
	}
	if err := copyFile(create(), fails(syscall.ENOSPC)); !errors.Is(err, ErrDiskFull) {
		t.Errorf("a full disk: %v, want ErrDiskFull", err)
	}
	if err := copyFile(create(), fails(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) ||
		!strings.Contains(err.Error(), "write data") {
		t.Errorf("another error: %v", err)
	}
	f := create()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(f, strings.NewReader("")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a file that cannot be closed: %v", err)
	}
	f = create()
	if err := copyFile(f, strings.NewReader("text")); err != nil {
		t.Errorf("text: %v", err)
	}
	if err := f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}

// Names inside data that would lead out of the directory are refused, and nothing in it is
// written twice.
func TestExportsStayInside(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	v := exportVisitor{to: root}
	for _, name := range []string{"../x", "/x", "a\x00b"} {
		if err := v.dir(name); !errors.Is(err, ErrUnsupported) {
			t.Errorf("directory %q: %v, want ErrUnsupported", name, err)
		}
		if err := v.file(name, node{}, strings.NewReader("")); !errors.Is(err, ErrUnsupported) {
			t.Errorf("file %q: %v, want ErrUnsupported", name, err)
		}
	}
	for i, want := range []error{nil, errExists} {
		if err := v.dir("d"); !errors.Is(err, want) {
			t.Errorf("time %d: %v, want %v", i, err, want)
		}
		if err := v.file("f", node{}, strings.NewReader("")); !errors.Is(err, want) {
			t.Errorf("time %d: %v, want %v", i, err, want)
		}
	}
}
