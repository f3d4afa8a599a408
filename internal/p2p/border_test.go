package p2p

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	coreprotocol "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// capital is the gateway of a domain and what it told of linked ones.
type capital struct {
	node
	links *member.Links

	mu      sync.Mutex
	heard   []heard
	present map[grid.SiteID]grid.DomainID
	gone    int
	changes int
	changed func() // called when links change by what another domain says; nil: nothing
}

// capitalOf starts the one site of a domain, which holds its key.
func capitalOf(t *testing.T, name grid.DomainID, change func(*Config)) *capital {
	t.Helper()
	s := newSeat(t, string(name))
	s.cfg.Domain = name
	return s.found(t, change)
}

func (s *seat) found(t *testing.T, change func(*Config)) *capital {
	t.Helper()
	reg, links := s.keyed(t)
	return s.capital(t, reg, links, change)
}

// keyed opens what the seat's directory has, and makes the key of its domain if there is none.
func (s *seat) keyed(t *testing.T) (*member.Registry, *member.Links) {
	t.Helper()
	reg, err := member.Open(member.Config{
		Dir: s.dir, Domain: s.cfg.Domain, Self: s.id.Site(), Name: s.cfg.Name,
	})
	if err != nil {
		t.Fatal(err)
	}
	links, err := member.OpenLinks(reg)
	if err == nil {
		err = links.NeedKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	return reg, links
}

// capital starts a site that speaks for its domain.
func (s *seat) capital(
	t *testing.T, reg *member.Registry, links *member.Links, change func(*Config),
) *capital {
	t.Helper()
	c := &capital{links: links, present: make(map[grid.SiteID]grid.DomainID)}
	cfg := s.cfg
	cfg.Members, cfg.Links = reg, links
	if change != nil {
		change(&cfg)
	}
	rec := &recorder{}
	handlers := rec.handlers()
	handlers.OnBorder = func(domain grid.SiteID, m protocol.Message) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard = append(c.heard, heard{domain, m})
	}
	handlers.OnNeighbourSeen = func(domain grid.SiteID, name grid.DomainID, _ grid.SiteID) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.present[domain] != "" {
			t.Errorf("%s is seen twice", name)
		}
		c.present[domain] = name
	}
	handlers.OnNeighbourGone = func(domain grid.SiteID) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.present[domain] == "" {
			t.Errorf("%s is gone and was never seen", domain)
		}
		delete(c.present, domain)
		c.gone++
	}
	handlers.OnLinks = func() {
		c.mu.Lock()
		c.changes++
		changed := c.changed
		c.mu.Unlock()
		if changed != nil {
			changed()
		}
	}
	m, err := New(t.Context(), cfg, handlers, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	c.node = node{m, rec}
	return c
}

// site is the domain's name where a site's is asked for.
func (c *capital) site(t *testing.T) grid.SiteID {
	t.Helper()
	site, err := DomainSite(c.links.Key())
	if err != nil {
		t.Fatal(err)
	}
	return site
}

func (c *capital) sees(t *testing.T, other *capital) bool {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.present[other.site(t)] != ""
}

func (c *capital) said() []heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]heard(nil), c.heard...)
}

// token invites a domain of that name, or any.
func (c *capital) token(t *testing.T, name grid.DomainID) member.Token {
	t.Helper()
	secret, made, err := c.links.Invite(name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, a := range c.Addrs() {
		addrs = append(addrs, strings.TrimSuffix(a, "/p2p/"+string(c.Self())))
	}
	return member.Token{
		Link: true, Domain: c.cfg.Domain, Key: c.links.Key(), Inviter: c.Self(), Addrs: addrs,
		Secret: secret, Expires: made.Expires,
	}
}

// linked starts two domains that are linked and connected.
func linked(t *testing.T) (north, south *capital) {
	t.Helper()
	north, south = capitalOf(t, "north", nil), capitalOf(t, "south", nil)
	if _, err := south.LinkWith(t.Context(), north.token(t, "")); err != nil {
		t.Fatal(err)
	}
	met(t, north, south)
	return north, south
}

func met(t *testing.T, north, south *capital) {
	t.Helper()
	eventually(t, "both domains see each other", func() bool {
		return north.sees(t, south) && south.sees(t, north)
	})
}

// fence is a message that a gateway may say to another.
func fence() protocol.Message {
	return protocol.BorderFence{Below: []grid.AttemptID{
		{Task: grid.TaskID{Job: jobID(1)}, Token: 2},
	}}
}

// What is said to members is not heard from a neighbour.
func TestWhatIsForMembersCrossesNoBorder(t *testing.T) {
	north, south := linked(t)
	for _, m := range []protocol.Message{protocol.Cancel{Job: jobID(1)}, fence()} {
		if err := north.SendBorder(south.site(t), m); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the other message crosses", func() bool { return len(south.said()) == 1 })
	if got := south.Count(wire.CountInvalid, wire.CauseFormat); got != 1 {
		t.Errorf("%d are counted as invalid, want 1", got)
	}
}

// Two domains that are linked by a token carry messages both ways, and neither gateway is a
// member of the other domain.
func TestTwoDomainsAreLinked(t *testing.T) {
	north, south := linked(t)
	for _, c := range []struct{ from, to *capital }{{north, south}, {south, north}} {
		if err := c.from.SendBorder(c.to.site(t), fence()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the message crosses", func() bool { return len(c.to.said()) == 1 })
		if got := c.to.said()[0]; got.from != c.from.site(t) {
			t.Errorf("it is said to come from %s, want %s", got.from, c.from.site(t))
		}
	}
	a, b := north.links.List(), south.links.List()
	if len(a) != 1 || len(b) != 1 || string(a[0].Record.Text) != string(b[0].Record.Text) ||
		a[0].Name != "south" || b[0].Name != "north" {
		t.Fatalf("records %+v and %+v", a, b)
	}
	for _, c := range []struct{ at, other *capital }{{north, south}, {south, north}} {
		if c.at.Admits(c.other.Self()) || len(c.at.Peers()) != 0 || c.at.peers() != 0 {
			t.Error("the other gateway is a member")
		}
		if !c.at.Trades(c.other.Host().ID()) {
			t.Error("no data is exchanged with the other gateway")
		}
		if err := c.at.Send(c.other.Self(), protocol.Cancel{Job: jobID(1)}); err == nil {
			t.Error("a message for members is sent to the other gateway")
		}
		n := c.at.Neighbours()
		if len(n) != 1 || !n[0].Connected || n[0].Gateway != c.other.Self() {
			t.Errorf("neighbours %+v", n)
		}
	}
}

// Both sides dial when a link is made. What either says as soon as it sees the other is not lost
// with a stream that is given up for the other side's.
func TestWhatIsSaidWhenBothSidesDialArrives(t *testing.T) {
	for range 10 {
		north, south := capitalOf(t, "north", nil), capitalOf(t, "south", nil)
		if _, err := south.LinkWith(t.Context(), north.token(t, "")); err != nil {
			t.Fatal(err)
		}
		said := make(map[*capital]bool)
		eventually(t, "both see each other", func() bool {
			for from, to := range map[*capital]*capital{north: south, south: north} {
				if said[from] || !from.sees(t, to) {
					continue
				}
				if err := from.SendBorder(to.site(t), fence()); err != nil {
					t.Error(err)
				}
				said[from] = true
			}
			return len(said) == 2
		})
		eventually(t, "what both say arrives", func() bool {
			return len(north.said()) == 1 && len(south.said()) == 1
		})
	}
}

// What the gateway of a linked domain opens besides is refused, and the border stays open.
func TestAGatewayIsNoMember(t *testing.T) {
	north, south := linked(t)
	for _, id := range []string{
		protocol.StreamID, protocol.LogStreamID, protocol.JoinStreamID, protocol.DeathStreamID,
	} {
		ctx := network.WithNoDial(t.Context(), "connected")
		s, err := south.Host().NewStream(ctx, north.Host().ID(), coreprotocol.ID(id))
		if err != nil {
			continue // refused already
		}
		_ = s.SetDeadline(time.Now().Add(patience))
		_ = writeHello(s, patience, south.hello(grid.ReasonNone, nil))
		if _, err := s.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s is answered", id)
		}
	}
	for _, m := range []protocol.Message{
		south.hello(grid.ReasonNone, nil),
		protocol.Roster{Records: south.cfg.Members.Roster().Records()},
	} {
		if err := south.SendBorder(north.site(t), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := south.SendBorder(north.site(t), fence()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is for the border comes", func() bool { return len(north.said()) == 1 })
	if got := north.Count(wire.CountInvalid, wire.CauseFormat); got != 2 {
		t.Errorf("%d messages about members are counted as invalid, want 2", got)
	}
	if north.cfg.Members.Standing(south.Self()) != member.Unknown || north.gossip.Reaches(
		south.Host().ID()) || len(north.Peers()) != 0 {
		t.Error("the gateway counts among the members")
	}
	if !north.sees(t, south) {
		t.Error("the border is closed")
	}
}

// An invitation is good once, and each other use is refused with the reason.
func TestLinkTokensThatAreNoGood(t *testing.T) {
	north, south := capitalOf(t, "north", nil), capitalOf(t, "south", nil)
	east := capitalOf(t, "east", nil)
	used := north.token(t, "")
	if _, err := south.LinkWith(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	forged := north.token(t, "")
	forged.Secret = append([]byte(nil), forged.Secret...)
	forged.Secret[0] ^= 1
	otherKey := north.token(t, "")
	otherKey.Key = east.links.Key()
	withdrawn := north.token(t, "")
	open := north.links.Invites()
	if err := north.links.Withdraw(open[len(open)-1].ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		by    *capital
		token member.Token
		want  error
	}{
		{"used", east, used, member.LinkUsed},
		{"forged", east, forged, member.LinkUnknown},
		{"with another key", capitalOf(t, "west", nil), otherKey, member.LinkForged},
		{"withdrawn", east, withdrawn, member.LinkWithdrawn},
		{"for another name", east, north.token(t, "west"), member.LinkOther},
		{"linked already", south, north.token(t, ""), member.LinkAlready},
		{"of the same domain", north, north.token(t, ""), member.LinkSame},
	} {
		if _, err := c.by.LinkWith(t.Context(), c.token); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if n := len(east.links.List()) + len(north.links.List()); n != 1 {
		t.Errorf("%d links, want 1", n)
	}
	if _, err := east.LinkWith(t.Context(), north.token(t, "east")); err != nil {
		t.Errorf("a good token afterwards: %v", err)
	}
}

// A link that one side ends is ended at the other one, which hears why.
func TestALinkIsEnded(t *testing.T) {
	north, south := linked(t)
	if _, err := north.links.Unlink("south"); err != nil {
		t.Fatal(err)
	}
	north.ReviewLinks()
	eventually(t, "the other side forgets", func() bool { return len(south.links.List()) == 0 })
	eventually(t, "both have lost sight", func() bool {
		return !north.sees(t, south) && !south.sees(t, north)
	})
	if e := south.links.Ended(); len(e) != 1 || !e[0].ByThem {
		t.Errorf("ended: %+v", e)
	}
	if err := south.SendBorder(north.site(t), fence()); err == nil {
		t.Error("a message is accepted for a domain that is not linked")
	}
	if north.Trades(south.Host().ID()) {
		t.Error("data is still exchanged")
	}
	if _, err := south.LinkWith(t.Context(), north.token(t, "")); err != nil {
		t.Fatal(err)
	}
	met(t, north, south)
}

// A side that was away when the link was ended finds itself refused with the reason.
func TestALinkIsEndedWhileTheOtherSideIsAway(t *testing.T) {
	north := capitalOf(t, "north", nil)
	s := newSeat(t, "south")
	s.cfg.Domain = "south"
	south := s.found(t, nil)
	if _, err := south.LinkWith(t.Context(), north.token(t, "")); err != nil {
		t.Fatal(err)
	}
	met(t, north, south)
	if err := south.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is gone", func() bool { return !north.sees(t, south) })
	if _, err := north.links.Unlink("south"); err != nil {
		t.Fatal(err)
	}
	north.ReviewLinks()
	again := s.found(t, nil)
	eventually(t, "it hears of the end", func() bool { return len(again.links.List()) == 0 })
}

// A gateway that comes back with another address is found: it dials, and its card says where it
// is now.
func TestAddressesOfAGatewayAreLearnt(t *testing.T) {
	north := capitalOf(t, "north", nil)
	s := newSeat(t, "south")
	s.cfg.Domain = "south"
	south := s.found(t, nil)
	if _, err := south.LinkWith(t.Context(), north.token(t, "")); err != nil {
		t.Fatal(err)
	}
	met(t, north, south)
	if err := south.Close(); err != nil {
		t.Fatal(err)
	}
	again := s.found(t, nil)
	met(t, north, again)
	link, _ := north.links.Get(again.links.Key())
	if got := link.Side.Gateways[0].Addrs; len(got) == 0 || got[0] != again.Addrs()[0] {
		t.Errorf("addresses %q, want %q", got, again.Addrs())
	}
}
