package data

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
)

// newBuilder is a builder of a store with an operation of its own.
func newBuilder(t testing.TB, s *Store) *builder {
	t.Helper()
	ctx, op, err := s.begin(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(op.end)
	return &builder{ctx: ctx, to: op, limits: s.cfg.Limits, top: newTree()}
}

// What stands at a bound of the limits is taken, what stands beyond it is not, and either
// leaves nothing under way.
func TestLimitsOfWhatIsAdded(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, func(c *Config) { c.Limits = Limits{Files: 4, Bytes: 100, Depth: 3} })
	of := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		name    string
		entries []tarFileEntry
		beyond  bool
	}{
		{"four files", []tarFileEntry{{name: "1"}, {name: "2"}, {name: "3"}, {name: "4"}}, false},
		{"files and directories, each once", []tarFileEntry{{name: "a/b/x"}, {name: "a/b/y"}}, false},
		{"five", []tarFileEntry{{name: "a/b/x"}, {name: "a/b/y"}, {name: "z"}}, true},
		{
			"five directories",
			[]tarFileEntry{{name: "a/b/c/", kind: tar.TypeDir}, {name: "d/e/", kind: tar.TypeDir}},
			true,
		},
		{"three levels", []tarFileEntry{{name: "1/2/3/x"}}, false},
		{"four levels", []tarFileEntry{{name: "1/2/3/4/", kind: tar.TypeDir}}, true},
		{
			"as many bytes",
			[]tarFileEntry{{name: "a", content: of(60)}, {name: "b", content: of(40)}},
			false,
		},
		{
			"one byte more",
			[]tarFileEntry{{name: "a", content: of(60)}, {name: "b", content: of(41)}},
			true,
		},
	} {
		_, err := s.AddTar(within(t), bytes.NewReader(tarOf(t, tt.entries...)))
		if (err != nil) != tt.beyond || tt.beyond && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v; want it refused: %t", tt.name, err, tt.beyond)
		}
		wantIdle(t, s.Store)
	}
	if _, err := s.AddFile(within(t), strings.NewReader(of(101))); !errors.Is(err, ErrTooLarge) ||
		!strings.Contains(err.Error(), "100 B") {
		t.Errorf("a file beyond the limit: %v", err)
	}
}

// What is read beyond the bound, or after the end, is not handed on.
func TestBoundedReader(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := &builder{ctx: ctx, limits: Limits{Bytes: 10}}
	r := boundedReader{b: b, r: strings.NewReader("0123456789a")}
	p := make([]byte, 10)
	if n, err := r.Read(p); n != 10 || err != nil {
		t.Errorf("the first ten bytes: %d, %v", n, err)
	}
	if n, err := r.Read(p); n != 0 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("the eleventh: %d, %v; want 0 and ErrTooLarge", n, err)
	}
	cancel()
	r = boundedReader{b: &builder{ctx: ctx, limits: Limits{Bytes: 10}}, r: strings.NewReader("x")}
	if n, err := r.Read(p); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %d, %v; want 0 and the context's error", n, err)
	}
}

// An add whose context ends with the last byte adds nothing.
func TestAddIsCancelledAtItsEnd(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	ctx, cancel := context.WithCancel(within(t))
	last := readerFunc(func(p []byte) (int, error) { cancel(); return copy(p, "end"), io.EOF })
	if ref, err := s.AddFile(ctx, last); !errors.Is(err, context.Canceled) {
		t.Errorf("AddFile = %+v, %v; want the context's error", ref, err)
	}
	if roots := s.Roots(); len(roots) != 0 {
		t.Errorf("it is held: %+v", roots)
	}
	wantIdle(t, s.Store)
	if err := newBuilderOf(ctx).count(); !errors.Is(err, context.Canceled) {
		t.Errorf("counting goes on after the end: %v", err)
	}
}

func newBuilderOf(ctx context.Context) *builder {
	return &builder{ctx: ctx, limits: Limits{Files: 10}}
}

// The caller hears what the reader says is wrong, with the x bit and without it.
func TestAddFailsWithItsReader(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	broken := errors.New("broken")
	bad := func() io.Reader {
		return io.MultiReader(strings.NewReader("begin"),
			readerFunc(func([]byte) (int, error) { return 0, broken }))
	}
	if _, err := s.AddFile(within(t), bad()); !errors.Is(err, broken) {
		t.Errorf("AddFile: %v, want the reader's error", err)
	}
	if _, err := s.AddExecutable(within(t), bad()); !errors.Is(err, broken) {
		t.Errorf("AddExecutable: %v, want the reader's error", err)
	}
	if _, err := s.AddDir(
		within(t), filepath.Join(t.TempDir(), "none"),
	); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("AddDir of what is not there: %v", err)
	}
	wantIdle(t, s.Store)
	if err := s.log.close(); err != nil {
		t.Fatal(err)
	}
	if ref, err := s.AddFile(within(t), strings.NewReader("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a root that cannot be noted: %+v, %v", ref, err)
	}
}

// A directory is split when its names and CIDs take more than 256 KiB.
func TestWhereDirectoriesAreSplit(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	b := newBuilder(t, s.Store)
	empty, err := b.file(strings.NewReader(""), false)
	if err != nil {
		t.Fatal(err)
	}
	const each = 256 // of a name and its CID
	at := newTree()
	for i := range shardBytes / each {
		at.files[fmt.Sprintf("%0*d", each-empty.Cid.ByteLen(), i)] = empty
	}
	kind := func() nodeKind {
		link, err := b.dir(at)
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.node(link.Cid)
		if err != nil {
			t.Fatal(err)
		}
		if n.kind == kindShard {
			wantVersionOne(t, s.Store, n)
		}
		return n.kind
	}
	if got := kind(); got != kindDir {
		t.Errorf("a directory of 256 KiB is of kind %d, want it whole", got)
	}
	name := fmt.Sprintf("%0*d", each-empty.Cid.ByteLen(), 0)
	delete(at.files, name)
	at.files[name+"0"] = empty
	if got := kind(); got != kindShard {
		t.Errorf("a directory of one byte more is of kind %d, want it split", got)
	}
}

// wantVersionOne checks the CIDs of the shards right below one.
func wantVersionOne(t *testing.T, s *Store, n node) {
	t.Helper()
	shards := 0
	for _, l := range n.links {
		if l.Cid.Type() != cid.DagProtobuf {
			continue
		}
		if shards++; l.Cid.Version() != 1 {
			t.Errorf("shard %s is named by a CID of version %d", l.Cid, l.Cid.Version())
		}
		if _, err := s.shard(l.Cid); err != nil {
			t.Error(err)
		}
	}
	if shards == 0 {
		t.Error("no shard is below the first one")
	}
}

// A path has 4096 bytes and as many levels as the limits allow.
func TestPathsOfDirectories(t *testing.T) {
	t.Parallel()
	whole := maxPathBytes/(maxNameBytes+1) - 1
	long := strings.Repeat(strings.Repeat("n", maxNameBytes)+"/", whole) +
		strings.Repeat("m", maxNameBytes-1) + "/z"
	if len(long) != maxPathBytes {
		t.Fatalf("a path of %d bytes, want %d", len(long), maxPathBytes)
	}
	b := &builder{ctx: t.Context(), limits: Limits{Files: 1000, Depth: 64}, top: newTree()}
	if _, err := b.treeAt(long); err != nil {
		t.Errorf("a path of %d bytes: %v", len(long), err)
	}
	if _, err := b.treeAt(long + "z"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a path of %d bytes: %v, want ErrTooLarge", len(long)+1, err)
	}
	if at, err := b.treeAt(""); err != nil || at != b.top {
		t.Errorf("no path is %p, %v; want the top", at, err)
	}
}

// The directory itself is named in a tar stream in several ways, and once more is no harm.
func TestTopOfATarStream(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	want, err := s.AddTar(within(t), bytes.NewReader(tarOf(t, tarFileEntry{name: "x", content: "1"})))
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{".", "./", "./."} {
		got, err := s.AddTar(within(t), bytes.NewReader(tarOf(t,
			tarFileEntry{name: top, kind: tar.TypeDir}, tarFileEntry{name: "./x", content: "1"})))
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", top, got, err, want)
		}
	}
	if ref, err := s.AddTar(
		within(t), bytes.NewReader(tarOf(t, tarFileEntry{name: "x/../", kind: tar.TypeDir})),
	); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a parent: %+v, %v", ref, err)
	}
}

// What is no file is called by its name.
func TestNamesOfTypes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[fs.FileMode]string{
		0:                                        "regular file",
		fs.ModeDir:                               "directory",
		fs.ModeSymlink:                           "symbolic link",
		fs.ModeSocket:                            "socket",
		fs.ModeNamedPipe:                         "named pipe",
		fs.ModeDevice:                            "device",
		fs.ModeDevice | fs.ModeCharDevice:        "device",
		fs.ModeIrregular:                         "special file",
		fs.ModeDir | fs.ModeSticky | fs.ModePerm: "directory",
	} {
		if got := typeName(mode); got != want {
			t.Errorf("%s is called a %s, want %s", mode, got, want)
		}
	}
}

// The builders of graphs read what is here, and nothing else; they remove nothing.
func TestBuildersReadLocalNodes(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	w := dagWriter{newBuilder(t, s.Store).to}
	one, two := pbNode(t, unixfs.FolderPBData()), pbNode(t, shardContent(t, 2))
	if err := w.AddMany(t.Context(), []ipld.Node{one, two}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []ipld.Node{one, two} {
		got, err := w.Get(t.Context(), n.Cid())
		if err != nil || !bytes.Equal(got.RawData(), n.RawData()) {
			t.Errorf("%s: %v, %v", n.Cid(), got, err)
		}
	}
	missing := pbNode(t, shardContent(t, 4)).Cid()
	if got, err := w.Get(t.Context(), missing); !ipld.IsNotFound(err) {
		t.Errorf("what is not here: %v, %v", got, err)
	}
	if w.Remove(t.Context(), one.Cid()) != nil ||
		w.RemoveMany(t.Context(), []cid.Cid{one.Cid()}) != nil {
		t.Error("what is collected later cannot be removed")
	}
	all := w.GetMany(t.Context(), []cid.Cid{one.Cid(), missing, two.Cid()})
	for i, want := range []ipld.Node{one, nil, two} {
		select {
		case got := <-all:
			if want == nil && !ipld.IsNotFound(got.Err) ||
				want != nil && (got.Err != nil || !got.Node.Cid().Equals(want.Cid())) {
				t.Errorf("the node %d of three: %+v", i, got)
			}
		default:
			t.Fatalf("node %d of three is missing", i)
		}
	}
	select {
	case more, open := <-all:
		if open {
			t.Errorf("one node more: %+v", more)
		}
	default:
		t.Error("the nodes have no end")
	}
	odd := pbNode(t, unixfs.FolderPBData())
	if err := odd.SetCidBuilder(cid.V1Builder{Codec: cid.DagProtobuf, MhType: 0x13}); err != nil {
		t.Fatal(err)
	}
	if err := w.AddMany(t.Context(), []ipld.Node{odd, one}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a node of another hash: %v, want ErrUnsupported", err)
	}
}

// What lacks a block is no root, whatever asks for it.
func TestOnlyWholeGraphsAreEntered(t *testing.T) {
	t.Parallel()
	s, other := newPlayed(t, nil), newPlayed(t, nil)
	ref := mustAdd(t, other.Store, []byte("a leaf"))
	if _, err := s.enter(rootOf(t, ref.CID)); !errors.Is(err, ErrNotHeld) {
		t.Errorf("a leaf that is not here: %v, want ErrNotHeld", err)
	}
	dir := pbNode(t, unixfs.FolderPBData(),
		&ipld.Link{Name: "x", Cid: rootOf(t, ref.CID), Size: uint64(ref.Bytes)})
	if _, err := s.enter(rootOf(t, hostile(t, s.Store, dir))); !errors.Is(err, ErrNotHeld) {
		t.Errorf("a directory of it: %v, want ErrNotHeld", err)
	}
	if _, err := s.enter(pbNode(t, unixfs.FolderPBData()).Cid()); !errors.Is(err, ErrNotHeld) {
		t.Errorf("a directory that is not here: %v, want ErrNotHeld", err)
	}
	if len(s.roots) != 0 {
		t.Errorf("%d roots are noted", len(s.roots))
	}
	s.cfg.Limits.Nodes = 1
	full := pbNode(t, unixfs.FolderPBData(), &ipld.Link{Name: "x", Cid: hostileLeaf(t, s.Store, "1")})
	if _, err := s.enter(rootOf(t, hostile(t, s.Store, full))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more blocks than the limits allow: %v, want ErrTooLarge", err)
	}
}

// hostileLeaf puts a leaf into a store behind its back.
func hostileLeaf(t testing.TB, s *Store, content string) cid.Cid {
	t.Helper()
	c, err := cid.V1Builder{Codec: cid.Raw, MhType: 0x12}.Sum([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.blocks.put(digestFor(t, c), []byte(content)); err != nil {
		t.Fatal(err)
	}
	return c
}
