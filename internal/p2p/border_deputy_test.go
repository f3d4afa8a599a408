package p2p

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// mandated is a mandate for a site, signed by who has a domain's key.
func mandated(
	t *testing.T, by *member.Registry, site grid.SiteID, until time.Time,
) protocol.Mandate {
	t.Helper()
	key, err := KeyOf(site)
	m := protocol.Mandate{Site: site, Key: key, UntilMS: until.UnixMilli()}
	if err == nil {
		m.Signature, err = by.Sign(m.SignedBytes())
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// asDeputy shows a card that the impostor has signed with its own key, under a mandate.
func (i *impostor) asDeputy(as Identity, m *protocol.Mandate) (refusal string, err error) {
	i.t.Helper()
	s, err := i.dial()
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Reset() }()
	return i.show(s, func(nonce []byte) map[string]any {
		card := i.card(i.reg, nonce, nil)
		signed := append([]byte("mrs/1/border-card\x00"), card.Text...)
		signature, err := as.Key().Sign(signed)
		if err != nil {
			i.t.Fatal(err)
		}
		card.Signature = signature
		return map[string]any{"card": card, "mandate": m}
	})
}

// A deputy opens the border with a mandate of the domain's key, for itself, before that ends, and
// while the key has named it last. A site that the domain has banned since is named no more.
func TestMandatesThatAreNoGood(t *testing.T) {
	deputy, other := identity(t), identity(t)
	i := newImpostor(t, &deputy)
	key := i.south.Key()
	link, _ := i.north.links.Get(key)
	named := append(link.Side.Gateways, member.Gateway{Site: deputy.Site()})
	if err := i.north.links.Met(key, named); err != nil {
		t.Fatal(err)
	}
	stranger, err := member.Open(member.Config{Domain: "south", Self: other.Site()})
	if err == nil {
		_, _, err = stranger.Invite(member.Terms{Span: time.Hour, Uses: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	ahead, past := time.Now().Add(time.Hour), time.Now().Add(-time.Millisecond)
	good := mandated(t, i.reg, deputy.Site(), ahead)
	changed := good
	changed.UntilMS++
	own := mandated(t, i.reg, other.Site(), ahead)
	for _, c := range []struct {
		name    string
		as      Identity
		mandate *protocol.Mandate
		want    string
	}{
		{"none", deputy, nil, "forged"},
		{"of another key", deputy, new(mandated(t, stranger, deputy.Site(), ahead)), "forged"},
		{"of another site", other, &own, "forged"},
		{"with another's card", other, &good, "forged"},
		{"with a changed end", deputy, &changed, "forged"},
		{"that has ended", deputy, new(mandated(t, i.reg, deputy.Site(), past)), "lapsed"},
		{"a good one", deputy, &good, ""},
	} {
		if got, err := i.asDeputy(c.as, c.mandate); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	if link, _ = i.north.links.Get(key); len(link.Side.Gateways) != len(named) {
		t.Errorf("a deputy has changed the gateways to %v", link.Side.Gateways)
	}
	if err := i.north.links.Met(key, named[:1]); err != nil { // its card names it no more
		t.Fatal(err)
	}
	if got, err := i.asDeputy(deputy, &good); err == nil && got == "" {
		t.Error("a mandate that was taken back is good")
	}
	eventually(t, "it is counted", func() bool {
		return i.north.Count(wire.CountBorder, "lapsed") == 1
	})
}

func identity(t *testing.T) Identity {
	t.Helper()
	id, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The key in a site's name is the one that it signs with.
func TestKeyOfASite(t *testing.T) {
	id := identity(t)
	key, err := KeyOf(id.Site())
	text := []byte("text")
	signature, wrong := id.Key().Sign(text)
	if err != nil || wrong != nil || !ed25519.Verify(key, text, signature) {
		t.Errorf("%v, %v", err, wrong)
	}
	if _, err := KeyOf("nobody"); err == nil {
		t.Error("a name that is none has a key")
	}
}

// deputyOf starts another site of a capital's domain that stands in for it, whose links it was
// handed.
func deputyOf(t *testing.T, holder *capital) *capital {
	t.Helper()
	s := newSeat(t, "deputy")
	s.cfg.Domain = holder.cfg.Domain
	c := s.second(t, holder.links.Key(), nil)
	holder.hand(t, c)
	return c
}

// second starts a further site of a domain, which knows the domain's key.
func (s *seat) second(t *testing.T, key grid.DomainKey, change func(*Config)) *capital {
	t.Helper()
	reg, err := member.Open(member.Config{
		Dir: s.dir, Domain: s.cfg.Domain, Self: s.id.Site(), Key: key,
	})
	if err != nil {
		t.Fatal(err)
	}
	links, err := member.OpenLinks(reg)
	if err != nil {
		t.Fatal(err)
	}
	return s.capital(t, reg, links, change)
}

// hand hands the links over to a deputy, as they are now.
func (c *capital) hand(t *testing.T, deputy *capital) {
	t.Helper()
	key, err := KeyOf(deputy.Self())
	var m protocol.Handover
	if err == nil {
		m, err = c.links.HandOver(deputy.Self(), key, c.Self(), []grid.SiteID{deputy.Self()},
			time.Now().Add(time.Hour))
	}
	if err == nil {
		err = deputy.links.Take(m)
	}
	if err != nil {
		t.Error(err)
	}
}

// A change of deputies is told while messages cross: the link is down at no time, whichever side
// has opened the stream and says the news.
func TestNewsOfDeputiesKeepTheLinkUp(t *testing.T) {
	north, south := linked(t)
	deputies := []grid.SiteID{identity(t).Site(), identity(t).Site()}
	for round := range 4 {
		for _, c := range []struct{ by, to *capital }{{north, south}, {south, north}} {
			c.by.Deputies(deputies[:round%2+1])
			eventually(t, "the other domain has heard", func() bool {
				link, _ := c.to.links.Get(c.by.links.Key())
				return len(link.Side.Gateways) == round%2+2
			})
		}
	}
	for _, c := range []struct{ from, to *capital }{{north, south}, {south, north}} {
		eventually(t, "a message crosses", func() bool {
			if err := c.from.SendBorder(c.to.site(t), fence()); err != nil {
				t.Error(err)
			}
			return len(c.to.said()) > 0
		})
		c.to.mu.Lock()
		if c.to.gone > 0 {
			t.Errorf("the link of %s was down %d times", c.to.cfg.Domain, c.to.gone)
		}
		c.to.mu.Unlock()
	}
}

// A deputy takes a link up when the site with the key is gone, no earlier, and gives way to it
// when it is back.
func TestADeputyTakesALinkUp(t *testing.T) {
	north := capitalOf(t, "north", nil)
	seat := newSeat(t, "south")
	seat.cfg.Domain = "south"
	south := seat.found(t, nil)
	if _, err := south.LinkWith(t.Context(), north.token(t, "")); err != nil {
		t.Fatal(err)
	}
	met(t, north, south)
	deputy := deputyOf(t, south)
	at := func(gateway grid.SiteID) func() bool {
		return func() bool {
			n := north.Neighbours()
			return len(n) == 1 && n[0].Connected && n[0].Gateway == gateway
		}
	}
	south.Deputies([]grid.SiteID{deputy.Self()})
	eventually(t, "the other domain knows the deputy", func() bool {
		link, _ := north.links.Get(south.links.Key())
		return len(link.Side.Gateways) == 2 && at(south.Self())()
	})
	deputy.links.StandIn(deputy.Sign)
	deputy.ReviewLinks()
	eventually(t, "the deputy is told that the gateway is there", func() bool {
		return north.Count(wire.CountBorder, "busy") > 0
	})
	if !at(south.Self())() {
		t.Errorf("connected with %+v", north.Neighbours())
	}
	if err := south.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deputy is connected", at(deputy.Self()))
	back := seat.found(t, nil)
	eventually(t, "the site with the key is connected", at(back.Self()))
	deputy.links.StandDown()
	deputy.ReviewLinks()
	if !at(back.Self())() {
		t.Errorf("connected with %+v", north.Neighbours())
	}
}
