package p2p

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	coreprotocol "github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/gate"
	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// estate is a domain whose gateway opens no port. Two of its members relay: the door is its
// deputy, and the other one is none.
type estate struct {
	gateway, door, other *capital
}

// newEstate starts a domain. Its members know each other from lists.
func newEstate(t *testing.T, name grid.DomainID) estate {
	t.Helper()
	var seats []*seat
	var ids []grid.SiteID
	for _, who := range []string{"gateway", "door", "other"} {
		s := newSeat(t, who)
		s.cfg.Domain = name
		seats, ids = append(seats, s), append(ids, s.id.Site())
	}
	for _, s := range seats {
		s.cfg.Allow = ids
	}
	_, links := seats[0].keyed(t) // before its site starts
	key := links.Key()
	relays := func(cfg *Config) { cfg.NAT.Relay = relay.Serve }
	e := estate{door: seats[1].second(t, key, relays), other: seats[2].second(t, key, relays)}
	e.gateway = seats[0].found(t, func(cfg *Config) {
		hidden(cfg)
		cfg.Bootstrap = append(e.door.Addrs(), e.other.Addrs()...)
	})
	e.gateway.mu.Lock()
	e.gateway.changed = func() { e.gateway.hand(t, e.door) }
	e.gateway.mu.Unlock()
	e.gateway.Deputies([]grid.SiteID{e.door.Self()})
	eventually(t, "the gateway holds slots at both", func() bool {
		return len(e.gateway.Reach().Relays) == 2 && len(e.gateway.BorderAddrs()) > 0
	})
	return e
}

// invites makes a token which names what linked domains may hear of.
func (e estate) invites(t *testing.T) member.Token {
	t.Helper()
	token := e.gateway.token(t, "")
	token.Addrs = nil
	for _, a := range e.gateway.BorderAddrs() {
		token.Addrs = append(token.Addrs, strings.TrimSuffix(a, "/p2p/"+string(e.gateway.Self())))
	}
	return token
}

// Two domains whose gateways cannot be dialled are linked through a deputy of one that relays, and
// find each other again through it when the connection is lost.
func TestGatewaysBehindRoutersMeetThroughADoor(t *testing.T) {
	south, north := newEstate(t, "south"), capitalOf(t, "north", hidden)
	token := south.invites(t)
	if _, err := north.LinkWith(t.Context(), token); !errors.Is(err, ErrInviterClosed) &&
		!errors.Is(err, ErrInviterSilent) {
		t.Errorf("a door that knows of no invitation lets a stranger pass: %v", err)
	}
	south.gateway.hand(t, south.door)
	if _, err := north.LinkWith(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	met(t, north, south.gateway)
	if south.door.lobby.Houses(north.Host().ID()) {
		t.Error("the linked domain passes as a guest, and would be parted from as one")
	}
	for _, c := range []struct{ from, to *capital }{
		{north, south.gateway}, {south.gateway, north},
	} {
		if err := c.from.SendBorder(c.to.site(t), fence()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a message crosses", func() bool { return len(c.to.said()) == 1 })
	}
	if n := north.Neighbours(); !strings.Contains(n[0].Addr, string(south.door.Self())) {
		t.Errorf("connected by way of %q, want the door %s", n[0].Addr, south.door.Self())
	}
	for _, id := range []peer.ID{south.gateway.Host().ID(), south.door.Host().ID()} {
		if err := north.Host().Network().ClosePeer(id); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both have lost each other", func() bool {
		north.mu.Lock()
		defer north.mu.Unlock()
		return north.gone > 0
	})
	met(t, north, south.gateway)
}

// A linked domain hears of no member that relays but of deputies, nor does the reader of a token.
func TestWhoRelaysIsNotSaidAcrossABorder(t *testing.T) {
	south, north := newEstate(t, "south"), capitalOf(t, "north", nil)
	relays := func(where string, addrs []string) {
		t.Helper()
		for _, a := range addrs {
			if strings.Contains(a, string(south.other.Self())) {
				t.Errorf("%s names a member that is no deputy: %s", where, a)
			}
		}
	}
	relays("a token", south.invites(t).Addrs)
	if _, err := south.gateway.LinkWith(t.Context(), north.token(t, "")); err != nil {
		t.Fatal(err)
	}
	met(t, north, south.gateway)
	var named []member.Gateway
	eventually(t, "the door is named", func() bool {
		link, _ := north.links.Get(south.gateway.links.Key())
		named = link.Side.Gateways
		return len(named) == 2 && len(named[0].Addrs) > 0
	})
	for _, g := range named {
		relays("the card", g.Addrs)
	}
	var identified []string // what libp2p itself says to each peer
	for _, a := range north.Host().Peerstore().Addrs(south.gateway.Host().ID()) {
		identified = append(identified, a.String())
	}
	relays("the host", identified)
	own := south.gateway.Addrs()
	if !slices.ContainsFunc(own, func(a string) bool {
		return strings.Contains(a, string(south.other.Self()))
	}) {
		t.Errorf("members are told %v alone", own)
	}
}

// Linked domains hear of it when this site's addresses through doors change, while a link is open.
func TestAddressesThatChangeCrossABorder(t *testing.T) {
	south, north := newEstate(t, "south"), capitalOf(t, "north", nil)
	if _, err := south.gateway.LinkWith(t.Context(), north.token(t, "")); err != nil {
		t.Fatal(err)
	}
	met(t, north, south.gateway)
	knows := func() bool {
		link, _ := north.links.Get(south.gateway.links.Key())
		return slices.ContainsFunc(link.Side.Gateways[0].Addrs, func(a string) bool {
			return strings.Contains(a, string(south.door.Self()))
		})
	}
	eventually(t, "the address through the door is known", knows)
	if err := south.door.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is known no more", func() bool { return !knows() })
}

// Of a deputy that is itself reached through members, only the way through other deputies is said.
func TestWaysToDeputies(t *testing.T) {
	m := capitalOf(t, "south", nil)
	deputy, door, other := identity(t).Site(), identity(t).Site(), identity(t).Site()
	id, err := wire.PeerOf(deputy)
	if err != nil {
		t.Fatal(err)
	}
	ways := []string{"/ip4/127.0.0.1/tcp/1"}
	for _, through := range []grid.SiteID{door, other} {
		ways = append(ways, "/ip4/127.0.0.1/tcp/2/p2p/"+string(through)+circuit)
	}
	for _, text := range ways {
		addr, err := ma.NewMultiaddr(text)
		if err != nil {
			t.Fatal(err)
		}
		m.Host().Peerstore().AddAddr(id, addr, time.Hour)
	}
	got := m.addrsAt([]grid.SiteID{deputy, door})(deputy)
	want := []string{ways[0] + "/p2p/" + string(deputy), ways[1] + "/p2p/" + string(deputy)}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("said is %q, want %q", got, want)
	}
}

// A door relays for linked domains, and for strangers while somebody is invited, to those alone
// that speak for its own domain; and it says nothing itself to those that pass.
func TestADoorLeadsToTheGatewayAlone(t *testing.T) {
	south, north := newEstate(t, "south"), capitalOf(t, "north", hidden)
	stranger := identity(t)
	token := south.invites(t)
	south.gateway.hand(t, south.door)
	id := func(c *capital) peer.ID { return c.Host().ID() }
	unknown, err := wire.PeerOf(stranger.Site())
	if err != nil {
		t.Fatal(err)
	}
	if south.door.crosses(unknown, id(south.gateway)) {
		t.Error("a stranger who is no guest of the door passes")
	}
	if _, err = north.LinkWith(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	met(t, north, south.gateway)
	for _, c := range []struct {
		what     string
		door     *capital
		from, to peer.ID
		want     bool
	}{
		{"a linked domain to the gateway", south.door, id(north), id(south.gateway), true},
		{"a linked domain to a member", south.door, id(north), id(south.other), false},
		{"a stranger to the gateway", south.door, unknown, id(south.gateway), false},
		{"by a member that is no deputy", south.other, id(north), id(south.gateway), false},
		{"by the gateway to a member", south.gateway, id(north), id(south.other), false},
	} {
		if got := c.door.crosses(c.from, c.to); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
	for _, protocolID := range []string{protocol.StreamID, gate.StreamID} {
		s, failed := north.Host().NewStream(
			t.Context(), id(south.door), coreprotocol.ID(protocolID),
		)
		if failed != nil {
			continue
		}
		_ = s.SetDeadline(time.Now().Add(patience))
		if _, failed = s.Read(make([]byte, 1)); failed == nil || isTimeout(failed) {
			t.Errorf("%s at the door: %v", protocolID, failed)
		}
	}
	if !south.door.isGateway(north.Self()) {
		t.Error("where anyone is accepted the other gateway would be a member of the door's")
	}
	if err = south.gateway.links.EndedByThem(north.links.Key()); err != nil {
		t.Fatal(err)
	}
	south.gateway.hand(t, south.door)
	if south.door.crosses(id(north), id(south.gateway)) {
		t.Error("a domain that is linked no more passes")
	}
}
