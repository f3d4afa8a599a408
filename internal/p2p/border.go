package p2p

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/gate"
	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// What others see of the links.
type (
	// Neighbour is a linked domain as far as there is a stream.
	Neighbour = gate.Neighbour
)

// What LinkWith fails with.
var (
	// ErrInviterSilent says that none of the inviting gateway's addresses answers.
	ErrInviterSilent = gate.ErrNotReached
	// ErrInviterClosed says that the inviting gateway let this site not even ask.
	ErrInviterClosed = gate.ErrTurnedAway
)

// newGates makes the links' side of the mesh, without a host.
func (m *Mesh) newGates(life context.Context) *gate.Gates {
	t, l := m.cfg.Timing, m.cfg.Limits
	return gate.New(gate.Config{
		Links: m.cfg.Links, Addrs: m.BorderAddrs, Through: relay.Through, Now: m.cfg.Now,
		Timing: gate.Timing{
			Dial: t.Dial, Hello: t.Hello, Write: t.Write, Read: t.Read,
			BackoffMin: t.BackoffMin, BackoffMax: t.BackoffMax,
		},
		QueueMessages: l.QueueMessages, QueueBytes: l.QueueBytes,
		Pace: m.guard.pace, OpenStream: m.guard.openStream,
		Guest: m.lobby.Has, Blame: m.lobby.Blame,
		Hold: func() (release func(), ok bool) { return m.wg.Done, m.enter() },
		Go:   m.wg.Go,
		Live: func(run func(context.Context)) context.CancelFunc {
			own, end := context.WithCancel(life)
			m.wg.Go(func() { defer end(); run(own) })
			return end
		},
		Counts: m.counts, Log: m.log,
		OnMessage: func(domain grid.SiteID, message protocol.Message) {
			if tell := m.handlers.OnBorder; tell != nil {
				tell(domain, message)
			}
		},
		OnSeen: func(domain grid.SiteID, name grid.DomainID, gateway grid.SiteID) {
			if tell := m.handlers.OnNeighbourSeen; tell != nil {
				tell(domain, name, gateway)
			}
		},
		OnGone: func(domain grid.SiteID) {
			if tell := m.handlers.OnNeighbourGone; tell != nil {
				tell(domain)
			}
		},
		OnLinks: func() {
			if tell := m.handlers.OnLinks; tell != nil {
				tell()
			}
		},
	})
}

// openGates lets linked domains in, and dials them.
func (m *Mesh) openGates(ctx context.Context) {
	m.gates.Start(m.host)
	m.host.SetStreamHandler(gate.StreamID, func(s network.Stream) { m.gates.Serve(ctx, s) })
	m.host.SetStreamHandler(gate.LinkStreamID, func(s network.Stream) { m.gates.ServeJoin(ctx, s) })
}

// SendBorder puts the message into the queue to a linked domain, which is named as DomainSite
// does, and returns immediately. Nothing is promised: a message is lost with the stream. It fails
// when the domain is not linked or not connected, and when too much waits for it.
func (m *Mesh) SendBorder(domain grid.SiteID, message protocol.Message) error {
	return m.gates.Send(domain, message)
}

// LinkWith links this domain with that of the token: it asks the inviting gateway. The error is a
// member.LinkRefusal where the reason is known, ErrInviterSilent or ErrInviterClosed.
func (m *Mesh) LinkWith(ctx context.Context, token member.Token) (member.Link, error) {
	if !m.enter() {
		return member.Link{}, errClosed
	}
	defer m.wg.Done()
	return m.gates.Join(ctx, token)
}

// ReviewLinks acts on what was decided about links: a link that has ended is closed immediately.
func (m *Mesh) ReviewLinks() {
	if !m.enter() {
		return
	}
	defer m.wg.Done()
	m.gates.Review()
}

// Deputies says which members may stand in for this site, which has the domain's key. Linked
// domains hear of a change immediately.
func (m *Mesh) Deputies(sites []grid.SiteID) {
	if !m.enter() {
		return
	}
	defer m.wg.Done()
	m.gates.Deputies(sites, m.addrsAt(sites))
	m.relays.Wake() // slots at them are wanted
}

// Neighbours lists the linked domains, ascending by name.
func (m *Mesh) Neighbours() []Neighbour { return m.gates.Neighbours() }

// Trades reports whether blocks of data are exchanged with the peer although it is no member: it
// is the gateway of a linked domain.
func (m *Mesh) Trades(p peer.ID) bool { return m.borders(p) && m.gates.Linked(p) }

// borders reports whether the peer may connect for the sake of a link: with this site, or with
// the gateway whose deputy this site is.
func (m *Mesh) borders(p peer.ID) bool {
	site := wire.SiteOf(p)
	standing := m.cfg.Members.Standing(site)
	return standing != member.BannedHere && standing != member.Banned &&
		!m.keptOut.has(p, time.Now()) && (m.gates.Knows(p) || m.cfg.Links.LetsPass(site))
}

// isGateway reports whether the site is the gateway of a linked domain, also where this site is a
// deputy and has only been told so.
func (m *Mesh) isGateway(site grid.SiteID) bool {
	_, ended, found := m.cfg.Links.Gateway(site)
	return found && !ended || m.cfg.Links.LetsPass(site)
}

// isStranger reports whether what a connection's peer has to say to members is not heard: it is a
// guest, or is here for the sake of a link alone.
func (m *Mesh) isStranger(c network.Conn) bool {
	return m.lobby.Has(c) || !m.Allowed(c.RemotePeer()) && m.borders(c.RemotePeer())
}

// serveJoin lets a stranger redeem an invitation; the gateway of a linked domain is none.
func (m *Mesh) serveJoin(ctx context.Context, stream network.Stream) {
	if !m.lobby.Has(stream.Conn()) && m.isStranger(stream.Conn()) {
		m.counts.Inc(wire.CountJoins, "neighbour")
		_ = stream.Reset()
		return
	}
	m.lobby.Serve(ctx, stream)
}
