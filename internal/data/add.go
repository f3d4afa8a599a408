package data

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	chunk "github.com/ipfs/boxo/chunker"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/boxo/ipld/unixfs/hamt"
	"github.com/ipfs/boxo/ipld/unixfs/importer/balanced"
	"github.com/ipfs/boxo/ipld/unixfs/importer/helpers"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Source is a file or a directory of the host that is to be taken in.
type Source struct {
	Content    io.Reader // of a file; nil: the directory
	Executable bool      // the file has the x bit, as AddExecutable gives it
	Dir        string    // the directory, as AddDir takes it
}

// Add stores a source as AddFile, AddExecutable or AddDir does.
func (s *Store) Add(ctx context.Context, from Source) (Ref, error) {
	return s.add(ctx, func(b *builder) (*ipld.Link, error) { return b.build(from) })
}

// AddFile stores what r gives as one file: 256 KiB leaves under a balanced tree,
// as `ipfs add --cid-version=1` builds it. The same bytes give the same CID.
func (s *Store) AddFile(ctx context.Context, r io.Reader) (Ref, error) {
	return s.Add(ctx, Source{Content: r})
}

// AddState stores what r gives as one file, as AddFile does, but in leaves of 64 KiB: where one
// state has changed little since the one before, few of its leaves are new ones, which is all that
// moves. Leaves of a fixed size, as a state changes in place (ADR 0058).
func (s *Store) AddState(ctx context.Context, r io.Reader) (Ref, error) {
	return s.add(ctx, func(b *builder) (*ipld.Link, error) {
		b.leaf = stateChunkBytes
		return b.file(r, false)
	})
}

// AddExecutable stores what r gives as one file with the x bit: the mode 0755 stands in
// its first node, so its CID differs from that of the same bytes without the bit.
func (s *Store) AddExecutable(ctx context.Context, r io.Reader) (Ref, error) {
	return s.Add(ctx, Source{Content: r, Executable: true})
}

// AddDir stores a directory of the host: regular files and directories, empty
// ones too, by name, content and whether the owner may run it. Owners, times and all
// other bits of modes are left out, so the same files give the same CID everywhere.
// Symbolic links, devices, sockets and names that are not UTF-8 are refused by their
// path.
func (s *Store) AddDir(ctx context.Context, hostDir string) (Ref, error) {
	return s.Add(ctx, Source{Dir: hostDir})
}

// AddTar stores the content of a tar stream as a directory, with the CID that
// AddDir gives to the same files. Entries must be regular files or directories
// with clean relative paths, each named once; missing parents are made.
func (s *Store) AddTar(ctx context.Context, r io.Reader) (Ref, error) {
	return s.add(ctx, func(b *builder) (*ipld.Link, error) {
		if err := b.readTar(r); err != nil {
			return nil, err
		}
		return b.dir(b.top)
	})
}

// add runs build and enters its result as a root, which survives a power failure.
func (s *Store) add(ctx context.Context, build func(*builder) (*ipld.Link, error)) (Ref, error) {
	ctx, op, err := s.begin(ctx)
	if err != nil {
		return Ref{}, err
	}
	defer op.end()
	b := builderOf(ctx, op, s.cfg.Limits)
	link, err := build(b)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Ref{}, fmt.Errorf("add data: %w", err)
	}
	return s.enterSettled(link.Cid)
}

// enterSettled makes a complete graph a root that survives a power failure.
func (s *Store) enterSettled(c cid.Cid) (Ref, error) {
	ref, err := s.enter(c)
	if err == nil {
		err = s.settle(c)
	}
	if err != nil {
		return Ref{}, fmt.Errorf("add data: %w", err)
	}
	return ref, nil
}

// enter makes a complete graph a root that is held. The caller's operation claims
// its blocks.
func (s *Store) enter(c cid.Cid) (Ref, error) {
	ref, err := s.describe(c)
	if err != nil {
		return Ref{}, err
	}
	_, stored, missing, err := s.walkLocal(c)
	if err != nil {
		return Ref{}, err
	}
	if missing {
		return Ref{}, notHeld(ref.CID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return ref, s.setHeldLocked(ref.CID, ref, stored)
}

// tree is a directory being built.
type tree struct {
	dirs  map[string]*tree
	files map[string]*ipld.Link
}

func newTree() *tree {
	return &tree{dirs: make(map[string]*tree), files: make(map[string]*ipld.Link)}
}

// shelf takes the blocks of a graph that is being built.
type shelf interface {
	put(ctx context.Context, d digest, content []byte) error
	// node gives back a dag-pb node that it was given.
	node(ctx context.Context, c cid.Cid) (ipld.Node, error)
}

// builder turns files into blocks. It belongs to one goroutine and lives as long as
// the call whose context it carries.
type builder struct {
	ctx    context.Context //nolint:containedctx // boxo's readers have no other way to end early
	to     shelf
	limits Limits
	top    *tree
	leaf   int64 // size of the leaves of files; 0 = chunkBytes
	files  int
	bytes  int64
}

func builderOf(ctx context.Context, to shelf, limits Limits) *builder {
	return &builder{ctx: ctx, to: to, limits: limits, top: newTree()}
}

// build stores a source.
func (b *builder) build(from Source) (*ipld.Link, error) {
	if from.Content != nil {
		return b.file(from.Content, from.Executable)
	}
	if err := b.readDir(from.Dir); err != nil {
		return nil, err
	}
	return b.dir(b.top)
}

// count bounds the number of files and directories.
func (b *builder) count() error {
	if b.files++; b.files > b.limits.Files {
		return fmt.Errorf("%w: more than %d files and directories", ErrTooLarge, b.limits.Files)
	}
	return b.ctx.Err()
}

// boundedReader bounds and counts the content.
type boundedReader struct {
	b *builder
	r io.Reader
}

func (r boundedReader) Read(p []byte) (int, error) {
	if err := r.b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if r.b.bytes += int64(n); r.b.bytes > r.b.limits.Bytes {
		return 0, fmt.Errorf("%w: more than %s", ErrTooLarge, grid.FormatBytes(r.b.limits.Bytes))
	}
	return n, err
}

// executableMode is the mode of every executable file, whatever else it was where it came
// from: the same content has the same CID.
const executableMode = 0o755

// file stores one file. One that is not executable has no mode at all, as before there
// were any.
func (b *builder) file(r io.Reader, executable bool) (*ipld.Link, error) {
	params := helpers.DagBuilderParams{
		Maxlinks: maxFileLinks, RawLeaves: true, CidBuilder: cidBuilder(), Dagserv: dagWriter{b.to},
	}
	if executable {
		params.FileMode = executableMode
	}
	leaf := cmp.Or(b.leaf, chunkBytes)
	helper, err := params.New(chunk.NewSizeSplitter(boundedReader{b: b, r: r}, leaf))
	if err != nil {
		return nil, err
	}
	n, err := balanced.Layout(helper)
	if err == nil && executable {
		n, err = b.executable(n)
	}
	if err != nil {
		return nil, err
	}
	return ipld.MakeLink(n)
}

// executable puts a node that can have a mode above a file of one leaf, which cannot. A
// larger file has its mode already.
func (b *builder) executable(n ipld.Node) (ipld.Node, error) {
	leaf, raw := n.(*merkledag.RawNode)
	if !raw {
		return n, nil
	}
	link, err := ipld.MakeLink(leaf)
	if err != nil {
		return nil, err
	}
	file := unixfs.NewFSNode(unixfs.TFile)
	file.AddBlockSize(uint64(len(leaf.RawData())))
	file.SetMode(executableMode)
	data, err := file.GetBytes()
	if err != nil {
		return nil, err
	}
	above := merkledag.NodeWithData(data)
	if err := above.SetCidBuilder(cidBuilder()); err != nil {
		return nil, err
	}
	if err := above.AddRawLink("", link); err != nil {
		return nil, err
	}
	return above, dagWriter{b.to}.Add(b.ctx, above)
}

// dir stores a directory from the leaves up, in the order of the names.
func (b *builder) dir(t *tree) (*ipld.Link, error) {
	links := maps.Clone(t.files)
	for _, name := range slices.Sorted(maps.Keys(t.dirs)) {
		link, err := b.dir(t.dirs[name])
		if err != nil {
			return nil, err
		}
		links[name] = link
	}
	size := 0
	for name, l := range links {
		size += len(name) + l.Cid.ByteLen()
	}
	var n ipld.Node
	var err error
	if size > shardBytes {
		n, err = b.shardedDir(links)
	} else {
		n, err = b.basicDir(links)
	}
	if err != nil {
		return nil, err
	}
	if err := (dagWriter{b.to}).Add(b.ctx, n); err != nil {
		return nil, err
	}
	return ipld.MakeLink(n)
}

const (
	shardBytes  = 256 << 10 // names and CIDs of a directory beyond which it is split
	shardFanout = 256
)

func (b *builder) basicDir(links map[string]*ipld.Link) (ipld.Node, error) {
	n := merkledag.NodeWithData(unixfs.FolderPBData())
	if err := n.SetCidBuilder(cidBuilder()); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if err := n.AddRawLink(name, links[name]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (b *builder) shardedDir(links map[string]*ipld.Link) (ipld.Node, error) {
	shard, err := hamt.NewShard(dagWriter{b.to}, shardFanout)
	if err != nil {
		return nil, err
	}
	shard.SetCidBuilder(cidBuilder())
	for _, name := range slices.Sorted(maps.Keys(links)) {
		l := *links[name]
		if err := shard.SetLink(b.ctx, name, &l); err != nil {
			return nil, err
		}
	}
	return shard.Node()
}

// dagWriter gives boxo's builders a place to put blocks. It reads nothing but
// what is local.
type dagWriter struct{ to shelf }

var _ ipld.DAGService = dagWriter{}

// Add writes a node.
func (w dagWriter) Add(ctx context.Context, n ipld.Node) error {
	d, err := digestOf(n.Cid())
	if err != nil {
		return err
	}
	return w.to.put(ctx, d, n.RawData())
}

// AddMany writes nodes one after the other.
func (w dagWriter) AddMany(ctx context.Context, nodes []ipld.Node) error {
	for _, n := range nodes {
		if err := w.Add(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Get reads a local dag-pb node, which is all that building asks for.
func (w dagWriter) Get(ctx context.Context, c cid.Cid) (ipld.Node, error) {
	return w.to.node(ctx, c)
}

// GetMany reads local nodes.
func (w dagWriter) GetMany(ctx context.Context, cids []cid.Cid) <-chan *ipld.NodeOption {
	out := make(chan *ipld.NodeOption, len(cids))
	defer close(out)
	for _, c := range cids {
		n, err := w.Get(ctx, c)
		out <- &ipld.NodeOption{Node: n, Err: err}
	}
	return out
}

// Remove does nothing: what is not needed is collected.
func (w dagWriter) Remove(context.Context, cid.Cid) error { return nil }

// RemoveMany does nothing: what is not needed is collected.
func (w dagWriter) RemoveMany(context.Context, []cid.Cid) error { return nil }
