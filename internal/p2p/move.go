package p2p

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// leaveGrace is how long what was written to a stream has time to arrive after
// its writer moved to a better one.
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
	if !isCircuit(l.stream.Conn().RemoteMultiaddr()) || r.m.direct(r.id) == nil {
		return nil
	}
	moved := make(chan *link, 1)
	r.m.wg.Go(func() {
		l, err := r.openDirect(ctx)
		if err != nil {
			r.m.counts.inc(CountMoves, moveFailed)
			r.m.log.Debug("direct connection is not usable", "peer", r.site, "error", err)
			r.m.after(r.m.cfg.Timing.Hello, func() { signal(r.better) })
			moved <- nil
			return
		}
		r.m.counts.inc(CountMoves, moveOK)
		r.m.log.Info("peer is reached directly", "peer", r.site)
		r.m.after(r.m.cfg.Timing.Linger, func() { r.m.closeRelayed(r.id) })
		moved <- &l
	})
	return moved
}

// await is what an attempt to move came to; nil where there was none.
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
	if isCircuit(stream.Conn().RemoteMultiaddr()) {
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
		pause(ctx, leaveGrace, ended)
		_ = l.stream.Reset()
		<-ended
	})
}

// closeRelayed ends the relayed connections to a peer that is connected directly.
// What is still open on them opens anew.
func (m *Mesh) closeRelayed(id peer.ID) {
	if m.direct(id) == nil {
		return
	}
	for _, c := range m.host.Network().ConnsToPeer(id) {
		if isCircuit(c.RemoteMultiaddr()) {
			_ = c.Close()
		}
	}
}

// leadsTo says where the best connection to a peer leads, and which member
// relays it.
func (m *Mesh) leadsTo(id peer.ID) (addr string, relay grid.SiteID) {
	conn := m.direct(id)
	if conn == nil {
		conns := m.host.Network().ConnsToPeer(id)
		if len(conns) == 0 {
			return "", ""
		}
		conn = conns[0]
		relay = relayOf(conn.RemoteMultiaddr())
	}
	return conn.RemoteMultiaddr().String(), relay
}

// relayOf is the member through which an address leads.
func relayOf(circuit ma.Multiaddr) grid.SiteID {
	before, _ := ma.SplitFunc(circuit, func(c ma.Component) bool { return c.Protocol().Code == ma.P_CIRCUIT })
	text, err := before.ValueForProtocol(ma.P_P2P)
	if err != nil {
		return ""
	}
	return grid.SiteID(text)
}

// Reach is how this site and the others reach each other now.
type Reach struct {
	Reachability Reachability  // whether others can dial this site; never ReachabilityAuto
	Serving      bool          // this site relays for members
	Relays       []grid.SiteID // members through which this site is reached, ascending
	Direct       int           // admitted peers that are connected directly
	Relayed      int           // admitted peers that are connected through a relay
}

// Reach tells how this site and the others reach each other now.
func (m *Mesh) Reach() Reach {
	reach := m.relays.reachNow()
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

// reachNow is the part of Reach that the relays know.
func (r *relays) reachNow() Reach {
	r.mu.Lock()
	defer r.mu.Unlock()
	reach := Reach{Reachability: reachabilityOf(r.reach), Serving: r.service != nil}
	if forced := r.m.cfg.NAT.Reachability; forced != ReachabilityAuto {
		reach.Reachability = forced
	}
	for id := range r.slots {
		reach.Relays = append(reach.Relays, siteOf(id))
	}
	slices.Sort(reach.Relays)
	return reach
}

// countConnections shows how many members are reached in which way.
func (m *Mesh) countConnections(reg *obs.Registry) {
	reg.GaugeFunc("p2p_peers_direct", "Admitted peers connected without a relay.",
		func() float64 { return float64(m.Reach().Direct) })
	reg.GaugeFunc("p2p_peers_relayed", "Admitted peers connected through a relay.",
		func() float64 { return float64(m.Reach().Relayed) })
	reg.GaugeFunc("p2p_relays_held", "Members that relay for this site.",
		func() float64 { return float64(len(m.relays.reachNow().Relays)) })
}
