package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// gater turns strangers away. It asks when the connection is complete rather
// than when it is merely secured: only then can the stranger be told why (the
// connection is closed with network.ConnGated). Nothing of what a stranger
// sends is handled before.
type gater struct{ m *Mesh }

// InterceptPeerDial keeps this site from dialling strangers.
func (g gater) InterceptPeerDial(p peer.ID) bool { return g.m.Allowed(p) || g.m.borders(p) }

// InterceptAddrDial lets every address pass.
func (g gater) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }

// InterceptAccept accepts connections: the peer names itself later. Only from where a peer was
// that this site parted from, few are looked at; the others are slowed down, for to accept one and
// hang up costs something, too. This is called for one connection at a time.
func (g gater) InterceptAccept(at network.ConnMultiaddrs) bool {
	ok := g.m.keptOut.accepts(at, time.Now())
	if !ok {
		time.Sleep(knockPause)
	}
	return ok
}

// InterceptSecured turns strangers away over QUIC, where the code can be sent
// already.
func (g gater) InterceptSecured(dir network.Direction, p peer.ID, at network.ConnMultiaddrs) bool {
	if dir == network.DirInbound && !g.m.keptOut.comes(p, at, time.Now()) && !g.m.guard.conn(p) {
		return false
	}
	if isTCP(at.RemoteMultiaddr()) || g.m.lobby.Open(p) {
		return true
	}
	return g.admit(p)
}

// InterceptUpgraded turns strangers away over TCP, but for a few who may redeem
// an invitation.
func (g gater) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	id := c.RemotePeer()
	if g.m.keptOut.has(id, time.Now()) {
		return g.admit(id), 0 // not even as a guest
	}
	return g.m.borders(id) || g.m.lobby.Enter(c) || g.admit(id), 0
}

func (g gater) admit(p peer.ID) bool {
	reason := g.m.judgeSite(wire.SiteOf(p))
	if reason == grid.ReasonNone || g.m.borders(p) {
		return true
	}
	g.m.refused(&refusedError{Site: wire.SiteOf(p), Reason: reason})
	return false
}

func isTCP(addr ma.Multiaddr) bool {
	if addr == nil {
		return false
	}
	_, err := addr.ValueForProtocol(ma.P_TCP)
	return err == nil
}
