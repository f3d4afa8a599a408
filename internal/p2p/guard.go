package p2p

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/time/rate"
)

// What one peer may make this site do. An honest peer stays far below all of it.
const (
	bidStreams     = 4  // open streams for messages; it needs one, two for a moment
	bidStreamBurst = 32 // streams for messages that it opens in a row
	bidStreamRate  = 2  // and per second in the long run
	helloBurst     = 32 // Hellos repeated in a row
	// envelopes of its own that have expired, in a row: its clock was set, or it slept
	lateBurst  = 64
	lateRate   = 1               // and per second in the long run
	tipBurst   = 128             // addresses of others that are new here, in a row
	tipRate    = 1               // and per second in the long run
	knownAddrs = 32              // known addresses of one peer; beyond, hearsay adds none
	lowestPort = 1024            // hearsay leads to no port below: other services listen there
	logShare   = 8               // a peer has at most 1/logShare of the log streams
	ledgerKept = 5 * time.Minute // after this time without news every bucket is full again
	// messages per second that are read from one peer in the long run
	messageRate  = 5_000
	messageBurst = 20_000 // messages that are read from it in a row
	// bytes of messages per second that are read from one peer in the long run
	byteRate        = 16 << 20
	byteBurst       = 32 << 20 // bytes of messages that are read from it in a row
	helloPerSpread  = 2        // Hellos heeded in the time in which an honest peer sends one
	followPerMember = 2        // strangers followed on hearsay in a row, for each member there may be
	followRate      = 4        // and per second in the long run, no matter who names them
)

// Queues, and streams of which there are too many, labels of wire.CountDropped.
const (
	queueFull    = "send_full"      // Send found the queue full
	queueSend    = "send_abandoned" // the peer could not be reached, or took nothing
	queueLogs    = "logs"           // too many open log streams, of one peer or of all
	queueStreams = "streams"        // a peer opened more streams than it may
	queueHello   = "hello"          // a peer repeated its Hello too often
	// addresses of others that are not followed: too many, or not to be dialled
	hearsay = "hearsay"
)

// guard keeps account of what each peer makes this site do, beyond the lives of
// its connections. It is safe for concurrent use.
type guard struct {
	helloRate rate.Limit
	most      int // ledgers
	logs      int // log streams of one peer
	follow    *rate.Limiter
	part      func(id peer.ID, why string) // nil: nobody is parted from

	mu      sync.Mutex
	ledgers map[peer.ID]*ledger
	crowd   *ledger // shared by the peers beyond most
	swept   time.Time
}

// ledger is one peer's account. Its counts are guarded by guard.mu.
type ledger struct {
	opened, hellos, late, tips, messages, bytes *rate.Limiter
	// of budget.go: streams, those not for data and those refused, connections, work of messages
	// and of gossip in microseconds, its own announcements beyond its rate
	opens, others, refused, conns, work, gossip, excess *rate.Limiter

	data atomic.Int64 // bytes that came from it and are not set against streams yet

	streams, logs int // open now
	used          time.Time
	behind        time.Time // since when its messages wait; zero: it has caught up
}

func newGuard(cfg Config) *guard {
	g := &guard{
		helloRate: rate.Limit(helloPerSpread / cfg.Timing.Spread.Seconds()),
		most:      cfg.Limits.Peers, logs: max(cfg.Limits.LogStreams/logShare, 1),
		follow:  rate.NewLimiter(followRate, followPerMember*cfg.Limits.Members),
		ledgers: make(map[peer.ID]*ledger),
	}
	g.crowd = g.blank()
	return g
}

func (g *guard) blank() *ledger {
	return &ledger{
		opened: rate.NewLimiter(bidStreamRate, bidStreamBurst),
		hellos: rate.NewLimiter(g.helloRate, helloBurst),
		late:   rate.NewLimiter(lateRate, lateBurst), tips: rate.NewLimiter(tipRate, tipBurst),
		messages: rate.NewLimiter(messageRate, messageBurst), bytes: rate.NewLimiter(byteRate, byteBurst),
		opens:   rate.NewLimiter(streamRate, streamBurst),
		others:  rate.NewLimiter(otherRate, otherBurst),
		refused: rate.NewLimiter(refusedRate, refusedBurst),
		conns:   rate.NewLimiter(connRate, connBurst),
		work:    newWorkLimiter(workRate), gossip: newWorkLimiter(gossipRate),
		excess: rate.NewLimiter(excessRate, excessBurst),
	}
}

// of returns a peer's ledger. Peers beyond g.most share one. g.mu is held.
func (g *guard) of(id peer.ID) *ledger {
	now := time.Now()
	l, ok := g.ledgers[id]
	if !ok {
		if len(g.ledgers) >= g.most && now.Sub(g.swept) > time.Second {
			g.sweep(now)
		}
		if len(g.ledgers) >= g.most {
			return g.crowd
		}
		l = g.blank()
		g.ledgers[id] = l
	}
	l.used = now
	return l
}

// sweep drops the ledgers of peers that were quiet so long that every bucket is full.
func (g *guard) sweep(now time.Time) {
	g.swept = now
	for id, l := range g.ledgers {
		if l.streams == 0 && l.logs == 0 && now.Sub(l.used) > ledgerKept {
			delete(g.ledgers, id)
		}
	}
}

// openStream reports whether the peer may have one more stream for messages;
// leave ends it.
func (g *guard) openStream(id peer.ID) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.of(id)
	if l.streams >= bidStreams || !l.opened.Allow() {
		return nil, false
	}
	l.streams++
	return func() { g.close(&l.streams) }, true
}

// openLog reports whether the peer may have one more log stream; leave ends it.
func (g *guard) openLog(id peer.ID) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.of(id)
	if l.logs >= g.logs {
		return nil, false
	}
	l.logs++
	return func() { g.close(&l.logs) }, true
}

func (g *guard) close(open *int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*open--
}

// pace waits until the next message of the peer may be read, after one of that
// size: a peer that sends more than this site handles has to wait, and costs the
// others nothing. It reports false when ctx ends first.
func (g *guard) pace(ctx context.Context, id peer.ID, size int) bool {
	l := g.ledger(id)
	if l.messages.Wait(ctx) != nil || l.bytes.WaitN(ctx, size) != nil {
		return false
	}
	return size == 0 || g.work(ctx, id, readingWork(size))
}

// hello reports whether a repeated Hello of the peer is heeded.
func (g *guard) hello(id peer.ID) bool { return g.ledger(id).hellos.Allow() }

// lateOwn reports whether an expired envelope that the peer signed itself is
// forgiven.
func (g *guard) lateOwn(id peer.ID) bool { return g.ledger(id).late.Allow() }

// tip reports whether one more address is taken from the peer.
func (g *guard) tip(id peer.ID) bool { return g.ledger(id).tips.Allow() }

func (g *guard) ledger(id peer.ID) *ledger {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of(id)
}

// dialable reports whether this site dials an address on hearsay. Ports
// below lowestPort belong to other services.
func dialable(a ma.Multiaddr) bool {
	if ip, err := manet.ToIP(a); err == nil && (ip.IsUnspecified() || ip.IsMulticast()) {
		return false
	}
	for _, code := range []int{ma.P_TCP, ma.P_UDP} {
		text, err := a.ValueForProtocol(code)
		if err == nil {
			port, err := strconv.Atoi(text)
			return err == nil && port >= lowestPort
		}
	}
	return false
}
