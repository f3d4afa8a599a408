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
	"sync"
	"syscall"
	"time"

	"github.com/ipfs/boxo/blockstore"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// errNoRoom means that a block does not fit into the quota as things are.
var errNoRoom = errors.New("the block does not fit into the quota")

// blockFiles keeps blocks as files. It implements blockstore.Blockstore for
// bitswap's server. The sizes of all blocks are in memory, about 80 bytes for
// each, so that asking whether a block is here costs no system call.
type blockFiles struct {
	dir     string       // holds blocks/ and tmp/
	quota   int64        // bytes, 0 = none
	damaged func(digest) // told of a block that turned out bad; must not block
	write   func(f *os.File, data []byte) error
	disk    *disk

	mu       sync.RWMutex
	sizes    map[digest]int32
	unsynced map[digest]bool // files that a power failure may take; the value: the root log has them
	used     int64           // sum of sizes and of what is being written
}

var _ blockstore.Blockstore = (*blockFiles)(nil)

func openBlocks(cfg Config, d *disk, damaged func(digest)) (*blockFiles, error) {
	b := &blockFiles{
		dir: cfg.Dir, quota: cfg.QuotaBytes, damaged: damaged, disk: d,
		write: writeAll, sizes: make(map[digest]int32), unsynced: make(map[digest]bool),
	}
	tmp := filepath.Join(b.dir, "tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return nil, fmt.Errorf("clear %s: %w", tmp, err)
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, fmt.Errorf("make directory for blocks: %w", err)
	}
	written := make(map[digest]time.Time)
	for shard := range 256 {
		dir := filepath.Join(b.dir, "blocks", fmt.Sprintf("%02x", shard))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make directory for blocks: %w", err)
		}
		if err := b.scan(dir, written); err != nil {
			return nil, err
		}
	}
	b.distrust(written)
	for _, dir := range []string{filepath.Join(b.dir, "blocks"), b.dir, filepath.Dir(b.dir)} {
		if err := d.syncDir(dir); err != nil { // what is below is new, perhaps
			return nil, err
		}
	}
	return b, nil
}

// scan takes up the blocks of one shard, and when each was written. What cannot be a
// block is left alone; a block that a power failure left empty is removed.
func (b *blockFiles) scan(dir string, written map[digest]time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read blocks: %w", err)
	}
	for _, e := range entries {
		raw, err := hex.DecodeString(e.Name())
		if err != nil || len(raw) != sha256.Size || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("read blocks: %w", err)
		}
		d := digest(raw)
		if n := info.Size(); n <= maxBlockBytes && n > 0 {
			b.sizes[d] = int32(n)
			b.used += n
			written[d] = info.ModTime()
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove damaged block: %w", err)
		}
	}
	return nil
}

func (b *blockFiles) path(d digest) string {
	name := hex.EncodeToString(d[:])
	return filepath.Join(b.dir, "blocks", name[:2], name)
}

// isEmpty reports whether it is the block without content. That one is everywhere
// and needs no file: bitswap cannot send it.
func isEmpty(d digest) bool { return d == sha256.Sum256(nil) }

// size is the block's size and whether it is here.
func (b *blockFiles) size(d digest) (int64, bool) {
	if isEmpty(d) {
		return 0, true
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	n, ok := b.sizes[d]
	return int64(n), ok
}

// usedBytes returns the size of all blocks, with those being written.
func (b *blockFiles) usedBytes() int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.used
}

// reserve sets n bytes of the quota aside for d, or says that d is here already.
func (b *blockFiles) reserve(d digest, n int64) (here bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.sizes[d]; ok {
		return true, nil
	}
	if b.quota > 0 && b.used+n > b.quota {
		return false, errNoRoom
	}
	b.used += n
	return false, nil
}

// put writes a block whose hash is known to be right.
func (b *blockFiles) put(d digest, data []byte) error {
	return b.place(d, int64(len(data)), func() (string, error) { return b.writeAside(data) })
}

// place gives a block of n bytes its name, in the quota. aside writes it to a file, whose name it
// returns; it is not called when the block is here already.
func (b *blockFiles) place(d digest, n int64, aside func() (string, error)) error {
	if n == 0 {
		return nil
	}
	if n > maxBlockBytes {
		return fmt.Errorf("%w: block of %d bytes, the most is %d", ErrTooLarge, n, maxBlockBytes)
	}
	here, err := b.reserve(d, n)
	if here || err != nil {
		return err
	}
	tmp, err := aside()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		err = os.Rename(tmp, b.path(d))
	}
	if err != nil {
		b.used -= n
		if tmp != "" {
			_ = os.Remove(tmp)
		}
		return writeError(err)
	}
	if _, twice := b.sizes[d]; twice { // two wrote it concurrently
		b.used -= n
	}
	b.sizes[d] = int32(n)
	b.unsynced[d] = false
	return nil
}

func (b *blockFiles) writeAside(data []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Join(b.dir, "tmp"), "block-*")
	if err != nil {
		return "", err
	}
	err = b.write(f, data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return f.Name(), err
}

func writeAll(f *os.File, data []byte) error {
	_, err := f.Write(data)
	return err
}

// writeError tells a full disk from other failures to write.
func writeError(err error) error {
	if durable.NoRoom(err) {
		return fmt.Errorf("%w: free some space or lower the data quota: %w", ErrDiskFull, err)
	}
	return fmt.Errorf("write data: %w", err)
}

// get reads a block and checks its hash. A block that is damaged or gone is
// forgotten and counts as not found.
func (b *blockFiles) get(d digest) ([]byte, error) {
	if _, ok := b.size(d); !ok {
		return nil, ipld.ErrNotFound{}
	}
	if isEmpty(d) {
		return nil, nil
	}
	data, err := os.ReadFile(b.path(d))
	if err == nil && sha256.Sum256(data) == d {
		return data, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EIO) {
		return nil, fmt.Errorf("read block: %w", err)
	}
	if b.remove(d) == nil { // else: collected meanwhile
		b.damaged(d)
	}
	return nil, ipld.ErrNotFound{}
}

// remove deletes a block; ipld.ErrNotFound when it is not here.
func (b *blockFiles) remove(d digest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.sizes[d]
	if !ok {
		return ipld.ErrNotFound{}
	}
	delete(b.sizes, d)
	delete(b.unsynced, d)
	b.used -= int64(n)
	if err := os.Remove(b.path(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove block: %w", err)
	}
	return nil
}

// all is every block that drop chooses.
func (b *blockFiles) all(drop func(digest) bool) []digest {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []digest
	for d := range b.sizes {
		if drop(d) {
			out = append(out, d)
		}
	}
	return out
}

// Has reports whether the block is here.
func (b *blockFiles) Has(_ context.Context, c cid.Cid) (bool, error) {
	d, err := digestOf(c)
	if err != nil {
		return false, nil //nolint:nilerr // a block of another kind is simply not here
	}
	_, ok := b.size(d)
	return ok, nil
}

// Get reads a block and checks its hash.
func (b *blockFiles) Get(_ context.Context, c cid.Cid) (blocks.Block, error) {
	d, err := digestOf(c)
	if err != nil {
		return nil, ipld.ErrNotFound{Cid: c}
	}
	data, err := b.get(d)
	if ipld.IsNotFound(err) {
		return nil, ipld.ErrNotFound{Cid: c}
	}
	if err != nil {
		return nil, err
	}
	return blocks.NewBlockWithCid(data, c)
}

// GetSize is the block's size in bytes.
func (b *blockFiles) GetSize(_ context.Context, c cid.Cid) (int, error) {
	d, err := digestOf(c)
	if err != nil {
		return 0, ipld.ErrNotFound{Cid: c}
	}
	n, ok := b.size(d)
	if !ok {
		return 0, ipld.ErrNotFound{Cid: c}
	}
	return int(n), nil
}

// Put writes a block.
func (b *blockFiles) Put(_ context.Context, blk blocks.Block) error {
	d, err := digestOf(blk.Cid())
	if err != nil {
		return err
	}
	return b.put(d, blk.RawData())
}

// PutMany writes blocks one after the other.
func (b *blockFiles) PutMany(ctx context.Context, blks []blocks.Block) error {
	for _, blk := range blks {
		if err := b.Put(ctx, blk); err != nil {
			return err
		}
	}
	return nil
}

// DeleteBlock removes a block; one that is not here is no error.
func (b *blockFiles) DeleteBlock(_ context.Context, c cid.Cid) error {
	d, err := digestOf(c)
	if err != nil {
		return err
	}
	if err := b.remove(d); err != nil && !ipld.IsNotFound(err) {
		return err
	}
	return nil
}

// AllKeysChan lists all blocks, as raw ones.
func (b *blockFiles) AllKeysChan(ctx context.Context) (<-chan cid.Cid, error) {
	all := b.all(func(digest) bool { return true })
	out := make(chan cid.Cid)
	go func() {
		defer close(out)
		for _, d := range all {
			hash := append([]byte{0x12, sha256.Size}, d[:]...) // multihash: sha2-256, its length
			select {
			case out <- cid.NewCidV1(cid.Raw, hash):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}
