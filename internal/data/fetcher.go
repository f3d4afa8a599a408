package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ipfs/boxo/exchange"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	minWindow    = 4                      // blocks asked for at the same time, at least
	startWindow  = 16                     // at first
	maxWindow    = 64                     // at most: 16 MiB of whole leaves
	firstQuiet   = 12                     // th part of the stall timeout until the first repetition
	slowBlock    = 4 * time.Second        // a block that takes longer halves the window
	watchEvery   = 250 * time.Millisecond // between two looks at the connections
	lacksBacklog = 1024                   // refusals to be handled; more are dropped
)

// How a round of a fetch ends without an error of ours.
var (
	errRound = errors.New("round ended")                  // the next one connects anew
	errQuiet = fmt.Errorf("%w: asked again", errRound)    // a request or its answer may be lost
	errLack  = errors.New("no holder has all the blocks") // another round would not help
)

// want is a block that the graph needs.
type want struct {
	c     cid.Cid
	size  int64 // of the graph below it, as its parent claims; 0 = unknown
	depth int
}

// arrival is the end of one request.
type arrival struct {
	w    want
	data []byte
	took time.Duration
	err  error
}

// fetcher walks one graph and asks for what is missing. One goroutine owns it;
// requests run in goroutines of their own and report over channels.
type fetcher struct {
	s        *Store
	op       *operation
	root     cid.Cid
	holders  []*holder
	progress Progress

	todo    []want // not yet looked at, the next one last
	seen    map[digest]bool
	pending map[digest]want             // asked for in this round
	lacking map[digest]map[peer.ID]bool // of the pending ones: who lacks them
	window  int
	done    int64         // bytes here
	moved   int64         // bytes that came over the network
	quiet   time.Duration // without a block before is asked again; doubles
	total   int64         // estimate

	arrivals chan arrival // capacity maxWindow: a request never waits to report
	lacks    chan lack
	workers  sync.WaitGroup
}

func newFetcher(s *Store, op *operation, c cid.Cid, holders []*holder, progress Progress) *fetcher {
	return &fetcher{
		s: s, op: op, root: c, holders: holders, progress: progress,
		todo: []want{{c: c}}, seen: make(map[digest]bool),
		pending: make(map[digest]want), lacking: make(map[digest]map[peer.ID]bool), window: startWindow,
		arrivals: make(chan arrival, maxWindow), lacks: make(chan lack, lacksBacklog),
	}
}

// run brings the graph here, in rounds: a round ends when nothing moves any more.
func (f *fetcher) run(ctx context.Context) error {
	defer f.s.swap.watch(f)()
	if err := f.advance(nil); err != nil || f.complete() { // what is here already
		return err
	}
	for idle := 0; ; {
		before := f.moved
		f.quiet = min(max(2*f.quiet, f.s.cfg.StallTimeout/firstQuiet), f.s.cfg.StallTimeout)
		err := f.round(ctx)
		if errors.Is(err, errLack) {
			return holdersError(f.holders)
		}
		if err == nil || !errors.Is(err, errRound) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w (%w)", ctx.Err(), holdersError(f.holders))
		}
		switch {
		case f.moved > before:
			idle, f.quiet = 0, 0
		case !errors.Is(err, errQuiet):
			idle++
		}
		if idle >= fetchRounds || !f.worthAnother() {
			return holdersError(f.holders)
		}
		f.s.cfg.Log.Debug("fetch goes on", "cid", string(gridCID(f.root)), "moved_bytes", f.moved)
	}
}

func (f *fetcher) complete() bool { return len(f.todo) == 0 && len(f.pending) == 0 }

// round connects to the holders and asks them until the graph is complete or
// nothing moves any more.
func (f *fetcher) round(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		if late := f.drain(); late != nil &&
			(err == nil || errors.Is(err, errRound) || errors.Is(err, errLack)) {
			err = late
		}
	}()
	reach, up := f.connect(ctx)
	if !up {
		return errRound
	}
	defer f.s.meter.begin(f.peers())()
	session := f.s.swap.session(ctx, f.peers())
	stall := time.NewTimer(f.quiet)
	defer stall.Stop()
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	ask := func(w want) { f.ask(ctx, session, w) }
	for {
		if err = f.advance(ask); err != nil || f.complete() {
			return err
		}
		if err = f.await(ctx, reach, stall, watch.C); err != nil {
			return err
		}
	}
}

// await takes what happens next in a round; an error ends the round.
func (f *fetcher) await(
	ctx context.Context, reach <-chan reached, stall *time.Timer, watch <-chan time.Time,
) error {
	select {
	case a := <-f.arrivals:
		err := f.arrived(a)
		stall.Reset(f.quiet)
		return err
	case l := <-f.lacks:
		f.noteLack(l)
		return f.hopeless()
	case r := <-reach:
		f.onReached(r)
		return f.hopeless()
	case <-watch:
		return f.lost()
	case <-stall.C:
		f.blame(fmt.Errorf("sent nothing for %s", f.quiet))
		if f.quiet < f.s.cfg.StallTimeout {
			return errQuiet
		}
		return errRound
	case <-ctx.Done():
		return errRound
	}
}

// drain waits for the requests of a round that ended and takes what still came.
// What is still missing is asked for in the next round.
func (f *fetcher) drain() error {
	f.workers.Wait()
	var errs []error
	for {
		select {
		case a := <-f.arrivals:
			if err := f.arrived(a); err != nil && !errors.Is(err, errRound) {
				errs = append(errs, err)
			}
			continue
		default:
		}
		break
	}
	for d, w := range f.pending {
		f.todo = append(f.todo, w)
		delete(f.seen, d)
	}
	clear(f.pending)
	clear(f.lacking)
	return errors.Join(errs...)
}

// advance looks at what is next: a block that is here gives its children, one
// that is missing is asked for, as far as the window is open. Without ask it
// stops at the first that is missing.
func (f *fetcher) advance(ask func(want)) error {
	for len(f.todo) > 0 && len(f.pending) < f.window {
		w := f.todo[len(f.todo)-1]
		d, err := digestOf(w.c)
		if err != nil {
			return err
		}
		if f.seen[d] {
			f.todo = f.todo[:len(f.todo)-1]
			continue
		}
		if len(f.seen) >= f.s.cfg.Limits.Nodes || w.depth > maxGraphDepth {
			return fmt.Errorf("%w: more than %d blocks or %d levels",
				ErrTooLarge, f.s.cfg.Limits.Nodes, maxGraphDepth)
		}
		here, err := f.local(w, d)
		if err != nil {
			return err
		}
		if here {
			continue
		}
		if ask == nil {
			return nil
		}
		f.todo = f.todo[:len(f.todo)-1]
		f.seen[d] = true
		f.pending[d] = w
		ask(w)
	}
	return nil
}

// local takes the block from this site where it is here and whole. It then has
// replaced it in todo by its children.
func (f *fetcher) local(w want, d digest) (bool, error) {
	size, here := f.op.here(d)
	if !here {
		return false, nil
	}
	if w.c.Type() == cid.Raw && size == w.size && !f.s.blocks.doubtful(d) { // whole
		f.todo = f.todo[:len(f.todo)-1]
		f.took(d, size)
		return true, nil
	}
	data, err := f.s.blocks.get(d)
	if ipld.IsNotFound(err) { // damaged
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f.todo = f.todo[:len(f.todo)-1]
	return true, f.grow(w, d, data)
}

// grow enters a block that is here, and wants its children.
func (f *fetcher) grow(w want, d digest, data []byte) error {
	n, err := decode(w.c, data)
	if err != nil {
		return err
	}
	if w.depth == 0 {
		f.total = claimedBytes(len(data), n.links)
		if err := f.makeRoom(); err != nil {
			return err
		}
	}
	for _, l := range slices.Backward(n.links) {
		f.todo = append(f.todo, want{c: l.Cid, size: clampSize(l.Size), depth: w.depth + 1})
	}
	f.took(d, int64(len(data)))
	return nil
}

// makeRoom fails early where the whole graph cannot fit.
func (f *fetcher) makeRoom() error {
	f.s.gcMu.RLock()
	_, here, _, err := f.s.walkLocal(f.root)
	f.s.gcMu.RUnlock()
	if err != nil {
		return err
	}
	if f.s.cfg.QuotaBytes > 0 && f.total > f.s.cfg.QuotaBytes {
		return fmt.Errorf("%w: it takes %s, the quota is %s", ErrQuota,
			grid.FormatBytes(f.total), grid.FormatBytes(f.s.cfg.QuotaBytes))
	}
	return f.s.makeRoom(max(f.total-here, 0))
}

func (f *fetcher) took(d digest, bytes int64) {
	f.seen[d] = true
	f.done += bytes
	f.total = max(f.total, f.done)
	f.progress(f.done, f.total)
}

// ask requests one block; the answer comes as an arrival.
func (f *fetcher) ask(ctx context.Context, session exchange.Fetcher, w want) {
	f.workers.Go(func() {
		start := time.Now()
		blk, err := f.request(ctx, session, w)
		a := arrival{w: w, took: time.Since(start), err: err}
		if err == nil {
			a.data = blk.RawData()
		}
		f.arrivals <- a
	})
}

func (f *fetcher) request(
	ctx context.Context, session exchange.Fetcher, w want,
) (blocks.Block, error) {
	expect := min(max(w.size, 1), chunkBytes)
	if err := waitLimit(ctx, f.s.swap.downLimit, int(expect)); err != nil {
		return nil, errRound
	}
	blk, err := session.GetBlock(ctx, w.c)
	if err != nil { // the session ended
		return nil, errRound
	}
	d, err := digestOf(w.c)
	if err != nil {
		return nil, err
	}
	if err := f.op.put(ctx, d, blk.RawData()); err != nil {
		if ctx.Err() != nil {
			err = errRound
		}
		return nil, err
	}
	// Members that wait for this block get it now.
	_ = f.s.swap.bs.NotifyNewBlocks(ctx, blk)
	return blk, nil
}

// arrived takes the end of a request.
func (f *fetcher) arrived(a arrival) error {
	if a.err != nil {
		return a.err
	}
	d, err := digestOf(a.w.c)
	if err != nil {
		return err
	}
	delete(f.pending, d)
	delete(f.lacking, d)
	f.moved += int64(len(a.data))
	if a.took > slowBlock {
		f.window = max(f.window/2, minWindow)
	} else {
		f.window = min(f.window+1, maxWindow)
	}
	return f.grow(a.w, d, a.data)
}
