package p2p

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Habits of a peer's owner.
const (
	hearsayTries = 5                      // attempts to reach a peer that was only heard of
	lostPause    = 20 * time.Millisecond  // between attempts while a loss is not yet told
	refusalGrace = 500 * time.Millisecond // a refused peer has this long to read why
	memberTag    = "mrs-member"           // protects members from the connection manager
)

// remote is this site's side of one peer. Its goroutine, run, owns the dialling,
// the outgoing stream and the verdict that the peer is gone.
type remote struct {
	m    *Mesh
	id   peer.ID
	site grid.SiteID

	queue  chan []byte   // frames to send
	queued atomic.Int64  // bytes of them
	filled chan struct{} // capacity 1: something was put into the queue
	dialed chan struct{} // capacity 1: the peer dialled us
	news   chan struct{} // capacity 1: a Hello is to be repeated
	better chan struct{} // capacity 1: there is a direct connection now

	failures int // attempts in a row that failed; only the goroutine's

	outbound atomic.Pointer[network.Conn] // the last connection we dialled
	end      context.CancelFunc           // ends the goroutine

	// Set before the goroutine can end, read by it; guarded by Mesh.mu.
	bootstrap []ma.Multiaddr // dialled again and again
	hearsay   int            // attempts left on hearsay alone
	heard     time.Time      // when hearsay last ended a pause

	order sync.Mutex // held while facts change and handlers are told

	mu       sync.Mutex
	facts    Facts
	present  bool                    // admitted and not reported gone
	seen     chan struct{}           // closed while present
	pending  []string                // members to name in the next Hello
	inbound  network.Stream          // on which the peer speaks
	outgoing network.Stream          // on which we speak
	knocked  map[netip.AddrPort]bool // where the peer's own host accepted TCP for the agent
	circuits []ma.Multiaddr          // where it is reached through relays, as it says itself
	mended   mending                 // how often gossip with it was begun anew
	expelled bool                    // it is no member any more; another owner may follow
	roster   time.Time               // when the whole roster was sent to it last
	compare  bool                    // digests will be compared again
}

func newRemote(m *Mesh, id peer.ID, site grid.SiteID) *remote {
	return &remote{
		m: m, id: id, site: site, queue: make(chan []byte, m.cfg.Limits.QueueMessages),
		filled: make(chan struct{}, 1), dialed: make(chan struct{}, 1),
		news: make(chan struct{}, 1), better: make(chan struct{}, 1),
		seen: make(chan struct{}), knocked: make(map[netip.AddrPort]bool),
	}
}

// signal leaves a mark in a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (r *remote) kick() { signal(r.dialed) }

// enqueue puts a frame into the queue or reports errQueueFull.
func (r *remote) enqueue(frame []byte) error {
	size := int64(len(frame))
	if r.queued.Add(size) <= r.m.cfg.Limits.QueueBytes {
		select {
		case r.queue <- frame:
			signal(r.filled)
			return nil
		default:
		}
	}
	r.queued.Add(-size)
	r.m.counts.Inc(wire.CountDropped, queueFull)
	return errQueueFull
}

// abandon drops what is queued: it would arrive too late to be true.
func (r *remote) abandon() {
	for {
		select {
		case frame := <-r.queue:
			r.queued.Add(-int64(len(frame)))
			r.m.counts.Inc(wire.CountDropped, queueSend)
		default:
			return
		}
	}
}

// needed reports whether the peer is to be dialled again, or is connected.
func (r *remote) needed() bool {
	return len(r.bootstrap) > 0 || r.hearsay > 0 || r.m.book.has(r.id) || r.connected()
}

func (r *remote) connected() bool {
	return r.m.host.Network().Connectedness(r.id) == network.Connected
}

// admitted returns what the peer said about itself, while it is present.
func (r *remote) admitted() (Facts, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.facts, r.present
}

// run is the life of the peer's owner.
func (r *remote) run(ctx context.Context) {
	wait := wire.Backoff{Low: r.m.cfg.Timing.BackoffMin, High: r.m.cfg.Timing.BackoffMax}
	var lost time.Time
	for ctx.Err() == nil {
		began := time.Now()
		err := r.attempt(ctx, lost)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			r.failures = 0
			r.breathe(ctx, began, &wait)
			lost = time.Now()
			continue
		}
		if facts, present := r.admitted(); present && !r.mourn(ctx, facts.Run, lost, err) {
			continue
		}
		r.abandon()
		if !r.failed(ctx, err) && r.m.forget(r) {
			return
		}
		r.rest(ctx, wait.Next(r.m.hopeless(err)))
	}
}

// breathe comes between two streams to a peer that was admitted. One that is
// still connected but ends its streams soon is given pauses.
func (r *remote) breathe(ctx context.Context, began time.Time, wait *wire.Backoff) {
	if time.Since(began) > r.m.cfg.Timing.BackoffMin {
		wait.Reset()
	} else if r.connected() {
		r.rest(ctx, wait.Next(false))
	}
}

// attempt reaches the peer and then writes to it until the stream ends. An
// error means that the peer was not reached or not admitted.
func (r *remote) attempt(ctx context.Context, lost time.Time) error {
	opening := ctx
	if _, present := r.admitted(); present { // a loss is to be told in time
		if !r.connected() && r.refuses(ctx) {
			return errRefusing
		}
		limited, cancel := context.WithDeadline(ctx, lost.Add(max(r.m.cfg.Timing.Debounce, lostPause)))
		defer cancel()
		opening = limited
	}
	l, err := r.open(opening)
	if err != nil {
		return err
	}
	for next := &l; next != nil; {
		next = r.use(ctx, *next)
	}
	return nil
}

// use admits the peer on a stream and writes to it until the stream ends. It
// returns a better one if that is why.
func (r *remote) use(ctx context.Context, l link) (next *link) {
	if ctx.Err() != nil { // it ended while a better stream was opened
		_ = l.stream.Reset()
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = l.stream.Reset() })
	defer stop()
	r.mu.Lock()
	r.outgoing = l.stream
	r.mu.Unlock()
	r.admit(ctx, l)
	return r.carry(ctx, l)
}

// failed notes an attempt that failed and reports whether there is reason for
// another one.
func (r *remote) failed(ctx context.Context, err error) bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.m.log.Debug("peer is not reached", "peer", r.site, "error", err)
	if r.hearsay > 0 {
		r.hearsay--
	}
	r.failures++
	if !isRefusal(err) {
		r.m.finder.missed(ctx, r, r.failures)
	} else {
		r.m.after(refusalGrace, func() { _ = r.m.host.Network().ClosePeer(r.id) })
	}
	return r.needed()
}

// mourn decides, after a failed attempt, whether a peer whose stream is lost is
// gone, and tells so. It reports false, after a short pause, when it is too
// early to say.
func (r *remote) mourn(ctx context.Context, run protocol.Run, lost time.Time, err error) bool {
	refusing := errors.Is(err, errRefusing)
	if refusing || time.Since(lost) >= r.m.cfg.Timing.Debounce {
		r.gone(run, refusing)
		if r.connected() { // it answers no Hello: begin afresh
			_ = r.m.host.Network().ClosePeer(r.id)
		}
		return true
	}
	wire.Pause(ctx, lostPause, r.dialed)
	return false
}

// rest waits before the next attempt. A peer that dials us ends it immediately,
// and a message to send ends it after the shortest pause.
func (r *remote) rest(ctx context.Context, d time.Duration) {
	began := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-r.dialed:
			return
		case <-r.filled:
			d = min(d, r.m.cfg.Timing.BackoffMin)
			timer.Reset(max(0, d-time.Since(began)))
		}
	}
}

// admit makes the peer a member, or renews what is known of it, and tells the
// others where it is.
func (r *remote) admit(ctx context.Context, l link) {
	r.update(l.facts, false)
	r.m.host.ConnManager().Protect(r.id, memberTag)
	conn := l.stream.Conn()
	r.m.learn(r.id, l.peers)
	addrs := r.m.addrsOf(r, conn)
	r.m.book.put(r.id, addrs, r.m.cfg.Now())
	r.m.wg.Go(func() { r.acquaint(ctx, conn) })
	r.m.tellAll(r.id, addrs)
	r.m.relays.Wake()
	r.compareRoster(l.roster)
}

// update takes over facts and tells the handlers what changed. With known set it
// only renews what is known of a peer that is present.
func (r *remote) update(facts Facts, known bool) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.Lock()
	old, was := r.facts, r.present
	other := old.Run.Compare(facts.Run) != 0
	if r.expelled || known && (!was || other) {
		r.mu.Unlock()
		return
	}
	r.facts, r.present = facts, true
	r.mu.Unlock()
	if other && old.Run.Number != 0 {
		r.abandon() // it was meant for another run
	}
	restarted := was && other
	if restarted {
		r.m.counts.Inc(wire.CountLost, "refusing")
		r.m.handlers.OnPeerGone(r.site, true)
	}
	if !was || restarted {
		r.m.log.Info("peer admitted", "peer", r.site, "name", facts.Name, "skew", facts.Skew)
	}
	if !was || !old.same(facts) {
		r.m.handlers.OnPeerSeen(r.site, facts)
	}
	if !was {
		close(r.seen) // only now may messages follow; the holder of order replaces it
	}
}

// gone says that this run of the peer is lost, unless a later one was
// admitted meanwhile.
func (r *remote) gone(run protocol.Run, refusing bool) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.Lock()
	was := r.present && r.facts.Run.Compare(run) == 0
	if was {
		r.present, r.seen = false, make(chan struct{})
	}
	r.mu.Unlock()
	if !was {
		return
	}
	how := "silent"
	if refusing {
		how = "refusing"
	}
	r.m.counts.Inc(wire.CountLost, how)
	r.m.host.ConnManager().Unprotect(r.id, memberTag)
	r.m.log.Info("peer is gone", "peer", r.site, "refusing", refusing)
	r.m.handlers.OnPeerGone(r.site, refusing)
}
