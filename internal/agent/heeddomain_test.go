package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// newRealm is a circle whose owner is the domain, which is no site.
func newRealm(t *testing.T) *circle {
	t.Helper()
	c := newCircle(t)
	domain := c.owner.Site()
	c.heeding.domain = func() grid.SiteID { return domain }
	c.heeding.allowed = func(site grid.SiteID) bool { return site != domain }
	return c
}

// acts says that a site is the controller.
func acts(site grid.SiteID, term uint64, certificate []byte) protocol.StandbyNews {
	return protocol.StandbyNews{Certificate: certificate, Term: term, Acting: site}
}

// ofController are messages of the controller, to a site and to a submitter.
func ofController() (booked, remap protocol.Message) {
	return protocol.Booked{Term: 5, Number: 1},
		protocol.Remap{Term: 5, Number: 1, Site: "dead", Before: time.Hour}
}

// All machines hear of the controller from itself, and from nobody else. A site that poses as one
// is not heeded, whatever it has.
func TestWhoIsHeededAsController(t *testing.T) {
	c := newRealm(t)
	domain, forger := c.owner.Site(), identity(t)
	group := c.members(2, "a", "b", "c")
	booked, remap := ofController()
	c.received("a", acts("a", 5, group))
	want := step.Controller{Site: "a", Term: 5}
	if got := c.told(); !cmp.Equal(got, []step.Input{want}) || len(c.saved) != 1 {
		t.Fatalf("the site is told %v, saved %v", got, c.saved)
	}
	if got := heardOf[step.Controller](&c.ofBroker); !slices.Equal(got, []step.Controller{want}) {
		t.Fatalf("the broker is told %v", got)
	}
	for name, bad := range map[string]struct {
		from  grid.SiteID
		m     protocol.Message
		count string // empty: nothing is
	}{
		"no member, with the certificate": {"x", acts("x", 9, group), "heed_no_group_member"},
		"with one that it has forged": {
			"x", acts("x", 9, certificate(t, c.owner, forger, 9, "x", "y")),
			"heed_forged_certificate",
		},
		"with one of its own": {
			"x", acts("x", 9, certificate(t, forger, forger, 9, "x", "y")), "",
		},
		"for another site":         {"x", acts("b", 9, group), ""},
		"a member in an old term":  {"b", acts("b", 4, group), "heed_superseded_term"},
		"a member in its term":     {"b", acts("b", 5, group), "heed_two_in_one_term"},
		"an answer to bookings":    {"b", booked, "heed_no_controller"},
		"who is to move":           {"b", remap, "heed_no_controller"},
		"the same, for another":    {"b", c.toOwner("here", remap), "heed_no_controller"},
		"an order of the domain's": {"a", c.says(5, group, order), "heed_owner_no_member"},
	} {
		before := c.count(bad.count)
		c.received(bad.from, bad.m)
		if got := c.told(); len(got) != 0 || bad.count != "" && c.count(bad.count) != before+1 {
			t.Errorf("%s: the site is told %v, counted %v", name, got, c.reports.counters())
		}
	}
	if got := heardOf[step.Controller](&c.ofBroker); len(got) != 1 {
		t.Errorf("the broker is told %v", got)
	}
	if got := heardOf[step.MessageReceived](&c.ofBroker); len(got) != 0 {
		t.Errorf("the broker hears %v", got)
	}
	if got := c.heeding.members(domain); !slices.Equal(got, []grid.SiteID{"a", "b", "c"}) {
		t.Errorf("members %v", got)
	}
}

// toOwner is a message for the owner of a group.
func (c *circle) toOwner(owner grid.SiteID, m protocol.Message) protocol.Message {
	return protocol.OnBehalf{Behalf: protocol.Behalf{Owner: owner}, Message: m}
}

// The controller answers sites and tells submitters; both hear that as said by it. The domain
// itself is nobody who comes and goes.
func TestWhatAControllerSays(t *testing.T) {
	c := newRealm(t)
	booked, remap := ofController()
	c.tellSite(step.PeerSeen{Site: "a"})
	c.received("a", acts("a", 5, c.members(2, "a", "b", "c")))
	c.told()
	c.received("a", booked)
	want := []step.Input{step.MessageReceived{From: "a", Message: booked}}
	if diff := cmp.Diff(want, c.told()); diff != "" {
		t.Errorf("the site (-want +got):\n%s", diff)
	}
	c.received("a", remap)
	c.received("a", c.toOwner("here", remap))
	c.settle(t)
	if got := heardOf[step.MessageReceived](&c.ofBroker); len(got) != 2 || got[0].From != "a" ||
		!cmp.Equal(got[0], got[1]) || !cmp.Equal(got[0].Message, remap) {
		t.Errorf("the broker hears %v", got)
	}
	c.tellSite(step.PeerGone{Site: "a"})
	if got := c.told(); !cmp.Equal(got, []step.Input{step.PeerGone{Site: "a"}}) {
		t.Errorf("when its site is gone the machine is told %v", got)
	}
}

// What is for the controller goes nowhere else.
func TestWhatIsForTheController(t *testing.T) {
	c := newRealm(t)
	c.received("x", protocol.Bookings{Term: 5, Number: 1})
	c.received("x", protocol.Remapped{Term: 5, Number: 1})
	if got := c.told(); len(got) != 0 || c.count("not_acting") != 2 {
		t.Errorf("the site is told %v, counted %v", got, c.reports.counters())
	}
	var heard []step.Input
	c.heeding.control = func(in step.Input) error { heard = append(heard, in); return nil }
	group := certificate(t, c.owner, c.owner, 1, "x", "y")
	c.heeding.domain = func() grid.SiteID { return "" }
	c.heeding.allowed = func(grid.SiteID) bool { return true }
	said := protocol.Remapped{Term: 5, Number: 2}
	c.received("y", c.says(1, group, said)) // by who acts for a submitter
	want := []step.Input{step.MessageReceived{From: c.owner.Site(), Message: said}}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("the controller (-want +got):\n%s", diff)
	}
}

// Favours count from members of the domain's group alone, who may stand in for the gateway. What is
// noted of them counts from the controller alone.
func TestFavoursComeFromGateways(t *testing.T) {
	c := newRealm(t)
	c.border = &gateway{a: c.Agent}
	c.received("a", acts("a", 5, c.members(2, "a", "b", "c")))
	c.told()
	c.received("x", protocol.Favours{Term: 5})
	if c.count("favours_refused") != 1 || c.count("not_acting") != 0 {
		t.Errorf("of a stranger: counted %v", c.reports.counters())
	}
	c.received("b", protocol.Favours{Term: 5})
	if c.count("favours_refused") != 1 || c.count("not_acting") != 1 {
		t.Errorf("of a member of the group: counted %v", c.reports.counters())
	}
	c.received("b", protocol.FavoursNoted{Term: 5})
	if c.count("heed_no_controller") != 1 || c.count("border_unheard") != 0 {
		t.Errorf("noted by a member: counted %v", c.reports.counters())
	}
	c.received("a", protocol.FavoursNoted{Term: 5})
	if c.count("border_unheard") != 1 {
		t.Errorf("noted by the controller: counted %v", c.reports.counters())
	}
	if got := c.told(); len(got) != 0 {
		t.Errorf("the site is told %v", got)
	}
}

// A controller that is gone counts as one until another one had the time to act.
func TestAControllerThatIsGone(t *testing.T) {
	c := newRealm(t)
	group := c.members(2, "a", "b", "c")
	none := step.Controller{}
	at := func(site grid.SiteID, term uint64) step.Controller {
		return step.Controller{Site: site, Term: term}
	}
	later := func(d time.Duration) {
		c.now = c.now.Add(d)
		c.heeding.review()
	}
	for i, s := range []struct {
		does func()
		want []step.Controller
	}{
		{func() { c.tellSite(step.PeerSeen{Site: "a"}) }, nil},
		{func() { c.received("a", acts("a", 5, group)) }, []step.Controller{at("a", 5)}},
		{func() { c.received("a", acts("a", 5, group)) }, nil}, // it says so again
		{func() { later(time.Hour) }, nil},
		{func() { c.tellSite(step.PeerGone{Site: "a"}); later(controllerAway) }, nil},
		{ // another one acts in time
			func() { c.tellSite(step.PeerSeen{Site: "b"}); c.received("b", acts("b", 6, group)) },
			[]step.Controller{at("b", 6)},
		},
		{func() { c.tellSite(step.PeerGone{Site: "b"}); later(controllerAway) }, nil},
		{func() { c.tellSite(step.PeerSeen{Site: "b"}); later(time.Hour) }, nil}, // it is back
		{ // nobody acts in time
			func() { c.tellSite(step.PeerGone{Site: "b"}); later(controllerAway + 1) },
			[]step.Controller{none},
		},
		{func() { c.received("b", acts("b", 6, group)) }, []step.Controller{at("b", 6)}},
		{ // the founder has ended the group
			func() { c.received("a", acts("a", 7, c.members(3, "a"))) }, []step.Controller{none},
		},
		{ // a group without the one that acts
			func() {
				c.received("a", acts("a", 8, c.members(4, "a", "b")))
				c.received("x", acts("", 0, c.members(5, "b", "c")))
				later(1)
			},
			[]step.Controller{at("a", 8), none},
		},
	} {
		s.does()
		var got []step.Controller
		for _, in := range c.told() {
			if in, is := in.(step.Controller); is {
				got = append(got, in)
			}
		}
		if !slices.Equal(got, s.want) {
			t.Errorf("%d: the site is told %v, want %v", i, got, s.want)
		}
	}
	if in, told := c.around.all(), step.Input(none); !slices.Contains(in, told) {
		t.Errorf("a machine that boots is told %v", in)
	}
}
