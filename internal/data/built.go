package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Graphs are also built outside the agent, by a process of its program that has a low priority.
// What it reads, hashes and writes costs the agent nothing: the blocks come as files of the
// store's own file system, and all that is left to do is to count them and to rename them.

// Digest is a block's sha2-256.
type Digest = [sha256.Size]byte

// Sink takes the blocks of a graph, those below another one before it. A block may come twice.
// The content is valid until Put returns.
type Sink interface {
	Put(ctx context.Context, d Digest, content []byte) error
}

// Build makes the graph that the store would make of the same source, and returns its root.
// Its errors are those of the store's methods, and the sink's.
func Build(ctx context.Context, from Source, limits Limits, to Sink) (grid.CID, error) {
	b := builderOf(ctx, sinkShelf{to}, Config{Limits: limits}.withDefaults().Limits)
	link, err := b.build(from)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", err
	}
	return gridCID(link.Cid), nil
}

// sinkShelf is a shelf without a store.
type sinkShelf struct{ to Sink }

func (s sinkShelf) put(ctx context.Context, d digest, content []byte) error {
	return s.to.Put(ctx, d, content)
}

// node gives nothing back: who builds a graph from nothing asks for no node of it.
func (s sinkShelf) node(_ context.Context, c cid.Cid) (ipld.Node, error) {
	return nil, ipld.ErrNotFound{Cid: c}
}

// node reads a local dag-pb node.
func (op *operation) node(ctx context.Context, c cid.Cid) (ipld.Node, error) {
	blk, err := op.s.blocks.Get(ctx, c)
	if err != nil {
		return nil, err
	}
	return merkledag.DecodeProtobufBlock(blk)
}

// Limits are those of what the store takes in, none of them 0.
func (s *Store) Limits() Limits { return s.cfg.Limits }

// Block is one block that waits in a file.
type Block struct {
	Digest Digest // which the agent believes: whenever a block is read its digest is checked
	Bytes  int64
}

// File is the name of the block's file.
func (b Block) File() string { return hex.EncodeToString(b.Digest[:]) }

// AddBuilt stores a graph that another process of this program builds. build is given an empty
// directory for the files of blocks, and take, which stores one of them and removes its file;
// it returns the root when all blocks were taken. Files that are left are removed afterwards,
// so that process must have ended by then. Errors of build are passed on; take fails as AddFile
// does, and with ErrTooLarge for more blocks or bytes than the limits of one file or directory
// can need.
func (s *Store) AddBuilt(
	ctx context.Context,
	build func(ctx context.Context, dir string, take func(Block) error) (grid.CID, error),
) (ref Ref, err error) {
	ctx, op, err := s.begin(ctx)
	if err != nil {
		return Ref{}, err
	}
	defer op.end()
	dir, err := os.MkdirTemp(filepath.Join(s.cfg.Dir, "tmp"), "built-")
	if err != nil {
		return Ref{}, fmt.Errorf("add data: %w", writeError(err))
	}
	defer func() {
		if wrong := os.RemoveAll(dir); wrong != nil { // made above; the next start empties tmp
			s.cfg.Log.Warn("files of blocks could not be removed", "dir", dir, "error", wrong)
		}
	}()
	in := &intake{op: op, dir: dir, limits: s.cfg.Limits}
	root, err := build(ctx, dir, func(b Block) error { return in.take(ctx, b) })
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Ref{}, fmt.Errorf("add data: %w", err)
	}
	c, err := parseCID(root)
	if err != nil {
		return Ref{}, fmt.Errorf("add data: %w", err)
	}
	return s.enterSettled(c)
}

// intake counts the blocks that come for one graph. It belongs to one goroutine.
type intake struct {
	op     *operation
	dir    string
	limits Limits
	blocks int
	bytes  int64
}

// besideContent bounds what the nodes of a graph take besides its content: names, mostly.
const besideContent = 64 << 20

// take moves a block's file into the store.
func (in *intake) take(ctx context.Context, b Block) error {
	if b.Bytes <= 0 || b.Bytes > maxBlockBytes {
		return fmt.Errorf("%w: block of %d bytes, want 1 to %d",
			ErrTooLarge, b.Bytes, maxBlockBytes)
	}
	in.blocks++
	in.bytes = addSizes(in.bytes, b.Bytes)
	if most := addSizes(in.limits.Bytes, besideContent); in.blocks > in.limits.Nodes ||
		in.bytes > most {
		return fmt.Errorf("%w: more than %d blocks or %s",
			ErrTooLarge, in.limits.Nodes, grid.FormatBytes(most))
	}
	file := filepath.Join(in.dir, b.File())
	adopt := func() error { return in.op.s.blocks.adopt(b, file) }
	err := in.op.place(ctx, b.Digest, b.Bytes, adopt)
	if err != nil {
		return err
	}
	// It is gone already, unless the store had the block.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the file of a block: %w", err)
	}
	return nil
}

// errNoBlock means that a file is not what was said of it.
var errNoBlock = errors.New("the file of a block is not as announced")

// adopt makes a file a block, of which nothing but its size is checked.
func (b *blockFiles) adopt(block Block, file string) error {
	return b.place(block.Digest, block.Bytes, func() (string, error) {
		info, err := os.Lstat(file)
		if err == nil && (!info.Mode().IsRegular() || info.Size() != block.Bytes) {
			err = fmt.Errorf("%w: %s, %d bytes", errNoBlock, typeName(info.Mode()), info.Size())
		}
		return file, err
	})
}
