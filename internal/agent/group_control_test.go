package agent

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/domain"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// founder is a bench with the domain's key, which sends nothing.
func founder(t *testing.T, asked map[grid.SiteID]int) *bench {
	t.Helper()
	c := plans(t, 2)[1]
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	registry, err := member.Open(member.Config{
		Dir: c.StateDir, Domain: c.P2P.Domain, Self: c.P2P.Allow[1], Name: c.Name,
	})
	if err == nil {
		_, _, err = registry.Invite(member.Terms{Span: time.Hour, Uses: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Controller = Controlling{Found: true, Accept: true}
	c.Taps.Sending = func(to grid.SiteID, m protocol.Message) bool {
		if _, is := m.(protocol.GroupAsk); is {
			asked[to]++
		}
		return false
	}
	return newBenchOf(t, c)
}

// The domain's group is founded when there are two others, not before: two members could not lose
// one. Who does not answer, as one of an older version, is asked a few times and then left alone.
func TestWhoIsAskedToBeAMember(t *testing.T) {
	asked := map[grid.SiteID]int{}
	b := founder(t, asked)
	b.around.note(step.PeerSeen{Site: "old"})
	b.foundDomain()
	owner := b.domainSite()
	if g := b.groups.of(owner); owner == "" || g != nil {
		t.Fatalf("with one other member the group of %q is %v", owner, g)
	}
	b.around.note(step.PeerSeen{Site: "new"})
	b.around.note(step.PeerSeen{Site: "other"})
	b.foundDomain()
	c := b.groups.controlOf(owner)
	if c == nil {
		t.Fatal("with three there is none")
	}
	eventually(t, "it leads", func() bool {
		acts := false
		return c.ask(t.Context(), func() { acts = c.acts() }) == nil && acts
	})
	err := c.ask(t.Context(), func() {
		c.ranked = []grid.SiteID{"old", "new", "other"}
		for range 2 * mostTries {
			c.askOthers(c.member.Members())
			for site := range c.forming.asked {
				c.forming.asked[site] = time.Time{} // that was long ago
			}
			if len(c.forming.answers) == 0 {
				c.onAnswer("new", protocol.StandbyAnswer{Accept: true, Member: 7})
			}
		}
		if said := c.forming.refused["old"]; said.why == "" || said.long != keepWithin {
			t.Errorf("of who is silent is known %+v", said)
		}
	})
	b.tellBrokers(step.SpaceChanged{})
	err = errors.Join(err, c.ask(t.Context(), func() {}))
	if n := b.Known().Counters["not_for_controller"]; n != 0 {
		t.Errorf("the controller was told %d things that it does not take", n)
	}
	want := map[grid.SiteID]int{"old": mostTries, "new": 1, "other": mostTries}
	if diff := cmp.Diff(want, asked); diff != "" || err != nil {
		t.Errorf("asked (-want +got), %v:\n%s", err, diff)
	}
}

// Nobody is asked beyond those who are missing, as long as answers of others may come: a site that
// is not needed would wait for its group until it gives up.
func TestNobodyIsAskedTooMuch(t *testing.T) {
	asked := map[grid.SiteID]int{}
	b := founder(t, asked)
	for _, site := range []grid.SiteID{"first", "second", "third"} {
		b.around.note(step.PeerSeen{Site: site})
	}
	b.foundDomain()
	c := b.groups.controlOf(b.domainSite())
	eventually(t, "it leads", func() bool {
		acts := false
		return c.ask(t.Context(), func() { acts = c.acts() }) == nil && acts
	})
	err := c.ask(t.Context(), func() {
		clear(asked)
		clear(c.forming.asked)
		c.ranked = []grid.SiteID{"second", "third"}
		c.askOthers(c.member.Members())
		c.ranked = []grid.SiteID{"first", "second", "third"}
		c.onAnswer("second", protocol.StandbyAnswer{Accept: true, Member: 7})
	})
	want := map[grid.SiteID]int{"second": 1, "third": 1}
	if diff := cmp.Diff(want, asked); diff != "" || err != nil {
		t.Errorf("asked (-want +got), %v:\n%s", err, diff)
	}
}

// A site that has refused, or was silent, is asked again after a short pause, and after twice as
// long each time: the trouble of a moment leaves no group without its members for long. What a site
// says during the pause does not prolong it.
func TestWhoRefusesIsAskedAgain(t *testing.T) {
	t.Parallel()
	f, now := newForming(), time.Now()
	var asked []int // seconds after the first refusal
	for at := now; at.Sub(now) <= time.Hour; at = at.Add(time.Second) {
		if d := f.refused["site"]; !at.Before(d.until) {
			asked = append(asked, int(at.Sub(now)/time.Second))
		}
		f.answers["site"], f.tries["site"] = 7, 1
		f.decline("site", at, "not now")
		if len(f.answers)+len(f.tries) > 0 {
			t.Fatal("what it said before counts on")
		}
	}
	want := []int{0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430, 3030}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked after (-want +got):\n%s", diff)
	}
}

// A site takes part where its owner wants that, for its own domain, and for one asker at a time.
func TestWhoTakesPart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*protocol.GroupAsk, *Controlling)
		takes  bool
	}{
		"it does":        {func(*protocol.GroupAsk, *Controlling) {}, true},
		"another domain": {func(m *protocol.GroupAsk, _ *Controlling) { m.Owner = "x" }, false},
		"its owner refuses": {
			func(_ *protocol.GroupAsk, s *Controlling) { s.Accept = false }, false,
		},
		"too many facts": {
			func(m *protocol.GroupAsk, _ *Controlling) { m.Facts = 65 << 20 }, false,
		},
	} {
		b := founder(t, map[grid.SiteID]int{})
		owner := b.domainSite()
		ask := protocol.GroupAsk{
			Owner: owner, StandbyAsk: protocol.StandbyAsk{Epoch: 1, Facts: 64 << 20},
		}
		c.change(&ask, &b.cfg.Controller)
		id, err := b.enlistForDomain("asker", ask)
		if takes := err == nil; takes != c.takes || (b.groups.of(owner) != nil) != c.takes {
			t.Errorf("%s: takes part: %t, %v", name, takes, err)
		}
		again, wrong := b.enlistForDomain("asker", ask)
		if c.takes && (again != id || wrong != nil) {
			t.Errorf("%s: asked again it is member %d, not %d, %v", name, again, id, wrong)
		}
	}
}

// The best available are asked first, and of equals those that were seen for longest.
func TestTheBestAvailableAreAsked(t *testing.T) {
	t.Parallel()
	at := func(hours int64) time.Time { return time.Unix(1_900_000_000-3600*hours, 0) }
	got := rankMembers([]broker.MemberState{
		{Site: "away", UpHour: 0, Since: at(9)},
		{Site: "poor", UpHour: .5, Connected: true, Since: at(50)},
		{Site: "new", UpHour: .981, Connected: true, Since: at(1)},
		{Site: "old", UpHour: .985, Connected: true, Since: at(20)},
		{Site: "ever", UpHour: .98, Connected: true},
		{Site: "unknown", Connected: true, Since: at(99)},
	})
	if want := []grid.SiteID{"ever", "old", "new", "poor", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("asked in the order %v, want %v", got, want)
	}
}

// A controller that falls silent in a rest, whose last heartbeat was just sent, is missed soon
// enough for another one to act in five seconds.
func TestARestLeavesTimeForAnother(t *testing.T) {
	t.Parallel()
	c := standby.Default(1)
	rest := new(control).rest(c.Rest)
	missed := 2*rest - c.Heartbeat + c.ElectionTimeout + c.ElectionSpread // see pkg/standby/rest.go
	if limit := 4500 * time.Millisecond; missed > limit || rest <= c.Heartbeat {
		t.Errorf("it is missed after %s, want %s at most", missed, limit)
	}
}

// A site that has changed its domain has no part in the group of the one before.
func TestAnotherDomainsGroupIsLeft(t *testing.T) {
	c := plans(t, 2)[1]
	b := newBenchOf(t, c)
	m := store.Member{
		Name: controlPrefix + "x", ID: 7, Owner: "before", Stored: standby.Founded(0, nil, 7),
	}
	err := b.Agent.store.Enlist(m)
	b.stop()
	again := newBenchOf(t, c)
	members, wrong := again.Agent.store.Members()
	if err != nil || wrong != nil || len(members) != 1 || again.groups.of("before") != nil {
		t.Errorf("members %+v, %v, %v", members, err, wrong)
	}
}

// The controller goes by the defaults of a configuration also without one; a share of 0 is one.
func TestWhatAControllerGoesBy(t *testing.T) {
	t.Parallel()
	d := config.Default(config.PresetLAN, func(string) (string, bool) { return "", false }).Control
	s := controlSettings{
		Weight: float64(d.WeightMilli) / 1000, Share: d.Share, Slot: d.Slot, AllNodes: d.AllNodes,
		Fines: d.Fines, Prices: d.Prices,
	}
	if diff := cmp.Diff(domain.Default("a"), s.config("a")); diff != "" {
		t.Errorf("the defaults of the configuration (-machine +configuration):\n%s", diff)
	}
	if diff := cmp.Diff(domain.Default("a"), controlSettings{}.config("a")); diff != "" {
		t.Errorf("without settings (-want +got):\n%s", diff)
	}
	s.Share = 0
	s.Prices = true
	if text := s.config("a"); text.Share != 0 || !text.Prices {
		t.Errorf("a share of 0 is %v, and prices count: %t", text.Share, text.Prices)
	}
	if _, err := newController([]byte("{")); err == nil {
		t.Error("a configuration that is none makes a controller")
	}
}
