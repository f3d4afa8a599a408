package data

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	fileMode = 0o600 // of exported files
	dirMode  = 0o700 // of exported directories
	tarFile  = 0o644 // of files in a tar stream
	tarDir   = 0o755 // of directories in a tar stream
)

// Cat reads a file that is held. The reader must be closed; until then the data
// is not collected.
func (s *Store) Cat(ctx context.Context, c grid.CID) (io.ReadCloser, error) {
	ctx, op, root, err := s.open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	n, err := s.node(root)
	if err == nil && n.kind != kindLeaf && n.kind != kindFile {
		err = fmt.Errorf("%w: %s is a directory, ask for a tar stream", ErrUnsupported, c)
	}
	if err != nil {
		op.end()
		return nil, s.readError(c, err)
	}
	return &catReader{fileReader: s.newFileReader(ctx, root), op: op, c: c}, nil
}

// Tar reads what is held as a tar stream: of a directory its entries in the order
// of their names, of a file one entry named by its CID. The reader must be closed;
// until then the data is not collected.
func (s *Store) Tar(ctx context.Context, c grid.CID) (io.ReadCloser, error) {
	ctx, op, root, err := s.open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	r, w := io.Pipe()
	done := make(chan struct{})
	out := tar.NewWriter(w)
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		stop()
		op.cancel()
		return nil, ErrClosed
	}
	s.wg.Go(func() {
		err := s.visit(ctx, root, tarVisitor{out: out, name: string(c)})
		if err == nil {
			err = out.Close()
		}
		stop()
		_ = w.CloseWithError(s.readError(c, err))
		op.end()
		close(done)
	})
	return tarReader{PipeReader: r, done: done}, nil
}

// tarReader ends the writing side when it is closed.
type tarReader struct {
	*io.PipeReader
	done chan struct{} // closed when the writing side has ended
}

// Close ends the stream and lets the data go.
func (r tarReader) Close() error {
	err := r.PipeReader.Close()
	<-r.done
	return err
}

// Export copies what is held to a path that must not exist yet, its parent must:
// files with mode 0600, directories with 0700. Names come from whoever made the
// data: nothing is written outside the path, and no link is followed below it.
// When it fails, what it wrote is removed.
func (s *Store) Export(ctx context.Context, c grid.CID, hostPath string) error {
	ctx, op, root, err := s.open(ctx, c)
	if err != nil {
		return fmt.Errorf("export data: %w", err)
	}
	defer op.end()
	n, err := s.node(root)
	if err != nil {
		return s.readError(c, err)
	}
	if n.kind == kindLeaf || n.kind == kindFile {
		err = s.exportFile(ctx, root, hostPath)
	} else {
		err = s.exportDir(ctx, root, hostPath)
	}
	if err != nil {
		return fmt.Errorf("export %s to %s: %w", c, hostPath, s.readError(c, err))
	}
	return nil
}

func (s *Store) exportFile(ctx context.Context, c cid.Cid, hostPath string) error {
	f, err := os.OpenFile(hostPath, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode) //nolint:gosec // the caller's path
	if err != nil {
		return existsError(err)
	}
	err = copyFile(f, s.newFileReader(ctx, c))
	if err != nil {
		_ = os.Remove(hostPath)
	}
	return err
}

func (s *Store) exportDir(ctx context.Context, c cid.Cid, hostPath string) error {
	if err := os.Mkdir(hostPath, dirMode); err != nil {
		return existsError(err)
	}
	to, err := os.OpenRoot(hostPath)
	if err == nil {
		err = s.visit(ctx, c, exportVisitor{to: to})
		_ = to.Close()
	}
	if err != nil {
		_ = os.RemoveAll(hostPath) // made above
	}
	return err
}

func existsError(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	return writeError(err)
}

// copyFile fills and closes a new file.
func copyFile(f *os.File, from io.Reader) error {
	_, err := io.Copy(f, from)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil && !errors.Is(err, ErrNotHeld) && !errors.Is(err, context.Canceled) {
		return writeError(err)
	}
	return err
}

// open begins an operation that uses a held root.
func (s *Store) open(ctx context.Context, c grid.CID) (context.Context, *operation, cid.Cid, error) {
	root, err := parseCID(c)
	if err != nil {
		return nil, nil, cid.Undef, err
	}
	ctx, op, err := s.begin(ctx)
	if err != nil {
		return nil, nil, cid.Undef, err
	}
	if err := op.use(c); err != nil {
		op.end()
		return nil, nil, cid.Undef, err
	}
	return ctx, op, root, nil
}

// readError takes a root off the held ones when reading found a block missing.
func (s *Store) readError(c grid.CID, err error) error {
	if errors.Is(err, ErrNotHeld) {
		s.checkRoot(c)
	}
	return err
}

// visitor is told of the entries of a directory, parents first, by relative path.
// The path of a root that is a file is empty.
type visitor interface {
	dir(name string) error
	file(name string, bytes int64, content io.Reader) error
}

// visit walks a graph and reads its files. It bounds the number of entries and
// their bytes, because a small graph can repeat itself without end.
func (s *Store) visit(ctx context.Context, root cid.Cid, v visitor) error {
	w := &visitWalk{s: s, v: v, limits: s.cfg.Limits}
	return w.entry(ctx, "", root, 0)
}

type visitWalk struct {
	s       *Store
	v       visitor
	limits  Limits
	entries int
	bytes   int64
}

func (w *visitWalk) entry(ctx context.Context, name string, c cid.Cid, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.entries++; w.entries > w.limits.Files+1 || depth > w.limits.Depth+1 || len(name) > maxPathBytes {
		return fmt.Errorf("%w: more than %d entries, %d levels or a path of %d bytes",
			ErrTooLarge, w.limits.Files, w.limits.Depth, maxPathBytes)
	}
	n, err := w.s.node(c)
	if err != nil {
		return err
	}
	if n.kind == kindLeaf || n.kind == kindFile {
		if w.bytes = addSizes(w.bytes, n.bytes); w.bytes > w.limits.Bytes {
			return fmt.Errorf("%w: more than %s", ErrTooLarge, grid.FormatBytes(w.limits.Bytes))
		}
		return w.v.file(name, n.bytes, w.s.newFileReader(ctx, c))
	}
	if name != "" {
		if err := w.v.dir(name); err != nil {
			return err
		}
	}
	entries, err := w.s.entries(n)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.entry(ctx, path.Join(name, e.name), e.c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// dirEntry is one entry of a directory.
type dirEntry struct {
	name string
	c    cid.Cid
}

const maxShardDepth = 32

// entries lists a directory, ascending by name. A name that is not allowed or
// comes twice is refused.
func (s *Store) entries(n node) ([]dirEntry, error) {
	var out []dirEntry
	var list func(n node, depth int) error
	list = func(n node, depth int) error {
		for _, l := range n.links {
			if len(l.Name) < n.prefix || depth > maxShardDepth || len(out) >= s.cfg.Limits.Files {
				return fmt.Errorf("%w: directory with malformed or too many entries", ErrUnsupported)
			}
			name := l.Name[n.prefix:]
			if n.kind == kindShard && name == "" {
				child, err := s.node(l.Cid)
				if err != nil {
					return err
				}
				if child.kind != kindShard {
					return fmt.Errorf("%w: directory shard %s is none", ErrUnsupported, l.Cid)
				}
				if err := list(child, depth+1); err != nil {
					return err
				}
				continue
			}
			if err := checkName(name); err != nil {
				return err
			}
			out = append(out, dirEntry{name: name, c: l.Cid})
		}
		return nil
	}
	if n.kind != kindDir && n.kind != kindShard {
		return nil, fmt.Errorf("%w: not a directory", ErrUnsupported)
	}
	if err := list(n, 0); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b dirEntry) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(out); i++ {
		if out[i].name == out[i-1].name {
			return nil, fmt.Errorf("%w: directory names %q twice", ErrUnsupported, out[i].name)
		}
	}
	return out, nil
}

// describe is the kind and the content size of a graph that is wholly here. Each
// distinct directory is read once.
func (s *Store) describe(c cid.Cid) (Ref, error) {
	sizes := make(map[cid.Cid]int64)
	var measure func(c cid.Cid, depth int) (bytes int64, dir bool, err error)
	measure = func(c cid.Cid, depth int) (int64, bool, error) {
		if known, ok := sizes[c]; ok {
			return known, true, nil
		}
		if depth > s.cfg.Limits.Depth+1 {
			return 0, false, fmt.Errorf("%w: more than %d directories within one another", ErrTooLarge, s.cfg.Limits.Depth)
		}
		if c.Type() == cid.Raw { // its size is known without reading it
			d, err := digestOf(c)
			if err != nil {
				return 0, false, err
			}
			n, _ := s.blocks.size(d)
			return n, false, nil
		}
		n, err := s.node(c)
		if err != nil || n.kind == kindFile {
			return n.bytes, false, err
		}
		entries, err := s.entries(n)
		if err != nil {
			return 0, false, err
		}
		var total int64
		for _, e := range entries {
			bytes, _, err := measure(e.c, depth+1)
			if err != nil {
				return 0, false, err
			}
			total = addSizes(total, bytes)
		}
		sizes[c] = total
		return total, true, nil
	}
	bytes, dir, err := measure(c, 0)
	return Ref{CID: gridCID(c), Bytes: bytes, Dir: dir}, err
}

// fileReader reads the leaves of a file in order.
type fileReader struct {
	ctx    context.Context //nolint:containedctx // io.Reader has no other way to end early
	s      *Store
	todo   []cid.Cid // blocks not yet read, the next one last
	now    []byte    // unread content of the present block
	blocks int
}

func (s *Store) newFileReader(ctx context.Context, c cid.Cid) *fileReader {
	return &fileReader{ctx: ctx, s: s, todo: []cid.Cid{c}}
}

// Read gives the next content.
func (r *fileReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.now) == 0 {
		if len(r.todo) == 0 {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.now)
	r.now = r.now[n:]
	return n, nil
}

// next reads one more block.
func (r *fileReader) next() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if r.blocks++; r.blocks > r.s.cfg.Limits.Nodes || len(r.todo) > 16*maxFileLinks*maxGraphDepth {
		return fmt.Errorf("%w: file of more than %d blocks", ErrTooLarge, r.s.cfg.Limits.Nodes)
	}
	c := r.todo[len(r.todo)-1]
	r.todo = r.todo[:len(r.todo)-1]
	n, err := r.s.node(c)
	if err != nil {
		return err
	}
	if n.kind != kindLeaf && n.kind != kindFile {
		return fmt.Errorf("%w: block %s inside a file is a directory", ErrUnsupported, c)
	}
	r.now = n.data
	for _, l := range slices.Backward(n.links) {
		r.todo = append(r.todo, l.Cid)
	}
	return nil
}

// catReader is a fileReader that holds its data until it is closed.
type catReader struct {
	*fileReader
	op *operation
	c  grid.CID
}

// Read gives the next content.
func (r *catReader) Read(p []byte) (int, error) {
	n, err := r.fileReader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.s.readError(r.c, err)
	}
	return n, err
}

// Close lets the data go.
func (r *catReader) Close() error {
	r.op.end()
	return nil
}

// exportVisitor writes below a directory.
type exportVisitor struct{ to *os.Root }

func (v exportVisitor) dir(name string) error {
	local, err := localName(name)
	if err != nil {
		return err
	}
	if err := v.to.Mkdir(local, dirMode); err != nil {
		return existsError(err)
	}
	return nil
}

func (v exportVisitor) file(name string, _ int64, content io.Reader) error {
	local, err := localName(name)
	if err != nil {
		return err
	}
	f, err := v.to.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return existsError(err)
	}
	return copyFile(f, content)
}

// localName refuses names that mean something else on this operating system.
func localName(name string) (string, error) {
	local, err := filepath.Localize(name)
	if err != nil {
		return "", fmt.Errorf("%w: %q is no file name on this system", ErrUnsupported, name)
	}
	return local, nil
}

// tarVisitor writes a tar stream.
type tarVisitor struct {
	out  *tar.Writer
	name string // of a root that is a file
}

func (v tarVisitor) dir(name string) error {
	return v.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: tarDir, Format: tar.FormatPAX})
}

func (v tarVisitor) file(name string, bytes int64, content io.Reader) error {
	if name == "" {
		name = v.name
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: bytes, Mode: tarFile, Format: tar.FormatPAX}
	if err := v.out.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(v.out, content)
	return err
}
