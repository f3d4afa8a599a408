package data

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	tarFile       = 0o644 // of files in a tar stream
	tarExecutable = 0o755 // of those with the x bit
	tarDir        = 0o755 // of directories in a tar stream
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

// open begins an operation that uses a held root.
func (s *Store) open(
	ctx context.Context, c grid.CID,
) (context.Context, *operation, cid.Cid, error) {
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

// tarVisitor writes a tar stream.
type tarVisitor struct {
	out  *tar.Writer
	name string // of a root that is a file
}

func (v tarVisitor) dir(name string) error {
	return v.out.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: name + "/", Mode: tarDir, Format: tar.FormatPAX,
	})
}

func (v tarVisitor) file(name string, n node, content io.Reader) error {
	if name == "" {
		name = v.name
	}
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: n.bytes, Mode: tarFile, Format: tar.FormatPAX,
	}
	if n.executable {
		h.Mode = tarExecutable
	}
	if err := v.out.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(v.out, content)
	return err
}
