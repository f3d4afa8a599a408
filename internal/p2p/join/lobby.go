package join

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxWrong limits the guests of one host that may hold a place after a wrong
// secret; further ones from there are turned away until a place is free.
// The guests of one host never hold the last quarter of the places.
const maxWrong = 4

// Config sets up a Lobby. All fields but Linking are required.
type Config struct {
	Members *member.Registry              // who is invited, and the roster
	Judge   func(grid.SiteID) grid.Reason // why a site is no member, or ReasonNone
	Linking func() bool                   // an invitation to a link is open; nil = none ever
	Guests  int                           // strangers connected at a time
	Stay    time.Duration                 // a stranger has so long
	Counts  *wire.Counters
	Log     *slog.Logger

	// Hold keeps the mesh open until release is called; ok is false when it is closed.
	Hold func() (release func(), ok bool)
	// After calls a function later, unless the mesh is closed.
	After func(time.Duration, func())
	// Fill tells a newcomer whom this site lists and where it is.
	Fill func(newcomer grid.SiteID, answer *protocol.JoinAnswer)
	// Admitted is told of a newcomer's record before the newcomer is.
	Admitted func(protocol.MemberRecord)
	// Roster is the roster in messages; the last one has the digest.
	Roster func() []protocol.Roster
}

// Lobby holds strangers while an invitation is open. A guest may open the join stream, or that
// of an invitation to a link, and nothing else, and is disconnected after Config.Stay. One that
// knew no secret keeps its place until then, which bounds the guesses.
type Lobby struct {
	cfg Config

	mu     sync.Mutex
	guests map[string]*guest // by connection
}

type guest struct {
	conn  network.Conn
	host  netip.Prefix
	wrong bool
}

// New opens no stream: it is told of connections, and of the join stream by Serve.
func New(cfg Config) *Lobby { return &Lobby{cfg: cfg, guests: make(map[string]*guest)} }

// Open reports whether a stranger may come in at all.
func (l *Lobby) Open(p peer.ID) bool {
	return l.cfg.Judge(wire.SiteOf(p)) == grid.ReasonNotMember &&
		(l.cfg.Members.Inviting() || l.cfg.Linking != nil && l.cfg.Linking())
}

// Enter gives a stranger a place, if there is one.
func (l *Lobby) Enter(c network.Conn) bool {
	if c.Stat().Direction != network.DirInbound || !l.Open(c.RemotePeer()) {
		return false
	}
	release, ok := l.cfg.Hold()
	if !ok {
		return false
	}
	defer release()
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
	places := l.cfg.Guests
	if len(l.guests) >= places || same >= places-places/4 || wrong >= maxWrong {
		l.cfg.Counts.Inc(wire.CountJoins, "crowded")
		return false
	}
	l.guests[c.ID()] = &guest{conn: c, host: host}
	l.cfg.After(l.cfg.Stay, func() {
		_ = c.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.guests, c.ID())
	})
	return true
}

// Has reports whether the connection is that of a guest.
func (l *Lobby) Has(c network.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guests[c.ID()] != nil
}

// Houses reports whether the peer is a guest and still connected.
func (l *Lobby) Houses(p peer.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.guests {
		if g.conn.RemotePeer() == p && !g.conn.IsClosed() {
			return true
		}
	}
	return false
}

// Blame notes that a guest knew no secret.
func (l *Lobby) Blame(c network.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.guests[c.ID()]; g != nil {
		g.wrong = true
	}
}

// Left frees the place of a guest who behaved.
func (l *Lobby) Left(c network.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.guests[c.ID()]; g != nil && !g.wrong {
		delete(l.guests, c.ID())
	}
}

// hostOf returns the IPv4 address or the IPv6 /56 of a connection's other end.
func hostOf(addr ma.Multiaddr) netip.Prefix {
	ip, _ := manet.ToIP(addr) // none has no prefix either
	at, _ := netip.AddrFromSlice(ip)
	bits := 32
	if at = at.Unmap(); at.Is6() {
		bits = 56
	}
	prefix, _ := at.Prefix(bits)
	return prefix
}
