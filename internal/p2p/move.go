package p2p

import (
	"context"
	"errors"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// leaveGrace is left for what was written to a stream to arrive after its writer
// moved to a better one.
const leaveGrace = 2 * time.Second

// moveLimit bounds the attempt to move.
const moveLimit = 5 * time.Second

// Results of moving a stream, the label of CountMoves.
const (
	moveOK     = "ok"
	moveFailed = "failed"
)

// move opens a stream on the direct connection, while the old one still carries
// what there is, and puts it, or nil, into the channel. The old stream is given up
// only when the peer has answered on the new one: a hole that was punched may be
// open in one direction only, and nobody is to be reported gone for it. Where
// there is nothing better the channel is nil.
func (r *remote) move(ctx context.Context, l link) chan *link {
	if !relay.IsCircuit(l.stream.Conn().RemoteMultiaddr()) || relay.Direct(r.m.host, r.id) == nil {
		return nil
	}
	moved := make(chan *link, 1)
	r.m.wg.Go(func() {
		l, err := r.openDirect(ctx)
		if err != nil {
			r.m.counts.Inc(wire.CountMoves, moveFailed)
			r.m.log.Debug("direct connection is not usable", "peer", r.site, "error", err)
			r.m.after(r.m.cfg.Timing.Hello, func() { signal(r.better) })
			moved <- nil
			return
		}
		r.m.counts.Inc(wire.CountMoves, moveOK)
		r.m.log.Info("peer is reached directly", "peer", r.site)
		r.m.after(r.m.cfg.Timing.Linger, func() { r.m.closeRelayed(r.id) })
		moved <- &l
	})
	return moved
}

// await waits for the result of an attempt to move; nil if there was none.
func await(moving <-chan *link) *link {
	if moving == nil {
		return nil
	}
	return <-moving
}

// errRelayed says that the only connection leads through a relay.
var errRelayed = errors.New("only relayed connections")

// openDirect opens a stream on a direct connection and exchanges the Hellos.
func (r *remote) openDirect(ctx context.Context) (link, error) {
	ctx, cancel := context.WithTimeout(ctx, min(moveLimit, r.m.cfg.Timing.Hello))
	defer cancel()
	ctx = network.WithForceDirectDial(network.WithNoDial(ctx, "connected before"), "moving")
	stream, err := r.m.host.NewStream(ctx, r.id, protocol.StreamID)
	if err != nil {
		return link{}, err
	}
	if relay.IsCircuit(stream.Conn().RemoteMultiaddr()) {
		_ = stream.Reset()
		return link{}, errRelayed
	}
	l, err := r.greet(ctx, stream)
	if err != nil {
		_ = stream.Reset()
	}
	return l, err
}

// leave ends a stream after all that was written to it has been read.
func (r *remote) leave(ctx context.Context, l link, ended <-chan struct{}) {
	_ = l.stream.CloseWrite()
	r.m.wg.Go(func() {
		wire.Pause(ctx, leaveGrace, ended)
		_ = l.stream.Reset()
		<-ended
	})
}

// closeRelayed ends the relayed connections to a peer that is connected directly.
// What is still open on them opens anew.
func (m *Mesh) closeRelayed(id peer.ID) {
	if relay.Direct(m.host, id) == nil {
		return
	}
	for _, c := range m.host.Network().ConnsToPeer(id) {
		if relay.IsCircuit(c.RemoteMultiaddr()) {
			_ = c.Close()
		}
	}
}

// leadsTo says where the best connection to a peer leads, and which member
// relays it.
func (m *Mesh) leadsTo(id peer.ID) (addr string, by grid.SiteID) {
	conn := relay.Direct(m.host, id)
	if conn == nil {
		conns := m.host.Network().ConnsToPeer(id)
		if len(conns) == 0 {
			return "", ""
		}
		conn = conns[0]
		by = relay.Through(conn.RemoteMultiaddr())
	}
	return conn.RemoteMultiaddr().String(), by
}

// Reach tells how this site and the others reach each other now.
type Reach struct {
	relay.Reach
	Direct  int // admitted peers that are connected directly
	Relayed int // admitted peers that are connected through a relay
}

// Reach tells how this site and the others reach each other now.
func (m *Mesh) Reach() Reach {
	reach := Reach{Reach: m.relays.Reach()}
	for _, p := range m.Peers() {
		switch {
		case p.Addr == "":
		case p.Relay != "":
			reach.Relayed++
		default:
			reach.Direct++
		}
	}
	return reach
}

// countConnections shows how many members are reached in which way.
func (m *Mesh) countConnections(reg *obs.Registry) {
	reg.GaugeFunc("p2p_peers_direct", "Admitted peers connected without a relay.",
		func() float64 { return float64(m.Reach().Direct) })
	reg.GaugeFunc("p2p_peers_relayed", "Admitted peers connected through a relay.",
		func() float64 { return float64(m.Reach().Relayed) })
	reg.GaugeFunc("p2p_relays_held", "Members that relay for this site.",
		func() float64 { return float64(len(m.relays.Reach().Relays)) })
}
