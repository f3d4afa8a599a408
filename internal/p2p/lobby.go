package p2p

import (
	"net/netip"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// maxWrong is how many guests of one host may hold a place after a secret that
// nobody knows; further ones from there are turned away until a place is free.
// The guests of one host never hold the last quarter of the places.
const maxWrong = 4

// lobby is where strangers wait while an invitation is open. A guest may open
// the join stream and nothing else, and is shown out after Timing.Guest. One who
// knew no secret keeps his place till then, which bounds the guesses.
type lobby struct {
	m *Mesh

	mu     sync.Mutex
	guests map[string]*guest // by connection
}

type guest struct {
	host  netip.Prefix
	wrong bool
}

func newLobby(m *Mesh) *lobby { return &lobby{m: m, guests: make(map[string]*guest)} }

// open reports whether a stranger may come in at all.
func (l *lobby) open(p peer.ID) bool {
	return l.m.judgeSite(siteOf(p)) == grid.ReasonNotMember && l.m.cfg.Members.Inviting()
}

// enter gives a stranger a place, if there is one.
func (l *lobby) enter(c network.Conn) bool {
	if c.Stat().Direction != network.DirInbound || !l.open(c.RemotePeer()) || !l.m.enter() {
		return false
	}
	defer l.m.wg.Done()
	host := hostOf(c.RemoteMultiaddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong, same := 0, 0
	for _, g := range l.guests {
		if g.host == host {
			same++
			if g.wrong {
				wrong++
			}
		}
	}
	places := l.m.cfg.Limits.Guests
	if len(l.guests) >= places || same >= places-places/4 || wrong >= maxWrong {
		l.m.counts.inc(CountJoins, "crowded")
		return false
	}
	l.guests[c.ID()] = &guest{host: host}
	l.m.after(l.m.cfg.Timing.Guest, func() {
		_ = c.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.guests, c.ID())
	})
	return true
}

// has reports whether the connection is that of a guest.
func (l *lobby) has(c network.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guests[c.ID()] != nil
}

// blame notes that a guest knew no secret.
func (l *lobby) blame(c network.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.guests[c.ID()]; g != nil {
		g.wrong = true
	}
}

// left frees the place of a guest who behaved.
func (l *lobby) left(c network.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.guests[c.ID()]; g != nil && !g.wrong {
		delete(l.guests, c.ID())
	}
}

// hostOf is the IPv4 address or the IPv6 /56 that somebody speaks from.
func hostOf(addr ma.Multiaddr) netip.Prefix {
	ip, err := manet.ToIP(addr)
	at, ok := netip.AddrFromSlice(ip)
	if err != nil || !ok {
		return netip.Prefix{}
	}
	bits := 32
	if at = at.Unmap(); at.Is6() {
		bits = 56
	}
	prefix, err := at.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// strangers keeps those who are no members out of gossip, guests among them.
type strangers struct{ m *Mesh }

// Add does nothing: who is a stranger is decided elsewhere.
func (strangers) Add(peer.ID) bool { return false }

// Contains reports whether the peer is no member. Messages have no author.
func (s strangers) Contains(p peer.ID) bool { return p != "" && !s.m.Allowed(p) }
