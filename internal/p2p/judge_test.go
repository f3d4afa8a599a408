package p2p

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// keeper gives a mesh a registry of members that holds the domain's key.
func keeper(t *testing.T) func(*Config) {
	t.Helper()
	return func(c *Config) {
		reg, err := member.Open(member.Config{Domain: c.Domain, Self: wire.SiteOf(c.Host.ID())})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = reg.Invite(member.Terms{Span: time.Hour, Uses: 1}); err != nil {
			t.Fatal(err)
		}
		c.Members, c.AcceptAnyone = reg, false
	}
}

// decide lets the domain admit or ban a site.
func (q *quiet) decide(
	how func(grid.SiteID, string, string) (*protocol.MemberRecord, error), site grid.SiteID,
) protocol.MemberRecord {
	q.t.Helper()
	record, err := how(site, "", "")
	if err != nil || record == nil {
		q.t.Fatalf("no record: %v", err)
	}
	return *record
}

// taught is a registry of members without the domain's key that knows records of it.
func taught(
	t *testing.T, self grid.SiteID, by *quiet, records ...protocol.MemberRecord,
) *member.Registry {
	t.Helper()
	reg, err := member.Open(member.Config{Domain: "lab", Self: self, Key: by.cfg.Members.Key()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = reg.Merge(records); err != nil {
		t.Fatal(err)
	}
	return reg
}

// The owner's own decision about a site comes first, then the owner's list, then the roster.
func TestWhoMayBeAMember(t *testing.T) {
	domain := newQuiet(t, keeper(t))
	reg := taught(t, "self", domain,
		domain.decide(domain.cfg.Members.Ban, "banned"),
		domain.decide(domain.cfg.Members.Ban, "listed-banned"),
		domain.decide(domain.cfg.Members.Ban, "admitted-here-banned"),
		domain.decide(domain.cfg.Members.Admit, "admitted"),
		domain.decide(domain.cfg.Members.Admit, "banned-here"))
	for site, decide := range map[grid.SiteID]func(
		grid.SiteID, string, string) (*protocol.MemberRecord, error){
		"banned-here": reg.Ban, "listed-banned-here": reg.Ban, "admitted-here": reg.Admit,
		"admitted-here-banned": reg.Admit,
	} {
		if _, err := decide(site, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	list := newQuiet(t, func(c *Config) {
		c.AcceptAnyone, c.Members = false, reg
		c.Allow = []grid.SiteID{"listed", "listed-banned", "listed-banned-here"}
	})
	anyone := newQuiet(t, func(c *Config) { c.Members = reg })
	for site, want := range map[grid.SiteID][2]grid.Reason{ // with a list, and without one
		"self-itself": {grid.ReasonNotMember, grid.ReasonNone}, "listed": {},
		"banned":             {grid.ReasonBanned, grid.ReasonBanned},
		"listed-banned":      {grid.ReasonNone, grid.ReasonBanned},
		"banned-here":        {grid.ReasonBanned, grid.ReasonBanned},
		"listed-banned-here": {grid.ReasonBanned, grid.ReasonBanned},
		"admitted":           {}, "admitted-here": {}, "admitted-here-banned": {},
		"anyone": {grid.ReasonNotMember, grid.ReasonNone},
	} {
		if got := [2]grid.Reason{list.Judge(site), anyone.Judge(site)}; got != want {
			t.Errorf("%s is judged %s with a list and %s without, want %s", site, got[0], got[1], want)
		}
	}
	if got := list.Judge(list.self); got != grid.ReasonNone {
		t.Errorf("this site is judged %s", got)
	}
}

// A site that the domain banned is told so, and one that it admitted will be known soon: only for
// another one there is no hope.
func TestWhyThisSiteIsRefused(t *testing.T) {
	domain := newQuiet(t, keeper(t)) // its first record admits this site
	alone := newQuiet(t, nil)
	banned := newQuiet(t, func(c *Config) {
		self := wire.SiteOf(c.Host.ID())
		c.Members = taught(t, self, domain, domain.decide(domain.cfg.Members.Ban, self))
	})
	for name, c := range map[string]struct {
		q        *quiet
		reason   grid.Reason
		hopeless bool
	}{
		"admitted": {domain, grid.ReasonNotMember, false},
		"unknown":  {alone, grid.ReasonNotMember, true},
		"banned":   {banned, grid.ReasonBanned, true},
	} {
		if got := c.q.reasonForUs(); got != c.reason {
			t.Errorf("%s: refused as %s, want %s", name, got, c.reason)
		}
		refusal := fmt.Errorf("open: %w", &refusedError{Site: "s", Reason: grid.ReasonNotMember})
		if got := c.q.hopeless(refusal); got != c.hopeless || c.q.hopeless(errRelayed) {
			t.Errorf("%s: hopeless %t, want %t of a refusal alone", name, got, c.hopeless)
		}
	}
}

// A site's ID has one form in which it is compared.
func TestTheFormOfAnID(t *testing.T) {
	id := somebody(t)
	if got, err := Canonical(grid.SiteID(peer.ToCid(id).String())); err != nil ||
		got != wire.SiteOf(id) {
		t.Errorf("%s, %v; want %s", got, err, id)
	}
	if got, err := Canonical("nobody"); !errors.Is(err, grid.ErrInvalid) || got != "" {
		t.Errorf("a word is the ID %q, %v", got, err)
	}
}

// Version, domain, membership, clock and run are judged, in this order; each has its bound.
func TestHowAHelloIsJudged(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	listed := wire.SiteOf(somebody(t))
	hello := protocol.Hello{
		MinVersion: protocol.MinVersion, MaxVersion: protocol.Version, Domain: "lab", Name: "n",
		Incarnation: 3, WallMS: now.UnixMilli(), Run: protocol.Run{Number: 3, Nonce: 2},
		Capability: grid.Capability{CoreMFLOPS: 5},
	}
	limit := protocol.MaxSkew.Milliseconds()
	for name, c := range map[string]struct {
		change func(*protocol.Hello)
		want   grid.Reason
	}{
		"good": {func(*protocol.Hello) {}, grid.ReasonNone},
		"an old version": {
			func(h *protocol.Hello) { h.MaxVersion = protocol.MinVersion - 1 },
			grid.ReasonVersion,
		},
		"a new version": {
			func(h *protocol.Hello) { h.MinVersion = protocol.Version + 1 },
			grid.ReasonVersion,
		},
		"many versions": {
			func(h *protocol.Hello) { h.MinVersion, h.MaxVersion = 0, 99 },
			grid.ReasonNone,
		},
		"another domain": {func(h *protocol.Hello) { h.Domain = "other" }, grid.ReasonDomain},
		"ahead":          {func(h *protocol.Hello) { h.WallMS += limit }, grid.ReasonNone},
		"too far ahead":  {func(h *protocol.Hello) { h.WallMS += limit + 1 }, grid.ReasonClock},
		"behind":         {func(h *protocol.Hello) { h.WallMS -= limit }, grid.ReasonNone},
		"too far behind": {func(h *protocol.Hello) { h.WallMS -= limit + 1 }, grid.ReasonClock},
		"an older run":   {func(h *protocol.Hello) { h.Run.Nonce = 1 }, grid.ReasonOlderRun},
		"an older, refuses": {
			func(h *protocol.Hello) { h.Run.Nonce, h.Refusal = 1, grid.ReasonClock },
			grid.ReasonNone,
		},
	} {
		q := newQuiet(t, func(c *Config) { c.AcceptAnyone, c.Allow = false, []grid.SiteID{listed} })
		q.runs.learn(listed, hello.Run, now)
		h := hello
		c.change(&h)
		if _, got := q.judge(listed, h, now, now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if _, got := q.judge("other", h, now, now); c.want != grid.ReasonVersion &&
			c.want != grid.ReasonDomain && got != grid.ReasonNotMember {
			t.Errorf("%s, of a stranger: %s, want no member", name, got)
		}
	}
	q := newQuiet(t, nil)
	hello.Refusal = grid.ReasonClock
	if q.judge("s", hello, now, now); len(q.runs.newest) != 0 {
		t.Error("a Hello that refuses this site is remembered as a run")
	}
	hello.Refusal = grid.ReasonNone
	hello.Name, hello.Owner = "n\x1b[2J", "o\nwner"
	f, _ := q.judge("s", hello, now.Add(-time.Second), now.Add(3*time.Second))
	if f.Skew != -time.Second || f.RoundTrip != 4*time.Second || f.Incarnation != 3 ||
		f.Name != "n?[2J" || f.Owner != "o?wner" || f.Run.Nonce != 2 ||
		f.Capability.CoreMFLOPS != 5 {
		t.Errorf("facts %+v, want the clock measured in the middle of four seconds", f)
	}
}

// The gater lets every address and every connection pass until it is known whose it is.
func TestWhereStrangersAreTurnedAway(t *testing.T) {
	listed := somebody(t)
	q := newQuiet(t, func(c *Config) {
		keeper(t)(c)
		c.Allow = []grid.SiteID{wire.SiteOf(listed)}
	})
	strange, g := q.stranger(), gater{q.Mesh}
	if !g.InterceptPeerDial(listed) || g.InterceptPeerDial(strange) {
		t.Error("want members dialled, and nobody else")
	}
	if !g.InterceptAddrDial(strange, nil) || !g.InterceptAccept(nil) {
		t.Error("a connection is turned away before its peer is known")
	}
	// An invitation is open: a stranger may come in, as a guest.
	tcp := q.connected(strange, "/ip4/10.0.0.9/tcp/1", network.DirInbound)
	quic := q.connected(strange, "/ip4/10.0.0.9/udp/1/quic-v1", network.DirInbound)
	for _, c := range []*stubConn{tcp, quic} {
		if !g.InterceptSecured(network.DirInbound, strange, c) {
			t.Errorf("a guest is turned away at %s", c.at)
		}
	}
	if pass, why := g.InterceptUpgraded(tcp); !pass || why != 0 || !q.lobby.Has(tcp) {
		t.Errorf("a guest passes %t, with code %d", pass, why)
	}
	if got := q.Count(wire.CountRefused, "not_member"); got != 0 {
		t.Errorf("%d refusals of a guest", got)
	}

	q.decide(q.cfg.Members.Ban, wire.SiteOf(strange)) // invited is nobody who is banned
	out := q.connected(strange, "/ip4/10.0.0.9/tcp/2", network.DirInbound)
	if !g.InterceptSecured(network.DirInbound, strange, out) {
		t.Error("over TCP a stranger is turned away before it can be told why")
	}
	if g.InterceptSecured(network.DirInbound, strange, quic) {
		t.Error("over QUIC a banned site passes")
	}
	if pass, why := g.InterceptUpgraded(out); pass || why != 0 {
		t.Errorf("a banned site passes %t, with code %d", pass, why)
	}
	if got := q.Count(wire.CountRefused, "banned"); got != 2 {
		t.Errorf("%d refusals are counted, want 2", got)
	}
	of := q.connected(listed, "/ip4/10.0.0.8/udp/1/quic-v1", network.DirInbound)
	if pass, _ := g.InterceptUpgraded(of); !pass ||
		!g.InterceptSecured(network.DirInbound, listed, of) {
		t.Error("a member is turned away")
	}
	if isTCP(nil) || isTCP(of.at) || !isTCP(tcp.at) {
		t.Error("want TCP told from QUIC, and from no address")
	}
}

// The first refusal of a peer for a reason is of interest, the others are not, until there were
// very many.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	q := newQuiet(t, nil)
	first := &refusedError{Site: "first", Reason: grid.ReasonClock}
	for i, level := range []string{"INFO", "DEBUG"} {
		q.lines.text.Reset()
		q.refused(first)
		if !q.lines.has("level="+level, "peer is not admitted", "peer=first", "by_peer=false") {
			t.Errorf("refusal %d is not logged as %s", i+1, level)
		}
	}
	if got := q.Count(wire.CountRefused, "clock"); got != 2 || q.Refusals()["clock"] != 2 {
		t.Errorf("%d refusals are counted, want 2", got)
	}
	if !q.firstRefusal(&refusedError{Site: "first", Reason: grid.ReasonClock, ByPeer: true}) {
		t.Error("that the peer refuses this site is no news")
	}
	for i := range maxRefusals - 3 {
		q.firstRefusal(&refusedError{Site: wire.SiteOf(newID(i))})
	}
	if q.firstRefusal(first) {
		t.Error("a refusal is forgotten although there are few")
	}
	q.firstRefusal(&refusedError{Site: "last"})
	if len(q.refusals) != maxRefusals || !q.firstRefusal(first) || len(q.refusals) != 1 {
		t.Errorf("%d refusals are remembered, want all forgotten after %d", len(q.refusals), maxRefusals)
	}
}

// What cannot be used is counted by its cause. A peer whose message is readable and untrue is
// named once.
func TestMessagesThatCannotBeUsedAreLogged(t *testing.T) {
	q := newQuiet(t, nil)
	for _, c := range []struct {
		err   error
		cause string
		level string
	}{
		{protocol.ErrTooLarge, "size", "DEBUG"},
		{grid.ErrInvalid, "format", "INFO"},
		{grid.ErrInvalid, "format", "DEBUG"},
	} {
		q.lines.text.Reset()
		before := q.Count(wire.CountInvalid, c.cause)
		q.unusable("s", c.err)
		if q.Count(wire.CountInvalid, c.cause) != before+1 ||
			!q.lines.has("level="+c.level, "message is not usable", "peer=s") {
			t.Errorf("%v: want it counted as %s, and logged as %s", c.err, c.cause, c.level)
		}
	}
}
