package data

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Ref names a file or a directory.
type Ref struct {
	CID   grid.CID // its root
	Bytes int64    // its content, in bytes: the sum of its files
	Dir   bool     // a directory rather than a file

	Executable bool // a file that its owner may run; those in a directory have their own bits
}

// Root describes what the store holds of one graph.
type Root struct {
	Ref
	StoredBytes int64     // its distinct blocks; shared ones count for each root
	Pinned      bool      // not collected before PinnedUntil
	PinnedUntil time.Time // zero with Pinned: until it is unpinned
	LastUsed    time.Time // last read, fetched or added
}

// Store keeps data and exchanges it with other members. Its methods are safe for
// concurrent use.
type Store struct {
	cfg     Config
	host    host.Host
	blocks  *blockFiles
	swap    *swap
	meter   meter
	links   *links
	prober  *prober
	metrics storeMetrics
	shares  *shares
	now     func() time.Time // the clock; tests replace it
	slots   chan struct{}    // one for each fetch under way

	// gcMu is held for reading while blocks are looked up and claimed, for writing
	// while some are collected, so that a claimed block is never collected.
	gcMu sync.RWMutex

	mu      sync.Mutex // guards all below
	roots   map[grid.CID]*root
	log     *rootLog
	holds   map[digest]int             // blocks claimed by operations under way
	running map[*operation]struct{}    // to be cancelled by Close
	fetches map[grid.CID]chan struct{} // fetches under way; closed at their end
	changes map[grid.CID]bool          // untold changes: held or no longer
	closed  bool

	wg      sync.WaitGroup // operations and the keeper
	damage  atomic.Bool    // a damaged block was found since the last check of the roots
	compact atomic.Bool    // the root log has grown
	wake    chan struct{}  // wakes the keeper; capacity 1, because one wake-up does everything
	stop    chan struct{}  // closed by Close
}

// Open opens the store in cfg.Dir, which no other process may have open, and
// serves it to members over the host. The host stays the caller's: close the
// store first.
func Open(cfg Config, h host.Host) (*Store, error) {
	s, err := openLocal(cfg)
	if err != nil {
		return nil, err
	}
	s.host = h
	s.swap = newSwap(s)
	s.meter.done = s.measured
	s.prober = newProber(s)
	s.wg.Go(s.keep)
	s.wg.Go(s.prober.run)
	s.wg.Go(s.prober.tell)
	return s, nil
}

// openLocal opens what is on disk, without serving it.
func openLocal(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	s := &Store{
		cfg: cfg, now: time.Now, shares: newShares(cfg.QuotaBytes),
		slots: make(chan struct{}, cfg.Fetches), holds: make(map[digest]int),
		running: make(map[*operation]struct{}), fetches: make(map[grid.CID]chan struct{}),
		changes: make(map[grid.CID]bool), wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	var err error
	disk := realDisk()
	if s.blocks, err = openBlocks(cfg, disk, s.onDamage); err != nil {
		return nil, err
	}
	if s.log, s.roots, err = openRootLog(cfg.Dir, disk, s.blocks.restore); err != nil {
		return nil, err
	}
	if err = s.compactLog(); err != nil {
		return nil, errors.Join(err, s.log.close())
	}
	s.metrics = newStoreMetrics(cfg.Metrics, s)
	s.meter.flows = make(map[peer.ID]*flow)
	if s.links, err = openLinks(cfg.Dir, func() time.Time { return s.now() }, cfg.OnLink); err != nil {
		cfg.Log.Warn("measurements of links are not usable, starting without", "error", err)
	}
	s.checkRoots()
	clear(s.changes) // nobody was told of anything yet
	return s, nil
}

// Close stops serving, cancels what is under way, and waits for it. Readers that
// are still open fail at their next read.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for op := range s.running {
		op.cancel()
	}
	s.mu.Unlock()
	close(s.stop)
	s.host.RemoveStreamHandler(probeID)
	err := s.swap.close()
	s.wg.Wait()
	if wrong := s.compactLog(); wrong != nil { // nothing is lost: it is tried again at the next start
		s.cfg.Log.Warn("root index not rewritten", "error", wrong)
	}
	return errors.Join(err, s.log.close())
}

// measured takes the rate at which data came from a peer.
func (s *Store) measured(p peer.ID, bps float64) {
	s.links.measured(p, bps)
	s.prober.report(p, bps)
}

// Link returns the rates measured between this site and a peer within the last day:
// from real transfers, and from small probes where there were none.
func (s *Store) Link(site grid.SiteID) Link {
	p, err := peer.Decode(string(site))
	if err != nil {
		return Link{}
	}
	return s.links.get(p)
}

// Has reports whether the whole graph is here.
func (s *Store) Has(c grid.CID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.roots[c]
	return ok && !r.Partial
}

// Stat is the size and kind of what is held; ErrNotHeld otherwise.
func (s *Store) Stat(c grid.CID) (Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.roots[c]
	if !ok || r.Partial {
		return Ref{}, notHeld(c)
	}
	return r.ref(), nil
}

// Roots is everything held, ascending by CID.
func (s *Store) Roots() []Root {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Root
	for _, id := range slices.Sorted(maps.Keys(s.roots)) {
		r := s.roots[id]
		if r.Partial {
			continue
		}
		out = append(out, Root{
			Ref: r.ref(), StoredBytes: r.Stored,
			Pinned: r.pinned(s.now()), PinnedUntil: r.Until, LastUsed: r.Used,
		})
	}
	return out
}

// UsedBytes returns the size of the store's blocks on disk.
func (s *Store) UsedBytes() int64 { return s.blocks.usedBytes() }

// Pin keeps what is held from being collected before the given time, or until
// Unpin for the zero time. A pin is only ever made longer. ErrNotHeld when it is
// not held.
func (s *Store) Pin(c grid.CID, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.roots[c]
	if !ok || r.Partial {
		return fmt.Errorf("pin: %w", notHeld(c))
	}
	if r.Pinned && (r.Until.IsZero() || (!until.IsZero() && !r.Until.Before(until))) {
		return nil
	}
	r.Pinned, r.Until = true, until
	return s.saveLocked(r)
}

// Unpin lets the data go when space is needed; data not held or not pinned is no error.
func (s *Store) Unpin(c grid.CID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.roots[c]
	if !ok || !r.Pinned {
		return nil
	}
	r.Pinned, r.Until = false, time.Time{}
	return s.saveLocked(r)
}

func notHeld(c grid.CID) error { return fmt.Errorf("%w: %s", ErrNotHeld, c) }

// saveLocked writes the root's state; mu is held.
func (s *Store) saveLocked(r *root) error {
	err := s.log.append(r)
	if s.log.grown(len(s.roots)) {
		s.compact.Store(true)
		s.wakeKeeper()
	}
	return err
}

// setHeldLocked enters a root whose graph is complete; mu is held.
func (s *Store) setHeldLocked(c grid.CID, ref Ref, stored int64) error {
	r, ok := s.roots[c]
	if !ok {
		r = &root{CID: c}
		s.roots[c] = r
	}
	fresh := !ok || r.Partial
	r.Bytes, r.Dir, r.Exec = ref.Bytes, ref.Dir, ref.Executable
	r.Stored, r.Partial, r.Used = stored, false, s.now()
	if fresh {
		s.changeLocked(c, true)
	}
	return s.saveLocked(r)
}

// setPartialLocked enters a root of which blocks are missing; mu is held.
func (s *Store) setPartialLocked(c grid.CID) error {
	r, ok := s.roots[c]
	if !ok {
		r = &root{CID: c, Partial: true}
		s.roots[c] = r
	}
	if !r.Partial {
		r.Partial = true
		s.changeLocked(c, false)
	}
	r.Stored, r.Used = 0, s.now()
	return s.saveLocked(r)
}

// dropLocked forgets a root; mu is held.
func (s *Store) dropLocked(c grid.CID) error {
	r, ok := s.roots[c]
	if !ok {
		return nil
	}
	delete(s.roots, c)
	if !r.Partial {
		s.changeLocked(c, false)
	}
	return s.saveLocked(&root{CID: c, Gone: true})
}

// operation is one thing under way. The blocks and roots it claims are not
// collected before it ends.
type operation struct {
	s      *Store
	cancel context.CancelFunc
	claims map[digest]bool // guarded by s.mu
	roots  []*root         // guarded by s.mu
	ended  bool            // guarded by s.mu
}

// begin starts an operation; the context ends with it or with the store.
func (s *Store) begin(ctx context.Context) (context.Context, *operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	op := &operation{s: s, cancel: cancel, claims: make(map[digest]bool)}
	s.running[op] = struct{}{}
	return ctx, op, nil
}

// end releases what the operation claimed. Ending twice is harmless.
func (op *operation) end() {
	op.cancel()
	op.s.mu.Lock()
	defer op.s.mu.Unlock()
	if op.ended {
		return
	}
	op.ended = true
	for d := range op.claims {
		if op.s.holds[d]--; op.s.holds[d] <= 0 {
			delete(op.s.holds, d)
		}
	}
	for _, r := range op.roots {
		r.busy--
	}
	delete(op.s.running, op)
}

// claim keeps a block, here or to come, from collection until the end.
func (op *operation) claim(d digest) {
	op.s.mu.Lock()
	defer op.s.mu.Unlock()
	if !op.claims[d] && !op.ended {
		op.claims[d] = true
		op.s.holds[d]++
	}
}

// use keeps a held root from collection until the end.
func (op *operation) use(c grid.CID) error {
	op.s.mu.Lock()
	defer op.s.mu.Unlock()
	r, ok := op.s.roots[c]
	if !ok || r.Partial {
		return notHeld(c)
	}
	op.useLocked(r)
	return nil
}

func (op *operation) useLocked(r *root) {
	r.busy++
	r.Used = op.s.now()
	op.roots = append(op.roots, r)
}

// here claims a block and reports whether it is here, with its size.
func (op *operation) here(d digest) (int64, bool) {
	op.s.gcMu.RLock()
	defer op.s.gcMu.RUnlock()
	op.claim(d)
	return op.s.blocks.size(d)
}

// put claims and writes a block, freeing space for it where needed.
func (op *operation) put(ctx context.Context, d digest, data []byte) error {
	return op.place(ctx, d, int64(len(data)), func() error { return op.s.blocks.put(d, data) })
}

// place claims a block of n bytes and lets do store it, freeing space for it where needed.
func (op *operation) place(ctx context.Context, d digest, n int64, do func() error) error {
	for {
		op.s.gcMu.RLock()
		op.claim(d)
		err := do()
		op.s.gcMu.RUnlock()
		if !errors.Is(err, errNoRoom) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := op.s.makeRoom(n); err != nil {
			return err
		}
	}
}

// node reads and decodes a local block; ErrNotHeld when it is not here.
func (s *Store) node(c cid.Cid) (node, error) {
	d, err := digestOf(c)
	if err != nil {
		return node{}, err
	}
	data, err := s.blocks.get(d)
	if ipld.IsNotFound(err) {
		return node{}, fmt.Errorf("%w: block %s is missing or damaged; fetch the data again",
			ErrNotHeld, c)
	}
	if err != nil {
		return node{}, err
	}
	return decode(c, data)
}
