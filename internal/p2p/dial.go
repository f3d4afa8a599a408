package p2p

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// errRefusing says that the peer's own host refuses connections where the agent
// listened before.
var errRefusing = errors.New("the agent seems to be dead")

func isRefusal(err error) bool {
	var refusal *refusedError
	return errors.As(err, &refusal)
}

// link is an outgoing stream on which both sides admitted each other.
type link struct {
	stream network.Stream
	facts  Facts
	peers  []string        // members the peer named
	roster protocol.Digest // of the peer's roster
}

// open connects if need be, opens the stream and exchanges the Hellos.
func (r *remote) open(ctx context.Context) (link, error) {
	if !r.connected() {
		if err := r.dial(ctx); err != nil {
			return link{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.m.cfg.Timing.Hello)
	defer cancel()
	stream, err := r.m.host.NewStream(
		network.WithNoDial(ctx, "connected before"), r.id, protocol.StreamID,
	)
	if err != nil {
		return link{}, r.gated(ctx, err)
	}
	l, err := r.greet(ctx, stream)
	if err != nil {
		_ = stream.Reset()
		return link{}, r.gated(ctx, err)
	}
	return l, nil
}

// dial connects to wherever the peer may be.
func (r *remote) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.m.cfg.Timing.Dial)
	defer cancel()
	if s, ok := r.m.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(r.id) // the pauses between attempts are ours
	}
	err := r.m.host.Connect(ctx, peer.AddrInfo{ID: r.id, Addrs: r.hints()})
	if err != nil {
		r.m.counts.Inc(wire.CountDials, "failed")
		return r.gated(ctx, err)
	}
	r.m.counts.Inc(wire.CountDials, "ok")
	return nil
}

// hints returns addresses of the peer besides those that the host knows itself.
func (r *remote) hints() []ma.Multiaddr {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return append(slices.Clip(r.bootstrap), r.m.book.addrs(r.id)...)
}

// greet says Hello and judges the answer.
func (r *remote) greet(ctx context.Context, stream network.Stream) (link, error) {
	limit := r.m.cfg.Timing.Hello
	if until, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(until))
		if err := stream.SetReadDeadline(until); err != nil {
			return link{}, err
		}
	}
	sent := r.m.cfg.Now()
	if err := writeHello(
		stream, limit, r.m.hello(grid.ReasonNone, r.m.membersFor(r.id, stream.Conn())),
	); err != nil {
		return link{}, err
	}
	hello, err := readHello(wire.NewReader(stream, limit))
	if errors.Is(err, grid.ErrInvalid) {
		r.m.unusable(r.site, err)
		refusal := &refusedError{Site: r.site, Reason: grid.ReasonInvalid}
		r.m.refused(refusal)
		return link{}, refusal
	}
	if err != nil {
		return link{}, err
	}
	facts, reason := r.m.judge(r.site, hello, sent, r.m.cfg.Now())
	refusal := &refusedError{Site: r.site, Reason: reason}
	if hello.Refusal != grid.ReasonNone {
		r.m.heedRefusal(r.site, hello)
		refusal.Reason, refusal.ByPeer = hello.Refusal, true
	}
	if refusal.Reason != grid.ReasonNone {
		r.m.refused(refusal)
		return link{}, refusal
	}
	return link{
		stream: stream, facts: facts, peers: hello.Peers, roster: hello.Roster,
	}, stream.SetReadDeadline(time.Time{})
}

// gated recognises the code with which a peer closes a stranger's connection.
// Where the connection was closed before a stream was opened on it, only the
// connection itself still knows the code.
func (r *remote) gated(ctx context.Context, err error) error {
	if last := r.outbound.Swap(nil); last != nil && (*last).IsClosed() {
		if _, why := (*last).NewStream(ctx); why != nil {
			err = errors.Join(err, why)
		}
	}
	var closed *network.ConnError
	if !errors.As(err, &closed) || !closed.Remote || closed.ErrorCode != network.ConnGated {
		return err
	}
	refusal := &refusedError{Site: r.site, Reason: r.m.reasonForUs(), ByPeer: true}
	r.m.refused(refusal)
	return refusal
}
