package agent

import (
	"testing"

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
