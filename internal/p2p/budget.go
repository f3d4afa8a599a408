package p2p

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// What one peer may cost this site, by kind. What can wait is read more slowly; what cannot is
// refused unread, and a peer that goes on is parted from (parting.go).
const (
	// streams of whatever kind that a peer opens in a row, and per second in the long run. One is
	// free for each dataPerStream bytes of data that came from it: data comes on many streams.
	streamBurst   = 20_000
	streamRate    = 500
	dataPerStream = 32 << 10
	dataKept      = 64 << 20 // bytes of data that are not set against streams yet, at most
	otherBurst    = 4096     // streams that are not for data, in a row
	otherRate     = 100      // and per second in the long run
	connBurst     = 128      // connections that a peer makes in a row
	connRate      = 1        // and per second in the long run
	refusedBurst  = 1000     // streams refused in a row before a peer is parted from
	refusedRate   = 1        // and per second in the long run
	// announcements of its own, beyond what a submitter may send, that a peer brings in a row
	excessBurst = 5_000
	excessRate  = 100 // and per second in the long run
	// work that a peer's messages, and its gossip, make in a row; and per second in the long run:
	// 3 % and 2 % of a core
	workBurst  = time.Second
	workRate   = 30 * time.Millisecond
	gossipRate = 20 * time.Millisecond
	// a wait takes so long at least: many messages together cost less than one by one
	workPause = 250 * time.Millisecond
	// a peer that used up its burst, and for so long let no tenth of it come back, is parted from
	behindMost = 5 * time.Minute
	caughtUp   = workBurst / 10
)

// About how much work it is to look at a message, by a core of today.
const (
	workMessage   = 30 * time.Microsecond // this site's machines write down what they get
	workPerKiB    = time.Microsecond
	workSignature = 80 * time.Microsecond // to verify one
	workOffer     = 80 * time.Microsecond // to work out what this site could offer
)

// Why a peer is parted from, labels of wire.CountParted.
const (
	tooManyStreams  = "streams"
	tooManyConns    = "connections"
	tooMuchGossip   = "announcements"
	tooManyMessages = "messages"
)

// extraWork is the work that a message makes besides being read.
func extraWork(message protocol.Message) time.Duration {
	switch m := message.(type) {
	case protocol.Roster:
		return time.Duration(len(m.Records)) * workSignature
	case protocol.Testimony:
		return workSignature
	case protocol.OnBehalf:
		return workSignature + extraWork(m.Message)
	case protocol.Announce, protocol.Reannounce:
		return workOffer
	default:
		return 0
	}
}

// readingWork is the work to read a message of that size.
func readingWork(size int) time.Duration {
	return workMessage + time.Duration(size)*workPerKiB/1024
}

func newWorkLimiter(perSecond time.Duration) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond.Microseconds()), int(workBurst.Microseconds()))
}

// waitWork waits until so much work fits the limiter. It reports false when ctx ends first.
func waitWork(ctx context.Context, l *rate.Limiter, work time.Duration) (waited, ok bool) {
	n := min(int(work.Microseconds()), l.Burst())
	d := l.ReserveN(time.Now(), n).Delay()
	return d > 0, d == 0 || wire.Pause(ctx, max(d, workPause), nil)
}

// work waits until a message of the peer that makes so much work may be handled. It reports false
// when ctx ends first, and when the peer has been behind for too long: it is parted from then.
func (g *guard) work(ctx context.Context, id peer.ID, work time.Duration) bool {
	l := g.ledger(id)
	waited, ok := waitWork(ctx, l.work, work)
	if !ok {
		return false
	}
	if g.isBehind(l, waited) {
		g.leave(l, id, tooManyMessages)
		return false
	}
	return true
}

// isBehind reports whether the peer of an account was behind for too long, by now.
func (g *guard) isBehind(l *ledger, waited bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	switch {
	case l.behind.IsZero() && waited:
		l.behind = now
	case l.work.TokensAt(now) > float64(caughtUp.Microseconds()):
		l.behind = time.Time{}
	}
	return !l.behind.IsZero() && now.Sub(l.behind) > behindMost
}

// gossipWork waits until so much may be done for what the peer says on the topic. Nobody is
// parted from for that: a peer passes on what others say.
func (g *guard) gossipWork(ctx context.Context, id peer.ID, work time.Duration) bool {
	_, ok := waitWork(ctx, g.ledger(id).gossip, work)
	return ok
}

// gossiped notes work that has been done for what the peer says on the topic; what it says next
// waits for that.
func (g *guard) gossiped(id peer.ID, work time.Duration) {
	l := g.ledger(id).gossip
	l.ReserveN(time.Now(), min(int(work.Microseconds()), l.Burst()))
}

// excess notes that the peer brought an announcement of its own beyond its rate. Honest sites do
// not: they know the rate.
func (g *guard) excess(id peer.ID) {
	if l := g.ledger(id); !l.excess.Allow() {
		g.leave(l, id, tooMuchGossip)
	}
}

// stream reports whether the peer may have opened one more stream, of whatever kind.
func (g *guard) stream(id peer.ID) bool {
	l := g.ledger(id)
	if data := l.data.Add(-dataPerStream); data >= 0 {
		return true
	}
	l.data.Add(dataPerStream)
	return l.opens.Allow() || g.refuse(l, id)
}

// other reports whether the peer may have opened one more stream that is not for data.
func (g *guard) other(id peer.ID) bool {
	l := g.ledger(id)
	return l.others.Allow() || g.refuse(l, id)
}

// refuse notes that a stream is refused, and parts from a peer of which too many were.
func (g *guard) refuse(l *ledger, id peer.ID) bool {
	if !l.refused.Allow() {
		g.leave(l, id, tooManyStreams)
	}
	return false
}

// conn reports whether the peer may have made one more connection.
func (g *guard) conn(id peer.ID) bool {
	l := g.ledger(id)
	if l.conns.Allow() {
		return true
	}
	g.leave(l, id, tooManyConns)
	return false
}

// brought notes that data came from the peer.
func (l *ledger) brought(bytes int) {
	if l.data.Add(int64(bytes)) > dataKept {
		l.data.Store(dataKept)
	}
}

// leave parts from a peer. Those that share an account have not shown which of them it was.
func (g *guard) leave(l *ledger, id peer.ID, why string) {
	if l != g.crowd && g.part != nil {
		g.part(id, why)
	}
}
