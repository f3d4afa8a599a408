package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// near makes the message of a gateway, signed by a domain's key.
func near(
	t *testing.T, by p2p.Identity, gateway grid.SiteID, made int64, names ...grid.DomainID,
) protocol.Neighbours {
	t.Helper()
	m := protocol.Neighbours{Gateway: gateway, MadeMS: made}
	for _, name := range names {
		m.All = append(m.All, protocol.Neighbour{Domain: stands(name), Name: name})
	}
	var err error
	if m.Signature, err = by.Key().Sign(m.SignedBytes()); err != nil {
		t.Fatal(err)
	}
	return m
}

// stands is the site that a neighbouring domain is taken for.
func stands(name grid.DomainID) grid.SiteID { return "domain-" + grid.SiteID(name) }

// comesAs is a neighbour as a broker hears of it.
func comesAs(name grid.DomainID) step.Input {
	return step.PeerSeen{Site: stands(name), Name: string(name), Domain: name}
}

// besideMembers is one that is asked together with the members.
func besideMembers(name grid.DomainID) step.Input {
	return step.PeerSeen{Site: stands(name), Name: string(name), Domain: name, Beside: true}
}

// heardOfPeers are all that the broker heard of peers, in order.
func (c *circle) heardOfPeers() (all []step.Input) {
	c.settle(c.t)
	for _, in := range heardOf[step.Input](&c.ofBroker) {
		switch in.(type) {
		case step.PeerSeen, step.PeerGone:
			all = append(all, in)
		}
	}
	return all
}

// Submitters hear of neighbours as of sites that come and go, by the word of who has it signed by
// the domain's key, and of nobody else.
func TestWhoSaysWhichNeighboursThereAre(t *testing.T) {
	c := newRealm(t)
	domain, forger := c.owner, identity(t)
	var err error
	good := near(t, domain, "gate", 5, "campus", "physics")
	c.received("gate", good)
	changed := near(t, domain, "gate", 9, "campus")
	changed.All[0].Name = "forged"
	for name, bad := range map[string]struct {
		from grid.SiteID
		m    protocol.Message
	}{
		"by another key":        {"x", near(t, forger, "x", 9, "forged")},
		"for another gateway":   {"x", near(t, domain, "gate", 9, "forged")},
		"changed after signing": {"gate", changed},
	} {
		before := c.count("heed_no_gateway")
		c.received(bad.from, bad.m)
		if c.count("heed_no_gateway") != before+1 {
			t.Errorf("%s: counted %v", name, c.reports.counters())
		}
	}
	c.received("gate", near(t, domain, "gate", 5, "forged")) // not later
	c.received("gate", near(t, domain, "gate", 6, "physics"))
	c.neighbours.lost(c.Agent, "another")
	c.neighbours.lost(c.Agent, "gate")
	c.received("gate", near(t, domain, "gate", 7, "campus"))
	besides := near(t, domain, "gate", 8, "campus")
	besides.All[0].Beside = true
	c.received("gate", besides) // and the signature is over something else
	if besides.Signature, err = domain.Key().Sign(besides.SignedBytes()); err != nil {
		t.Fatal(err)
	}
	c.received("gate", besides)
	want := []step.Input{
		comesAs("campus"), comesAs("physics"),
		step.PeerGone{Site: stands("campus")},
		step.PeerGone{Site: stands("physics")},
		comesAs("campus"), besideMembers("campus"),
	}
	if diff := cmp.Diff(want, c.heardOfPeers()); diff != "" {
		t.Errorf("the broker hears (-want +got):\n%s", diff)
	}
	if got := c.around.sites("here"); len(got) != 0 {
		t.Errorf("%v are taken for members", got)
	}
	if got := c.around.all(); !cmp.Equal(got, []step.Input{besideMembers("campus")}) {
		t.Errorf("a broker that boots hears %v", got)
	}
}

// standsIn makes the message of a deputy, signed by its own key under a mandate.
func standsIn(
	t *testing.T, mandated, deputy p2p.Identity, made int64, until time.Time,
	names ...grid.DomainID,
) protocol.Neighbours {
	t.Helper()
	key, err := p2p.KeyOf(deputy.Site())
	if err != nil {
		t.Fatal(err)
	}
	given := protocol.Mandate{Site: deputy.Site(), Key: key, UntilMS: until.UnixMilli()}
	if given.Signature, err = mandated.Key().Sign(given.SignedBytes()); err != nil {
		t.Fatal(err)
	}
	m := near(t, deputy, deputy.Site(), made, names...)
	m.Mandate = &given
	return m
}

// While nobody with the domain's key is heard of, a deputy's list counts if it has a mandate that
// has not ended, and of two deputies one; the list of the site with the key is before theirs, by
// whatever clock. A member without a mandate, or with one that has ended, cannot pose as gateway.
func TestWhoStandsInForTheGateway(t *testing.T) {
	c := newRealm(t)
	deputy, other := identity(t), identity(t)
	if other.Site() < deputy.Site() {
		deputy, other = other, deputy
	}
	ahead, past := c.clock.shows().Add(time.Hour), c.clock.shows().Add(-time.Second)
	says := func(m protocol.Neighbours) { c.received(m.Gateway, m) }
	want := func(what string, gateway grid.SiteID) {
		t.Helper()
		if got := c.neighbours.way(stands("campus")); got != gateway {
			t.Errorf("%s: campus is reached by %q, want %q", what, got, gateway)
		}
	}
	for what, m := range map[string]protocol.Neighbours{
		"uncertified":  near(t, deputy, deputy.Site(), 5, "campus"),
		"by itself":    standsIn(t, deputy, deputy, 5, ahead, "campus"),
		"ended before": standsIn(t, c.owner, deputy, 5, past, "campus"),
	} {
		says(m)
		want(what, "")
	}
	if got := c.count("heed_no_gateway"); got != 3 {
		t.Errorf("%d are counted, want 3", got)
	}
	says(standsIn(t, c.owner, other, 9, ahead, "campus"))
	want("the only one", other.Site())
	says(standsIn(t, c.owner, deputy, 5, ahead, "campus"))
	want("the first of two", deputy.Site())
	says(near(t, c.owner, "gate", 1, "campus"))
	want("the site with the key", "gate")
	says(near(t, c.owner, "gate", 2))
	want("the site with the key reaches nobody", "")
	c.neighbours.lost(c.Agent, "gate")
	want("the site with the key is gone", deputy.Site())
	says(standsIn(t, c.owner, deputy, 6, ahead))
	want("the first reaches nobody", other.Site())
	if _, until := c.neighbours.gateway(); !until.Equal(ahead.Truncate(time.Millisecond)) {
		t.Errorf("stands in until %s", until)
	}
	c.neighbours.expire(c.Agent, ahead)
	want("all mandates have ended", "")
}

// A change of the gateway alone is none of the neighbours: submitters hear nothing of it.
func TestAChangeOfGatewayIsNoneOfNeighbours(t *testing.T) {
	c := newRealm(t)
	ahead := c.clock.shows().Add(time.Hour)
	m := standsIn(t, c.owner, identity(t), 5, ahead, "campus")
	c.received(m.Gateway, m)
	c.received("gate", near(t, c.owner, "gate", 1, "campus"))
	if diff := cmp.Diff([]step.Input{comesAs("campus")}, c.heardOfPeers()); diff != "" {
		t.Errorf("the broker hears (-want +got):\n%s", diff)
	}
}

// What a neighbour says counts from the gateway alone, and to the submitter that it is for.
func TestWhoSpeaksForANeighbour(t *testing.T) {
	c := newRealm(t)
	c.received("gate", near(t, c.owner, "gate", 5, "campus"))
	answer := protocol.NeedRequirements{Job: "mfrggzdfmztwq2lk", Seq: 1}
	say := func(from grid.SiteID, name grid.DomainID, m protocol.Message) {
		c.received(from, protocol.ByGateway{Domain: stands(name), Message: m})
	}
	say("x", "campus", answer)
	say("gate", "physics", answer)
	if c.count("heed_no_gateway") != 2 {
		t.Errorf("counted %v", c.reports.counters())
	}
	say("gate", "campus", answer)
	c.settle(t)
	got := heardOf[step.MessageReceived](&c.ofBroker)
	want := []step.MessageReceived{{From: stands("campus"), Message: answer}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the broker hears (-want +got):\n%s", diff)
	}
}

// What a submitter says to a neighbour is for the border's machine, in the owner's name and by the
// same rules as what it says to a site.
func TestWhatIsSaidToANeighbour(t *testing.T) {
	c := newRealm(t)
	var heard []step.Input
	c.heeding.border = func(in step.Input) error {
		heard = append(heard, in)
		return nil
	}
	c.received("a", protocol.ByGateway{Domain: stands("campus"), Message: order})
	group := c.members(2, "b", "c")
	c.heeding.allowed = func(grid.SiteID) bool { return true }
	c.received("x", protocol.ByGateway{Domain: stands("campus"), Message: c.says(5, group, order)})
	c.received("b", protocol.ByGateway{Domain: stands("campus"), Message: c.says(5, group, order)})
	want := []step.Input{
		step.MessageReceived{From: "a", To: stands("campus"), Message: order},
		step.MessageReceived{From: c.owner.Site(), To: stands("campus"), Message: order},
	}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("the border hears (-want +got):\n%s", diff)
	}
	if got := c.told(); len(heardOfMessages(got)) != 0 {
		t.Errorf("the site is told %v", got)
	}
}

func heardOfMessages(all []step.Input) (messages []step.Input) {
	for _, in := range all {
		if m, is := in.(step.MessageReceived); is {
			messages = append(messages, m)
		}
	}
	return messages
}
