package p2p

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// at gives the peerstore addresses of a peer.
func (q *quiet) at(id peer.ID, texts ...string) {
	q.stub.store.AddAddrs(id, parseAddrs(texts), time.Hour)
}

// through is an address by way of a relay.
func through(relay peer.ID, at string) string { return at + "/p2p/" + relay.String() + circuit }

// The address that was dialled comes first, then those on the host from which the peer speaks, TCP
// before others. Addresses that lead through relays, or only here, are left out.
func TestTheOrderOfDirectAddresses(t *testing.T) {
	relay := somebody(t)
	const dialled, same, sameQUIC = "/ip6/::ffff:10.0.0.9/tcp/9000", "/ip4/10.0.0.9/tcp/8000",
		"/ip4/10.0.0.9/udp/1/quic-v1"
	const other, otherQUIC, here = "/ip4/10.0.0.1/tcp/1", "/ip4/10.0.0.0/udp/1/quic-v1",
		"/ip4/127.0.0.1/tcp/1"
	all := []string{otherQUIC, here, sameQUIC, other, same, dialled, through(relay, dialled)}
	afar := []string{other, same, dialled, otherQUIC, sameQUIC}
	for name, c := range map[string]struct {
		conn      string
		direction network.Direction
		want      []string
	}{
		"dialled": {
			dialled, network.DirOutbound,
			[]string{dialled, same, sameQUIC, other, otherQUIC},
		},
		"by QUIC": {
			sameQUIC, network.DirOutbound,
			[]string{sameQUIC, same, dialled, other, otherQUIC},
		},
		"it dialled": {
			sameQUIC, network.DirInbound,
			[]string{same, dialled, sameQUIC, other, otherQUIC},
		},
		"from afar":    {"/ip4/10.9.9.9/tcp/1", network.DirInbound, afar},
		"from here":    {"/ip4/127.0.0.1/tcp/7", network.DirInbound, append([]string{here}, afar...)},
		"by a relay":   {through(relay, sameQUIC), network.DirInbound, afar},
		"a relay here": {through(relay, here), network.DirInbound, afar},
	} {
		q := newQuiet(t, nil)
		id := q.stranger()
		q.at(id, all...)
		got := textsOf(q.directAddrs(id, q.connected(id, c.conn, c.direction)))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Eight addresses of a peer are kept, with places for those through relays; relays on this machine
// are of use to peers of it alone.
func TestTheAddressesOfAPeer(t *testing.T) {
	q := newQuiet(t, nil)
	r := q.knows(q.stranger())
	relay := q.stranger()
	for i := range 10 {
		q.at(r.id, fmt.Sprintf("/ip4/10.0.0.%d/tcp/1", i))
	}
	r.circuits = parseAddrs([]string{
		through(relay, "/ip4/10.1.1.1/tcp/1"), through(relay, "/ip4/127.0.0.1/tcp/1"),
	})
	far := q.connected(r.id, "/ip4/10.0.0.5/tcp/1", network.DirInbound)
	near := q.connected(r.id, "/ip4/127.0.0.1/tcp/1", network.DirInbound)
	for conn, circuits := range map[*stubConn][]ma.Multiaddr{far: r.circuits[:1], near: r.circuits} {
		got := q.addrsOf(r, conn)
		if len(got) != maxRememberedAddr ||
			!slices.EqualFunc(got[maxRememberedAddr-len(circuits):], circuits, ma.Multiaddr.Equal) {
			t.Errorf("from %s: %v, want %d with %d through relays at their end",
				conn.at, got, maxRememberedAddr, len(circuits))
		}
	}
	if len(r.circuits) != 2 {
		t.Error("what the peer said is lost")
	}
}

// Two direct addresses of a member are named, and two through relays, of at most 256 bytes and in
// valid text; those of this machine to peers on it alone.
func TestWhichAddressesAreNamed(t *testing.T) {
	relay, id := somebody(t), somebody(t)
	me := "/p2p/" + id.String()
	sized := func(n int) string { // whose text with the ID has n bytes
		const rest = len("/dns4//tcp/1")
		return "/dns4/" + strings.Repeat("x", n-rest-len(me)) + "/tcp/1"
	}
	direct := []string{"/ip4/10.0.0.1/tcp/1", "/ip4/10.0.0.2/tcp/1", "/ip4/10.0.0.3/tcp/1"}
	for name, c := range map[string]struct {
		addrs []string
		near  bool
		want  []string
	}{
		"many":     {direct, false, direct[:2]},
		"long":     {[]string{sized(257), sized(256)}, false, []string{sized(256)}},
		"no text":  {[]string{"/dns4/\xff/tcp/1", direct[0]}, false, direct[:1]},
		"from far": {[]string{"/ip4/127.0.0.1/tcp/1", direct[0]}, false, direct[:1]},
		"near":     {[]string{"/ip4/127.0.0.1/tcp/1"}, true, []string{"/ip4/127.0.0.1/tcp/1"}},
		"relays": {
			[]string{
				direct[0], through(relay, direct[0]), through(relay, direct[1]), through(relay, direct[2]),
			},
			false,
			[]string{direct[0], through(relay, direct[0]), through(relay, direct[1])},
		},
	} {
		var want []string
		for _, w := range c.want {
			want = append(want, w+me)
		}
		if got := nameAddrs(id, parseAddrs(c.addrs), c.near); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A peer is told of present members that it can dial, not of itself, and of so many as a Hello may
// name.
func TestWhichMembersAreNamed(t *testing.T) {
	q := newQuiet(t, nil)
	to, absent := q.present(q.stranger()), q.knows(q.stranger())
	some := q.present(q.stranger())
	for _, r := range []*remote{to, absent, some} {
		q.book.put(r.id, parseAddrs([]string{"/ip4/10.0.0.1/tcp/1", "/ip4/127.0.0.1/tcp/2"}), time.Now())
	}
	far := q.connected(to.id, "/ip4/10.0.0.9/tcp/1", network.DirInbound)
	near := q.connected(to.id, "/ip4/127.0.0.1/tcp/1", network.DirInbound)
	me := "/p2p/" + string(some.site)
	want := []string{"/ip4/10.0.0.1/tcp/1" + me}
	if got := q.membersFor(to.id, far); !slices.Equal(got, want) {
		t.Errorf("named from afar: %q, want %q", got, want)
	}
	want = append(want, "/ip4/127.0.0.1/tcp/2"+me)
	if got := q.membersFor(to.id, near); !slices.Equal(got, want) {
		t.Errorf("named from here: %q, want %q", got, want)
	}
	for i := range 33 {
		o := q.present(q.stranger())
		q.book.put(o.id, parseAddrs([]string{
			fmt.Sprintf("/ip4/10.0.1.%d/tcp/1", i), fmt.Sprintf("/ip4/10.0.2.%d/tcp/1", i),
		}), time.Now())
	}
	if got := q.membersFor(to.id, far); len(got) != protocol.MaxHelloPeers {
		t.Errorf("%d addresses are named, want %d", len(got), protocol.MaxHelloPeers)
	}
}

// All present members but the one itself are told where a member is, if they can dial it.
func TestWhoIsToldOfAMember(t *testing.T) {
	q := newQuiet(t, nil)
	of, far, near := q.present(q.stranger()), q.present(q.stranger()), q.present(q.stranger())
	lost, absent := q.present(q.stranger()), q.knows(q.stranger())
	q.connected(far.id, "/ip4/10.0.0.9/tcp/1", network.DirInbound)
	q.connected(near.id, "/ip4/127.0.0.1/tcp/1", network.DirInbound)
	q.tellAll(of.id, parseAddrs([]string{"/ip4/127.0.0.1/tcp/1"}))
	for r, want := range map[*remote]int{of: 0, far: 0, near: 1, lost: 0, absent: 0} {
		if len(r.pending) != want || marked(r.news) != (want > 0) {
			t.Errorf("%s is told %q, want %d addresses of this machine", r.site, r.pending, want)
		}
	}
	q.tellAll(of.id, parseAddrs([]string{"/ip4/10.0.0.1/tcp/1"}))
	for r, want := range map[*remote]int{of: 0, far: 1, near: 2, lost: 1, absent: 0} {
		if len(r.pending) != want || marked(r.news) != (want > 0) {
			t.Errorf("%s is told %q, want %d addresses", r.site, r.pending, want)
		}
	}
}

// What a Hello names is followed if it makes sense, and while this site has too few members; one
// that is about to be admitted counts.
func TestWhichNamesAreFollowed(t *testing.T) {
	const at = "/ip4/10.0.0.7/tcp/4607"
	banned := wire.SiteOf(somebody(t))
	for name, c := range map[string]struct {
		members int
		named   func(q *quiet, ghost peer.ID) string
		want    bool
	}{
		"a member": {
			2, func(_ *quiet, g peer.ID) string { return at + "/p2p/" + g.String() },
			true,
		},
		"enough": {
			1, func(_ *quiet, g peer.ID) string { return at + "/p2p/" + g.String() },
			false,
		},
		"rubbish":         {9, func(*quiet, peer.ID) string { return "rubbish" }, false},
		"without address": {9, func(_ *quiet, g peer.ID) string { return "/p2p/" + g.String() }, false},
		"this site itself": {
			9, func(q *quiet, _ peer.ID) string { return at + "/p2p/" + string(q.self) }, false,
		},
		"a banned one": {
			9, func(*quiet, peer.ID) string { return at + "/p2p/" + string(banned) },
			false,
		},
	} {
		for _, present := range []bool{false, true} {
			q := newQuiet(t, func(c2 *Config) { c2.Limits.Members = c.members })
			if _, err := q.cfg.Members.Ban(banned, "", ""); err != nil {
				t.Fatal(err)
			}
			from, ghost := q.knows(q.stranger()), q.stranger()
			if present {
				from.update(Facts{Run: protocol.Run{Number: 1}}, false)
			}
			before := len(q.begun)
			q.learn(from.id, []string{c.named(q, ghost)})
			if got := len(q.begun) > before; got != c.want ||
				len(q.stub.store.PeersWithAddrs()) > 0 != c.want {
				t.Errorf("%s (of one present: %t): followed %t", name, present, got)
			}
			if r := q.lookup(wire.SiteOf(ghost)); c.want && (r == nil || r.hearsay != hearsayTries) {
				t.Errorf("%s: want it tried %d times", name, hearsayTries)
			}
		}
	}
	q := newQuiet(t, func(c *Config) { c.Limits.Members = 1 }) // of one that nobody knows
	ghost := q.stranger()
	q.learn(q.stranger(), []string{at + "/p2p/" + ghost.String()})
	if q.lookup(wire.SiteOf(ghost)) == nil {
		t.Error("a member is not followed although there is none")
	}
}

// Hearsay is followed within bounds: a peer that is connected tells its addresses itself, known
// ones are not tried again, and nobody fills the memory or makes this site dial without end.
func TestHowHearsayIsBounded(t *testing.T) {
	const fresh, stale = "/ip4/10.0.0.7/tcp/4607", "/ip4/10.0.0.6/tcp/4606"
	for name, c := range map[string]struct {
		before  func(q *quiet, from peer.ID, r *remote)
		addr    func(*quiet) string // nil: fresh
		dials   bool
		kept    int // addresses of it
		dropped uint64
	}{
		"a new address": {dials: true, kept: 2},
		"a known one":   {addr: func(*quiet) string { return stale }, kept: 1},
		"a reserved one": {
			addr: func(*quiet) string { return "/ip4/10.0.0.7/tcp/22" }, kept: 1,
			dropped: 1,
		},
		"of a connected peer": {before: func(q *quiet, _ peer.ID, r *remote) {
			q.connected(r.id, stale, network.DirInbound)
		}, kept: 1},
		"almost too many": {before: func(q *quiet, _ peer.ID, r *remote) {
			for i := range knownAddrs - 2 {
				q.at(r.id, fmt.Sprintf("/ip4/10.1.0.1/tcp/%d", 2000+i))
			}
		}, dials: true, kept: knownAddrs},
		"too many": {before: func(q *quiet, _ peer.ID, r *remote) {
			for i := range knownAddrs - 1 {
				q.at(r.id, fmt.Sprintf("/ip4/10.1.0.1/tcp/%d", 2000+i))
			}
		}, kept: knownAddrs, dropped: 1},
		"of one that names without end": {before: func(q *quiet, from peer.ID, _ *remote) {
			for q.guard.tip(from) {
			}
		}, kept: 1, dropped: 1},
		"of a known peer, strangers named without end": {before: func(q *quiet, _ peer.ID, _ *remote) {
			for q.guard.follow.Allow() {
			}
		}, dials: true, kept: 2},
		"a moment after the last": {before: func(_ *quiet, _ peer.ID, r *remote) {
			r.heard = time.Now().Add(-time.Second)
		}, kept: 2},
		"later": {before: func(_ *quiet, _ peer.ID, r *remote) {
			r.heard = time.Now().Add(-time.Second - 1)
		}, dials: true, kept: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQuiet(t, func(c *Config) { c.Timing.Spread = time.Second })
				r, from := q.knows(q.stranger()), q.stranger()
				q.at(r.id, stale)
				if c.before != nil {
					c.before(q, from, r)
				}
				addr := fresh
				if c.addr != nil {
					addr = c.addr(q)
				}
				q.hearOf(from, peer.AddrInfo{ID: r.id, Addrs: parseAddrs([]string{addr})})
				if dials := marked(r.dialed); dials != c.dials || (r.hearsay == hearsayTries) != c.dials {
					t.Errorf("dialled %t with %d tries, want %t", dials, r.hearsay, c.dials)
				}
				if c.dials && !r.heard.Equal(time.Now()) {
					t.Error("it may be dialled again immediately")
				}
				if got := len(q.stub.store.Addrs(r.id)); got != c.kept {
					t.Errorf("%d addresses are kept, want %d", got, c.kept)
				}
				if got := q.Count(wire.CountDropped, hearsay); got != c.dropped {
					t.Errorf("%d addresses are counted as dropped, want %d", got, c.dropped)
				}
			})
		})
	}
}

// One that is not reached is tried through a relay again at an address that is known, also where
// there are as many as are kept; a stranger is followed as often as strangers are.
func TestHearsayOfRelaysAndStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, nil)
		r, from := q.knows(q.stranger()), q.stranger()
		relayed := through(q.stranger(), "/ip4/10.0.0.7/tcp/4607")
		q.at(r.id, relayed)
		for i := range knownAddrs - 1 {
			q.at(r.id, fmt.Sprintf("/ip4/10.1.0.1/tcp/%d", 2000+i))
		}
		q.hearOf(from, peer.AddrInfo{ID: r.id, Addrs: parseAddrs([]string{relayed})})
		if !marked(r.dialed) || r.hearsay != hearsayTries {
			t.Error("a member behind a relay that is back is not tried again")
		}
		for q.guard.follow.Allow() {
		}
		ghost := q.stranger()
		q.hearOf(from, peer.AddrInfo{ID: ghost, Addrs: addrAt(4601)})
		if q.lookup(wire.SiteOf(ghost)) != nil || q.Count(wire.CountDropped, hearsay) != 1 {
			t.Error("one more stranger than may be is followed, or nothing is counted")
		}
	})
}

// A peer says through which relays it is reached, four addresses at most; others are told when that
// changed, while it is present and connected.
func TestAPeerBehindRelays(t *testing.T) {
	q := newQuiet(t, nil)
	r, other := q.present(q.stranger()), q.present(q.stranger())
	relay := q.stranger()
	var named, circuits []string
	for i := range 6 {
		circuits = append(circuits, through(relay, fmt.Sprintf("/ip4/10.0.0.%d/tcp/4601", i)))
	}
	for _, c := range append([]string{"/ip4/10.0.0.9/tcp/4601"}, circuits...) {
		named = append(named, c+"/p2p/"+string(r.site))
	}
	q.learn(r.id, named)
	if got := textsOf(r.through()); !slices.Equal(got, circuits[:4]) {
		t.Errorf("reached through %q, want the first four, without the direct one", got)
	}
	if len(other.pending) > 0 || q.book.has(r.id) {
		t.Error("it is told of a peer that is not connected")
	}
	r.circuits = nil
	q.connected(r.id, through(relay, "/ip4/10.0.0.9/tcp/4601"), network.DirInbound)
	for range 2 {
		q.learn(r.id, named)
	}
	want := []string{circuits[0] + "/p2p/" + string(r.site), circuits[1] + "/p2p/" + string(r.site)}
	if !slices.Equal(other.pending, want) {
		t.Errorf("others are told %q, want once %q", other.pending, want)
	}
	if got := textsOf(q.book.addrs(r.id)); !slices.Equal(got, circuits[:4]) {
		t.Errorf("remembered at %q", got)
	}
	other.pending = nil
	r.gone(protocol.Run{Number: 1}, false)
	q.learn(r.id, named[2:3])
	if len(other.pending) > 0 || len(r.through()) != 1 {
		t.Error("others are told where a peer is that is gone")
	}
	q.learn(q.stranger(), named) // of one without an owner
}

// Of a submitter's addresses those are kept that lead to it and are not known, up to the bound.
func TestWhereASubmitterMayBeAnswered(t *testing.T) {
	q := newQuiet(t, nil)
	id, other := q.stranger(), q.stranger()
	q.hint(id, []string{
		"/ip4/10.0.0.1/tcp/4601", "/ip4/10.0.0.2/tcp/4601/p2p/" + id.String(),
		"/ip4/10.0.0.3/tcp/4601/p2p/" + other.String(), "/p2p/" + id.String(), "/ip4/10.0.0.4/tcp/22",
		"rubbish",
	})
	got := textsOf(q.stub.store.Addrs(id))
	slices.Sort(got)
	if want := []string{"/ip4/10.0.0.1/tcp/4601", "/ip4/10.0.0.2/tcp/4601"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	var many []string
	for i := range knownAddrs {
		many = append(many, fmt.Sprintf("/ip4/10.0.1.1/tcp/%d", 2000+i))
	}
	q.hint(id, append(many[:knownAddrs-2:knownAddrs-2], "/ip4/10.0.0.1/tcp/4601"))
	if got := len(q.stub.store.Addrs(id)); got != knownAddrs ||
		q.Count(wire.CountDropped, hearsay) != 0 {
		t.Errorf("%d addresses, want %d and none dropped", got, knownAddrs)
	}
	q.hint(id, many)
	if got := len(q.stub.store.Addrs(id)); got != knownAddrs ||
		q.Count(wire.CountDropped, hearsay) != 2 {
		t.Errorf("%d addresses and %d dropped, want %d and 2",
			got, q.Count(wire.CountDropped, hearsay), knownAddrs)
	}
}

// listening is the address of a port that is open until the test ends.
func listening(t *testing.T) (string, *net.TCPListener) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port), l
}

// Where the peer's own host accepted connections for the agent, a refusal hints that it is dead:
// once, and not of a peer that is behind a router.
func TestWhoRefusesConnections(t *testing.T) {
	q := newQuiet(t, nil)
	r := q.knows(q.stranger())
	addr, l := listening(t)
	q.at(r.id, addr, "/ip4/127.0.0.1/udp/4601/quic-v1", closedPort(t))
	stale := netip.MustParseAddrPort("127.0.0.1:1")
	for name, c := range map[string]struct {
		conn     string
		circuits []string
		want     int
	}{
		"on this machine":      {"/ip4/127.0.0.1/tcp/1", nil, 1},
		"from another address": {"/ip6/::1/tcp/1", nil, 0},
		"through a relay":      {through(r.id, "/ip4/127.0.0.1/tcp/1"), nil, 0},
		"behind a router":      {"/ip4/127.0.0.1/tcp/1", []string{through(r.id, addr)}, 0},
		"by a name":            {"/dns4/localhost/tcp/1", nil, 0},
	} {
		r.circuits = parseAddrs(c.circuits)
		conn := q.connected(r.id, c.conn, network.DirInbound)
		eventually(t, name+": the addresses that accept are known", func() bool {
			r.knocked[stale] = true
			r.acquaint(t.Context(), conn)
			return len(proofs(r)) == c.want && !proofs(r)[stale.String()]
		})
	}
	r.circuits = nil
	here := q.connected(r.id, "/ip4/127.0.0.1/tcp/1", network.DirInbound)
	eventually(t, "the open port is known", func() bool {
		r.acquaint(t.Context(), here)
		return proofs(r)[l.Addr().String()]
	})
	if r.refuses(t.Context()) || len(proofs(r)) != 1 {
		t.Error("a host that accepts connections refuses them")
	}
	_ = l.Close()
	r.circuits = parseAddrs([]string{through(r.id, addr)})
	if r.refuses(t.Context()) {
		t.Error("a router in front of a peer seems to be its host")
	}
	r.circuits = nil
	eventually(t, "it refuses", func() bool { return r.refuses(t.Context()) })
	if r.refuses(t.Context()) || len(proofs(r)) > 0 {
		t.Error("it refuses more than once")
	}
}

// An address of TCP on a local network may tell by refusing; others may not.
func TestWhichAddressesMayTell(t *testing.T) {
	for text, want := range map[string]string{
		"/ip4/10.0.0.1/tcp/46": "10.0.0.1:46",
		"/ip6/fe80::1/tcp/1":   "[fe80::1]:1", "/ip4/10.0.0.1/udp/46": "", "/dns4/a.example/tcp/46": "",
	} {
		got, ok := addrOf(parseAddrs([]string{text})[0])
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s is %s, %t; want %q", text, got, ok, want)
		}
	}
	for text, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.0.0.1": true, "192.168.1.1": true, "fd00::1": true,
		"169.254.1.1": true, "fe80::1": true, "8.8.8.8": false, "2001:db8::1": false,
	} {
		if got := isLocal(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is local: %t, want %t", text, got, want)
		}
	}
}

// Sites on the local network are hearsay, unless this site has enough members; eight addresses of
// one are taken.
func TestWhatTheLocalNetworkTells(t *testing.T) {
	for name, c := range map[string]struct {
		addrs   int
		members int
		want    int
	}{
		"one address": {1, 2, 1}, "many": {9, 2, 8}, "none": {0, 2, 0}, "enough members": {1, 1, 0},
	} {
		q := newQuiet(t, func(cfg *Config) { cfg.Limits.Members = c.members })
		q.present(q.stranger())
		id := q.stranger()
		var addrs []ma.Multiaddr
		for i := range c.addrs {
			addrs = append(addrs, addrAt(4600+i)...)
		}
		found{q.Mesh}.HandlePeerFound(peer.AddrInfo{ID: id, Addrs: addrs})
		if got := len(q.stub.store.Addrs(id)); got != c.want ||
			(q.lookup(wire.SiteOf(id)) != nil) != (c.want > 0) {
			t.Errorf("%s: %d addresses taken, want %d", name, got, c.want)
		}
	}
	q := newQuiet(t, nil)
	found{q.Mesh}.HandlePeerFound(peer.AddrInfo{ID: q.stub.id, Addrs: addrAt(4601)})
	if len(q.stub.store.Addrs(q.stub.id)) > 0 {
		t.Error("this site's own word is hearsay")
	}
	long := mdnsName(grid.DomainID(strings.Repeat("a", 63)))
	if label, _, _ := strings.Cut(long, "."); len(label) != 63 {
		t.Errorf("the label %q has %d bytes, want as many as there may be", label, len(label))
	}
}
