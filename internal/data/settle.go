package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What is acknowledged to anybody is settled first: the blocks of its graph, then the
// line of its root, survive a power failure. What is fetched for an attempt is not, as
// it can be had again; its blocks are settled when a result needs the same ones.
//
// A sync takes as long for a line as for a megabyte, and waits for the disk each time. So
// the content of small blocks is written to the root log, one sync of which settles all
// operations that wait at the time. Their files are synced later, by the keeper, before
// the log is rewritten without them. Large blocks are synced in their files.

const (
	loggedBlock   = 16 << 10        // bytes: larger blocks are synced in their files
	syncsAtOnce   = 8               // files synced at the same time: the disk joins them
	writtenBackBy = 5 * time.Minute // older files are on disk: systems write back within 30 s
)

// disk has the calls that wait for the disk. Tests count them and let them fail.
type disk struct {
	sync    func(*os.File) error
	syncDir func(string) error
}

func realDisk() *disk { return &disk{sync: (*os.File).Sync, syncDir: durable.SyncDir} }

// settle makes a graph that is held survive a power failure.
func (s *Store) settle(c cid.Cid) error {
	var blocks map[digest]bool
	if s.blocks.anyUnsynced() {
		var err error
		if blocks, _, _, err = s.walkLocal(c); err != nil {
			return err
		}
	}
	small, large := s.blocks.loose(blocks)
	if err := s.blocks.syncFiles(large); err != nil {
		return err
	}
	upTo, err := s.logBlocks(small)
	if err != nil {
		return err
	}
	return s.settleLog(upTo)
}

// Lacks reports whether something was not done for want of space at this site, on its disk, in
// its quota or in the submitter's share of it, which is no fault of the job or of another site.
func Lacks(err error) bool {
	return errors.Is(err, ErrDiskFull) || errors.Is(err, ErrQuota) || errors.Is(err, errShare)
}

// settleHeld is settle for who has no operation under way that keeps the graph.
func (s *Store) settleHeld(ctx context.Context, c grid.CID) error {
	_, op, root, err := s.open(ctx, c)
	if err == nil {
		defer op.end()
		err = s.settle(root)
	}
	if err != nil {
		return fmt.Errorf("fetch %s: %w", c, err)
	}
	return nil
}

// logBlocks writes the content of blocks to the root log, and returns the number of the
// line up to which the log is to be synced.
func (s *Store) logBlocks(blocks []digest) (upTo int, err error) {
	content := make([][]byte, len(blocks))
	for i, d := range blocks {
		if content[i], err = s.blocks.get(d); err != nil {
			return 0, fmt.Errorf("%w: a block was lost before it was on disk: %w", ErrNotHeld, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range blocks {
		if err := s.log.appendBlock(content[i]); err != nil {
			return 0, err
		}
		s.blocks.logged(d)
	}
	if s.log.grown(len(s.roots)) {
		s.compact.Store(true)
		s.wakeKeeper()
	}
	return s.log.written, nil
}

// settleLog waits until so many lines of the root log are on disk. One sync does for all
// who wait.
func (s *Store) settleLog(upTo int) error {
	l := s.log
	l.turn.Lock()
	defer l.turn.Unlock()
	s.mu.Lock()
	file, written, done := l.file, l.written, l.synced >= upTo && !l.broken
	broken := l.broken
	s.mu.Unlock()
	if done {
		return nil
	}
	if broken { // what a failed sync left in the file is not known
		return s.rewriteLog()
	}
	err := l.disk.sync(file)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.synced >= upTo: // it was rewritten meanwhile
		return nil
	case err != nil:
		l.broken = true
		return writeError(err)
	}
	l.synced = max(l.synced, written)
	return nil
}

// compactLog rewrites the root log without what is history, and without the blocks whose
// files are on disk by then.
func (s *Store) compactLog() error {
	if err := s.blocks.syncFiles(s.blocks.inLog()); err != nil {
		return err
	}
	return s.rewriteLog()
}

// rewriteLog rewrites the root log.
func (s *Store) rewriteLog() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var content [][]byte
	for _, d := range s.blocks.inLog() {
		if block, err := s.blocks.get(d); err == nil { // else its root is no longer whole
			content = append(content, block)
		}
	}
	return s.log.rewrite(s.roots, content)
}

// restore writes a block of the root log to its file, unless that is whole.
func (b *blockFiles) restore(content []byte) error {
	d := sha256.Sum256(content)
	if have, err := os.ReadFile(b.path(d)); err == nil && sha256.Sum256(have) == d {
		return nil
	}
	_ = b.remove(d) // whatever is there is not the block
	if err := b.put(d, content); err != nil && !errors.Is(err, errNoRoom) {
		return err
	}
	b.logged(d)
	return nil
}

// distrust notes the files that may not be on disk yet: those of the last minutes in which
// anything was written.
func (b *blockFiles) distrust(written map[digest]time.Time) {
	var last time.Time
	for _, at := range written {
		if at.After(last) {
			last = at
		}
	}
	for d, at := range written {
		if last.Sub(at) < writtenBackBy {
			b.unsynced[d] = false
		}
	}
}

func (b *blockFiles) anyUnsynced() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.unsynced) > 0
}

// doubtful reports whether a power failure may have damaged the block's file.
func (b *blockFiles) doubtful(d digest) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, unsynced := b.unsynced[d]
	return unsynced
}

// loose gives those of the blocks that a power failure may take: the small ones, whose
// content the root log takes, and the large ones.
func (b *blockFiles) loose(blocks map[digest]bool) (small, large []digest) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for d := range blocks {
		logged, unsynced := b.unsynced[d]
		switch {
		case !unsynced || logged:
		case b.sizes[d] <= loggedBlock:
			small = append(small, d)
		default:
			large = append(large, d)
		}
	}
	return small, large
}

// logged notes that the root log has a block.
func (b *blockFiles) logged(d digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, unsynced := b.unsynced[d]; unsynced {
		b.unsynced[d] = true
	}
}

// inLog lists the blocks that a power failure would leave to the root log alone.
func (b *blockFiles) inLog() []digest {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []digest
	for d, logged := range b.unsynced {
		if logged {
			out = append(out, d)
		}
	}
	return out
}

// syncFiles brings the files of blocks to disk, their names too.
func (b *blockFiles) syncFiles(blocks []digest) error {
	if len(blocks) == 0 {
		return nil
	}
	dirs := make(map[string]bool)
	for _, d := range blocks {
		dirs[filepath.Dir(b.path(d))] = true
	}
	if err := inParallel(blocks, b.syncFile); err != nil {
		return writeError(err)
	}
	if err := inParallel(slices.Sorted(maps.Keys(dirs)), b.disk.syncDir); err != nil {
		return writeError(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range blocks {
		delete(b.unsynced, d)
	}
	return nil
}

// syncFile brings one file to disk. After a sync that failed nobody knows what the disk
// has, and the system says so only once: the block goes, unless the log has it.
func (b *blockFiles) syncFile(d digest) error {
	f, err := os.OpenFile(b.path(d), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // collected meanwhile
	}
	if err != nil {
		return err
	}
	err = b.disk.sync(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	b.mu.RLock()
	inLog := b.unsynced[d]
	b.mu.RUnlock()
	if err != nil && !inLog {
		_ = b.remove(d)
	}
	return err
}

// inParallel does something with several values at the same time.
func inParallel[T any](values []T, do func(T) error) error {
	var wait sync.WaitGroup
	errs := make([]error, min(len(values), syncsAtOnce))
	for lane := range errs {
		wait.Go(func() {
			for i := lane; i < len(values); i += len(errs) {
				errs[lane] = errors.Join(errs[lane], do(values[i]))
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
