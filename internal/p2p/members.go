package p2p

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// addrsOf lists where a connected peer can be dialled, the likeliest first:
// direct addresses, and then those through the relays that the peer named, for
// which places are kept.
func (m *Mesh) addrsOf(r *remote, conn network.Conn) []ma.Multiaddr {
	near := manet.IsIPLoopback(conn.RemoteMultiaddr())
	circuits := slices.DeleteFunc(r.through(), func(a ma.Multiaddr) bool {
		return !near && manet.IsIPLoopback(a)
	})
	direct := m.directAddrs(r.id, conn)
	return append(direct[:min(len(direct), maxRememberedAddr-len(circuits))], circuits...)
}

// directAddrs lists where a connected peer can be dialled without a relay: the
// address we dialled, then those on the host from which it speaks, then TCP
// before others.
func (m *Mesh) directAddrs(id peer.ID, conn network.Conn) []ma.Multiaddr {
	at, _ := manet.ToIP(conn.RemoteMultiaddr())
	if relay.IsCircuit(conn.RemoteMultiaddr()) {
		at = nil // that is the relay's address
	}
	rank := func(a ma.Multiaddr) int {
		ip, _ := manet.ToIP(a)
		switch {
		case conn.Stat().Direction == network.DirOutbound && a.Equal(conn.RemoteMultiaddr()):
			return 0
		case ip.Equal(at) && isTCP(a):
			return 1
		case ip.Equal(at):
			return 2
		case isTCP(a):
			return 3
		default:
			return 4
		}
	}
	near := at.IsLoopback()
	addrs := slices.DeleteFunc(slices.Clone(m.host.Peerstore().Addrs(id)), func(a ma.Multiaddr) bool {
		return relay.IsCircuit(a) || !near && manet.IsIPLoopback(a)
	})
	slices.SortFunc(addrs, func(a, b ma.Multiaddr) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return a.Compare(b)
	})
	return addrs
}

// addrsNamed limits the addresses of a member in a Hello: so many direct ones and
// so many through relays.
const addrsNamed = 2

// membersFor names members to a peer: first this site itself, where it is reached
// through relays, then as many others as fit, drawn at random, without those the
// peer could not dial.
func (m *Mesh) membersFor(to peer.ID, conn network.Conn) []string {
	near := manet.IsIPLoopback(conn.RemoteMultiaddr())
	others := m.all()
	//nolint:gosec // a fair choice, no secret
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	named := nameAddrs(m.host.ID(), m.relays.Addrs(), near)
	for _, o := range others {
		if _, present := o.admitted(); !present || o.id == to {
			continue
		}
		named = append(named, nameAddrs(o.id, m.book.addrs(o.id), near)...)
		if len(named) > protocol.MaxHelloPeers {
			return named[:protocol.MaxHelloPeers]
		}
	}
	return named
}

// tellAll names a member, or this site itself, to all others.
func (m *Mesh) tellAll(id peer.ID, addrs []ma.Multiaddr) {
	for _, o := range m.all() {
		if _, present := o.admitted(); !present || o.id == id {
			continue
		}
		conns := m.host.Network().ConnsToPeer(o.id)
		near := len(conns) > 0 && manet.IsIPLoopback(conns[0].RemoteMultiaddr())
		if named := nameAddrs(id, addrs, near); len(named) > 0 {
			o.tell(named)
		}
	}
}

// nameAddrs writes a member's first addresses for a Hello. Loopback addresses are
// of use only to peers on this machine.
func nameAddrs(id peer.ID, addrs []ma.Multiaddr, near bool) []string {
	var named []string
	var count [2]int // direct, through relays
	for _, a := range addrs {
		text := a.String() + "/p2p/" + id.String()
		kind := 0
		if relay.IsCircuit(a) {
			kind = 1
		}
		if count[kind] < addrsNamed && (near || !manet.IsIPLoopback(a)) &&
			len(text) <= maxAddrText && utf8.ValidString(text) {
			count[kind]++
			named = append(named, text)
		}
	}
	return named
}

// maxAddrText is the longest address that Hello may carry.
const maxAddrText = 256

// learn dials the members that a peer named, unless this site has enough. What
// is only heard of is tried a few times and then forgotten. A peer may lie, and
// name the addresses of others to have them dialled: what one peer, and what all
// together, can make this site do is bounded by the guard. Where the peer names
// itself it says through which relays it is reached.
func (m *Mesh) learn(from peer.ID, named []string) {
	if len(named) == 0 {
		return
	}
	var own []ma.Multiaddr
	present := len(m.Peers())
	if r := m.lookup(wire.SiteOf(from)); r != nil {
		if _, admitted := r.admitted(); !admitted {
			present++ // it is about to be
		}
	}
	for _, text := range named {
		info, err := peer.AddrInfoFromString(text)
		if err != nil || len(info.Addrs) == 0 || info.ID == m.host.ID() || !m.Allowed(info.ID) {
			continue
		}
		if info.ID == from {
			own = append(own, info.Addrs...)
		} else if present < m.cfg.Limits.Members {
			m.hearOf(from, *info)
		}
	}
	if r := m.lookup(wire.SiteOf(from)); r != nil && len(own) > 0 {
		r.relocate(own)
	}
}

// hearOf follows hearsay of one member and one address of it. Who is connected
// tells its addresses itself. One that is not reached is tried at a new address
// immediately, and through a relay in any case: the same address works again when
// the relay is back.
func (m *Mesh) hearOf(from peer.ID, info peer.AddrInfo) {
	if m.host.Network().Connectedness(info.ID) == network.Connected {
		return
	}
	addr, old := info.Addrs[0], m.host.Peerstore().Addrs(info.ID)
	r := m.lookup(wire.SiteOf(info.ID))
	again := ma.Contains(old, addr)
	if r != nil && again && !relay.IsCircuit(addr) {
		return
	}
	if !again && len(old) >= knownAddrs || !dialable(addr) || !m.guard.tip(from) ||
		r == nil && !m.guard.follow.Allow() {
		m.counts.Inc(wire.CountDropped, hearsay)
		return
	}
	m.host.Peerstore().AddAddrs(info.ID, []ma.Multiaddr{addr}, peerstore.TempAddrTTL)
	if r == nil {
		m.want(info.ID, func(r *remote) { r.hearsay = hearsayTries })
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(r.heard) > m.cfg.Timing.Spread { // nobody makes this site dial without end
		r.heard, r.hearsay = time.Now(), hearsayTries
		r.kick()
	}
}

// relocate takes over through which relays the peer says it is reached, and tells
// the others.
func (r *remote) relocate(circuits []ma.Multiaddr) {
	_, circuits = split(circuits, func(a ma.Multiaddr) bool { return !relay.IsCircuit(a) })
	circuits = circuits[:min(len(circuits), addrsNamed*relay.Wanted)]
	r.mu.Lock()
	same := slices.EqualFunc(circuits, r.circuits, ma.Multiaddr.Equal)
	r.circuits = circuits
	present := r.present
	r.mu.Unlock()
	conns := r.m.host.Network().ConnsToPeer(r.id)
	if same || !present || len(conns) == 0 {
		return
	}
	addrs := r.m.addrsOf(r, conns[0])
	r.m.book.put(r.id, addrs, r.m.cfg.Now())
	r.m.tellAll(r.id, addrs)
}

// through lists the peer's addresses through relays.
func (r *remote) through() []ma.Multiaddr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.circuits)
}

// hint keeps the addresses of a site that may have to be answered.
func (m *Mesh) hint(id peer.ID, texts []string) {
	var addrs []ma.Multiaddr
	for _, a := range parseAddrs(texts) {
		bare, last := peer.SplitAddr(a)
		if bare != nil && (last == "" || last == id) && dialable(bare) {
			addrs = append(addrs, bare)
		}
	}
	known := m.host.Peerstore().Addrs(id)
	addrs = slices.DeleteFunc(addrs, func(a ma.Multiaddr) bool {
		return slices.ContainsFunc(known, a.Equal)
	})
	if room := max(knownAddrs-len(known), 0); len(addrs) > room {
		m.counts.Add(wire.CountDropped, hearsay, uint64(len(addrs)-room))
		addrs = addrs[:room]
	}
	m.host.Peerstore().AddAddrs(id, addrs, peerstore.RecentlyConnectedAddrTTL)
}

// knockDial limits how long a host on the local network may take to accept or
// refuse.
const knockDial = 500 * time.Millisecond

// acquaint finds out on which TCP addresses the peer's own host accepts connections
// for the agent. Only these hint later, by refusing, that the agent is dead. An address
// counts if it is on the host from which the peer speaks and on a local network:
// behind a public address a router may refuse in the name of a peer that lives, and a
// host's firewall may do so from the beginning. It stays a hint: a forwarder of ports, or
// another machine that got the address, refuses in the same way.
func (r *remote) acquaint(ctx context.Context, conn network.Conn) {
	r.mu.Lock()
	clear(r.knocked)
	r.mu.Unlock()
	if relay.IsCircuit(conn.RemoteMultiaddr()) || len(r.through()) > 0 {
		return
	}
	ip, err := manet.ToIP(conn.RemoteMultiaddr())
	at, ok := netip.AddrFromSlice(ip)
	if err != nil || !ok || !isLocal(at.Unmap()) {
		return
	}
	for _, a := range r.m.directAddrs(r.id, conn) {
		target, ok := addrOf(a)
		if !ok || target.Addr() != at.Unmap() {
			continue
		}
		if knock(ctx, target) == nil {
			r.mu.Lock()
			r.knocked[target] = true
			r.mu.Unlock()
			return
		}
	}
}

// refuses reports whether the peer's own host now refuses connections where
// the agent listened before.
func (r *remote) refuses(ctx context.Context) bool {
	if len(r.through()) > 0 {
		return false // it is behind a router, as was learnt since
	}
	r.mu.Lock()
	var targets []netip.AddrPort
	for target := range r.knocked {
		targets = append(targets, target)
	}
	r.mu.Unlock()
	for _, target := range targets {
		if errors.Is(knock(ctx, target), syscall.ECONNREFUSED) {
			r.mu.Lock()
			clear(r.knocked)
			r.mu.Unlock()
			return true
		}
	}
	return false
}

// knock connects and hangs up.
func knock(ctx context.Context, target netip.AddrPort) error {
	dialer := net.Dialer{Timeout: knockDial}
	conn, err := dialer.DialContext(ctx, "tcp", target.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// addrOf is the IP address and port of a TCP multiaddr.
func addrOf(a ma.Multiaddr) (netip.AddrPort, bool) {
	if !isTCP(a) {
		return netip.AddrPort{}, false
	}
	addr, err := manet.ToNetAddr(a)
	if err != nil {
		return netip.AddrPort{}, false
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), true
}

func isLocal(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
}
