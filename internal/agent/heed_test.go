package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func identity(t *testing.T) p2p.Identity {
	t.Helper()
	id, err := p2p.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// certificate is an owner's, of the members at some sites.
func certificate(
	t *testing.T, owner p2p.Identity, by p2p.Identity, epoch uint64, sites ...grid.SiteID,
) []byte {
	t.Helper()
	c := protocol.Certificate{Owner: owner.Site(), Epoch: epoch}
	for i, site := range sites {
		c.Members = append(c.Members, protocol.CertMember{ID: uint64(i + 1), Site: site})
	}
	c, err := c.Sign(by.Key().Sign)
	if err != nil {
		t.Fatal(err)
	}
	return c.Encode()
}

// circle is a bare agent that knows nothing yet, an owner and others of the domain.
type circle struct {
	*bare
	t     *testing.T
	owner p2p.Identity
	saved []step.Fact
	fails error // of the disk
	now   time.Time
}

func newCircle(t *testing.T) *circle {
	t.Helper()
	c := &circle{bare: newBare(t), t: t, owner: identity(t), now: time.Unix(1_900_000_000, 0)}
	h := c.heeding
	h.self, h.now = "here", func() time.Time { return c.now }
	h.save = func(facts []step.Fact) error {
		if c.fails != nil {
			return c.fails
		}
		c.saved = append(c.saved, facts...)
		return nil
	}
	return c
}

func (c *circle) members(epoch uint64, sites ...grid.SiteID) []byte {
	return certificate(c.t, c.owner, c.owner, epoch, sites...)
}

func (c *circle) says(term uint64, certificate []byte, m protocol.Message) protocol.Message {
	return c.behalf(c.owner.Site(), term, certificate, m)
}

// told gives what the site's machine was told since the last time, messages and peers.
func (c *circle) told() (inputs []step.Input) {
	c.t.Helper()
	c.settle(c.t)
	c.ofSite.mu.Lock()
	defer c.ofSite.mu.Unlock()
	inputs, c.ofSite.heard = c.ofSite.heard, nil
	return inputs
}

func (c *circle) count(event string) int64 { return c.reports.counters()[event] }

var order = protocol.Cancel{Job: testAttempt.Task.Job}

// The site's machine hears an owner's orders from the member of the group that acts, and from
// nobody else. Each refusal is counted, and its sender told who acts.
func TestWhoIsHeeded(t *testing.T) {
	c := newCircle(t)
	owner, forger := c.owner.Site(), identity(t)
	group := c.members(2, owner, "a", "b")
	c.received("a", c.says(5, group, order))
	heard := step.MessageReceived{From: owner, Message: order}
	if diff := cmp.Diff([]step.Input{heard}, c.told()); diff != "" {
		t.Fatalf("of who acts (-want +got):\n%s", diff)
	}
	later := c.members(3, owner, "a", "c")
	news := func(certificate []byte) *protocol.StandbyNews {
		return &protocol.StandbyNews{Certificate: certificate, Term: 5, Acting: "a"}
	}
	strange := protocol.OnBehalf{
		Behalf:  protocol.Behalf{Owner: "stranger", Term: 9, Certificate: group},
		Message: order,
	}
	c.heeding.allowed = func(site grid.SiteID) bool { return site != "stranger" }
	for _, bad := range []struct {
		name  string
		from  grid.SiteID
		m     protocol.Message
		count string
		news  *protocol.StandbyNews
	}{
		{
			"no member of the group", "x", c.says(9, group, order),
			"heed_no_group_member", news(group),
		},
		{
			"a forged certificate", "x",
			c.says(9, certificate(t, c.owner, forger, 9, "x"), order),
			"heed_forged_certificate", nil,
		},
		{
			"of another owner", "x", c.says(9, certificate(t, forger, forger, 9, "x"), order),
			"heed_forged_certificate", nil,
		},
		{"a lower term", "b", c.says(4, group, order), "heed_superseded_term", news(group)},
		{"another in the term", "b", c.says(5, group, order), "heed_two_in_one_term", news(group)},
		{"the owner without a term", owner, order, "heed_plain_for_group", news(group)},
		{"an owner who is no member", "a", strange, "heed_owner_no_member", nil},
		{
			"a second one of an epoch", "a", c.says(6, c.members(2, "a"), order),
			"heed_other_certificate", news(group),
		},
		{"a term of nobody", "b", c.says(1, later, order), "heed_no_group_member", news(later)},
		{"an older epoch", "b", c.says(9, group, order), "heed_no_group_member", news(later)},
	} {
		before, letters := c.count(bad.count), len(c.sent())
		c.received(bad.from, bad.m)
		if got := c.told(); len(got) != 0 || c.count(bad.count) != before+1 {
			t.Errorf("%s: the machine is told %v, counted %v", bad.name, got, c.reports.counters())
		}
		var want []letter
		if bad.news != nil {
			want = []letter{{bad.from, *bad.news}}
		}
		got := append([]letter(nil), c.sent()[letters:]...)
		if !cmp.Equal(got, want, cmp.AllowUnexported(letter{})) {
			t.Errorf("%s: answered with %+v, want %+v", bad.name, got, want)
		}
	}
	c.received("a", c.says(5, group, order)) // it is still in the group, and knows no newer one
	if diff := cmp.Diff([]step.Input{heard}, c.told()); diff != "" {
		t.Errorf("of who acts (-want +got):\n%s", diff)
	}
	c.received("x", order) // a submitter of its own
	own := step.MessageReceived{From: "x", Message: order}
	if diff := cmp.Diff([]step.Input{own}, c.told()); diff != "" {
		t.Errorf("of one without a group (-want +got):\n%s", diff)
	}
}

// What is new of an owner's group is durable before the message is heard; what cannot be written
// is not heard.
func TestATermIsDurableBeforeItIsHeard(t *testing.T) {
	c := newCircle(t)
	group := c.members(2, c.owner.Site(), "a", "b")
	c.heeding.seen(step.PeerSeen{Site: "a"})
	c.told()
	c.fails = errForTest
	for i := range int64(2) {
		c.received("a", c.says(5, group, order))
		if got := c.told(); len(got) != 0 || c.count("message_dropped") != i+1 {
			t.Errorf("without a disk it hears %v", got)
		}
	}
	c.fails = nil
	c.received("a", c.says(5, group, order))
	want := []step.Input{
		step.PeerSeen{Site: c.owner.Site()},
		step.MessageReceived{From: c.owner.Site(), Message: order},
	}
	if diff := cmp.Diff(want, c.told()); diff != "" || len(c.saved) != 1 {
		t.Errorf("with a disk (-want +got):\n%s\nsaved %v", diff, c.saved)
	}
	again := newHeeding()
	if err := again.register.Restore(c.saved); err != nil {
		t.Fatal(err)
	}
	c.wireHeeding(again)
	again.self, again.now, again.save = "here", c.heeding.now, nil
	c.received("b", c.says(4, group, order))
	if got := c.told(); len(got) != 0 || c.count("heed_superseded_term") != 1 {
		t.Errorf("after a start a lower term is heard: %v", got)
	}
	c.received("a", c.says(5, group, order))
	if got := c.told(); len(got) != 1 {
		t.Errorf("after a start the same term is not: %v", got)
	}
}

// What the site's machine says to an owner goes to who acts while that is heard of, else to all
// who may; to an owner without a group as ever.
func TestWhereAnswersGo(t *testing.T) {
	c := newCircle(t)
	owner := c.owner.Site()
	answer := protocol.Renew{Renewal: 1, Attempts: []grid.AttemptID{testAttempt}}
	wrapped := protocol.OnBehalf{Behalf: protocol.Behalf{Owner: owner}, Message: answer}
	wants := func(name string, want ...letter) {
		t.Helper()
		before := len(c.sent())
		c.perform(step.Send{To: owner, Message: answer})
		if diff := cmp.Diff(want, c.sent()[before:], cmp.AllowUnexported(letter{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	wants("before anything is known", letter{owner, answer})
	c.received(owner, c.says(3, c.members(1, owner), order))
	wants("to an owner alone", letter{owner, answer})
	c.received("a", c.says(5, c.members(2, owner, "a", "b"), order))
	wants("to who acts", letter{"a", wrapped})
	c.now = c.now.Add(freshActing)
	wants("to all", letter{"a", wrapped}, letter{owner, wrapped}, letter{"b", wrapped})
	before := len(c.sent())
	c.perform(step.Send{To: "x", Message: order}) // as the submitter's machine here sends
	if got := c.sent()[before:]; len(got) != 1 || got[0] != (letter{"x", order}) {
		t.Errorf("an order goes as %v", got)
	}
}

// What a site says to who acts for an owner is for the group here, if there is one; the own broker
// gets what is for its owner.
func TestWhatIsForWhoActs(t *testing.T) {
	c := newCircle(t)
	answer := protocol.Renew{Renewal: 1, Attempts: []grid.AttemptID{testAttempt}}
	for owner, want := range map[grid.SiteID]int{"here": 1, "other": 0} {
		c.received("x", protocol.OnBehalf{Behalf: protocol.Behalf{Owner: owner}, Message: answer})
		c.settle(t)
		got := heardOf[step.MessageReceived](&c.ofBroker)
		if len(got) != 1 && want == 1 || len(c.told()) != 0 {
			t.Errorf("for %s: %v", owner, got)
		}
	}
	if c.count("not_acting") != 1 {
		t.Errorf("counted %v", c.reports.counters())
	}
}

// An owner is there for the machine while somebody acts for it that is.
func TestWhoIsThere(t *testing.T) {
	c := newCircle(t)
	owner := c.owner.Site()
	group := c.members(2, owner, "a", "b")
	of := func(site grid.SiteID, cores int64, line uint64) step.PeerSeen {
		return step.PeerSeen{
			Site: site, Line: line,
			Capability: grid.Capability{Total: grid.Resources{MilliCPUs: cores}},
		}
	}
	heard := step.MessageReceived{From: owner, Message: order}
	gone := func(site grid.SiteID) step.PeerGone {
		return step.PeerGone{Site: site, Refusing: true}
	}
	for i, s := range []struct {
		does func()
		want []step.Input
	}{
		{func() { c.tellSite(of(owner, 1, 7)) }, []step.Input{of(owner, 1, 7)}},
		{func() { c.tellSite(of("a", 2, 8)) }, []step.Input{of("a", 2, 8)}},
		{func() { c.tellSite(of("b", 3, 9)) }, []step.Input{of("b", 3, 9)}},
		{ // the owner acts
			func() { c.received(owner, c.says(5, group, order)) },
			[]step.Input{step.PeerGone{Site: owner}, of(owner, 1, 7), heard},
		},
		{func() { c.received(owner, c.says(5, group, order)) }, []step.Input{heard}},
		{func() { c.tellSite(gone(owner)) }, []step.Input{gone(owner)}},
		{ // another one begins, in the owner's line
			func() {
				c.received("a", c.says(6, group, order))
			}, []step.Input{of(owner, 2, 7), heard},
		},
		{func() { c.tellSite(of("a", 4, 8)) }, []step.Input{of("a", 4, 8)}},
		{func() { c.tellSite(of(owner, 1, 7)) }, []step.Input{of(owner, 1, 7)}},
		// It was back, and is gone again: who acts is there.
		{func() { c.tellSite(gone(owner)) }, nil},
		{func() { c.tellSite(gone("a")) }, []step.Input{gone("a"), gone(owner)}},
		{func() { c.tellSite(of("a", 4, 8)) }, []step.Input{of("a", 4, 8), of(owner, 4, 7)}},
		{ // a third
			func() { c.received("b", c.says(7, group, order)) },
			[]step.Input{step.PeerGone{Site: owner}, of(owner, 3, 7), heard},
		},
		{func() { c.tellSite(gone("a")) }, []step.Input{gone("a")}},
	} {
		s.does()
		if diff := cmp.Diff(s.want, c.told()); diff != "" {
			t.Errorf("%d (-want +got):\n%s", i, diff)
		}
	}
}

// A certificate that comes by itself is used, if it is one.
func TestCertificatesByThemselves(t *testing.T) {
	c := newCircle(t)
	owner := c.owner.Site()
	c.heeding.allowed = func(site grid.SiteID) bool { return site == owner }
	other := identity(t)
	c.received("a", protocol.Rejoin{Certificate: []byte("noise")})
	c.received("a", protocol.Rejoin{Certificate: certificate(t, c.owner, other, 9, "x")})
	c.received("a", protocol.StandbyNews{Certificate: certificate(t, other, other, 9, "x")})
	if f, s := c.count("heed_forged_certificate"), c.count("heed_owner_no_member"); f != 2 ||
		s != 1 {
		t.Errorf("%d forged, %d of strangers", f, s)
	}
	c.received("x", protocol.StandbyNews{Certificate: c.members(2, owner, "a")})
	if got := c.heeding.members(owner); !slices.Equal(got, []grid.SiteID{owner, "a"}) ||
		len(c.saved) != 1 {
		t.Errorf("members %v, saved %v", got, c.saved)
	}
}

// Between agents: what a group member says on an owner's behalf another site's machine hears as
// the owner's, by its stream and by gossip, and over a restart it heeds no lower term.
func TestAgentsHeedWhoActs(t *testing.T) {
	t.Parallel()
	owner := identity(t)
	one, two := mates(t, func(c *Config) { c.P2P.Allow = append(c.P2P.Allow, owner.Site()) })
	two.heeding.allowed = func(grid.SiteID) bool { return true } // it lists no owner
	group := certificate(t, owner, owner, 2, owner.Site(), one.Self())
	hears := func(b *bench, m protocol.Message) bool {
		for _, in := range list[step.MessageReceived](b) {
			if in.From == owner.Site() && cmp.Equal(in.Message, m) {
				return true
			}
		}
		return false
	}
	one.send(two.Self(), one.behalf(owner.Site(), 5, group, order))
	eventually(t, "the order is heard as the owner's", func() bool { return hears(two, order) })
	end := protocol.Clear{Job: order.Job, Submitter: owner.Site(), Kind: protocol.ClearEnded}
	one.broadcast(one.behalf(owner.Site(), 5, group, end))
	for _, b := range []*bench{one, two} {
		eventually(t, "all hear the end as the owner's", func() bool { return hears(b, end) })
	}
	answer := protocol.Renew{Renewal: 1, Attempts: []grid.AttemptID{testAttempt}}
	two.order(step.Send{To: owner.Site(), Message: answer})
	eventually(t, "the answer arrives where the group is not", func() bool {
		return one.reports.counters()["not_acting"] == 1
	})
	f := two.work.farewell(testAttempt, owner.Site())
	if f != nil {
		t.Errorf("without a command %+v", f)
	}
	two.cfg.Herald = []string{"herald"}
	eventually(t, "there are ways", func() bool { return len(two.mesh.Ways(one.Self())) > 0 })
	text, err := p2p.DeathNote{
		Attempt: testAttempt, To: one.Self(), Addrs: two.mesh.Ways(one.Self()),
	}.Encode()
	f = two.work.farewell(testAttempt, owner.Site())
	if err != nil || f == nil || string(f.Text) != string(text) {
		t.Errorf("the note is %+v, want %q, %v", f, text, err)
	}
	two.stop()
	again := newBenchOf(t, two.cfg)
	again.heeding.allowed = func(grid.SiteID) bool { return true }
	again.received(one.Self(), one.behalf(owner.Site(), 4, group, order))
	if got := again.reports.counters()["heed_superseded_term"]; got != 1 {
		t.Errorf("a lower term after a start: counted %v", again.reports.counters())
	}
}

// An owner that has certified others says its term from then on, also while it is alone:
// sites that have seen the certificate heed nothing else.
func TestAnOwnerWithACertificateSaysItsTerm(t *testing.T) {
	b := newBench(t, newGated())
	g := b.groups.jobsOf(b.Self())
	c := protocol.Certificate{Owner: b.Self(), Epoch: 1, Members: []protocol.CertMember{
		{ID: uint64(g.id), Site: b.Self()}, {ID: 7, Site: "other"},
	}}
	c, err := c.Sign(b.mesh.Sign)
	if err != nil {
		t.Fatal(err)
	}
	var plain, said protocol.Message
	alone := false
	if err := g.ask(t.Context(), func() {
		plain = g.wrap(order)
		g.assemble(c)
		said, alone = g.wrap(order), g.alone()
	}); err != nil {
		t.Fatal(err)
	}
	on, is := said.(protocol.OnBehalf)
	if plain != order || !alone || !is || on.Owner != b.Self() || on.Term == 0 {
		t.Errorf("before %+v, then %+v, alone: %t", plain, said, alone)
	}
	b.heeding.learn(c.Encode())
	b.received(b.Self(), said)
	if in := await[step.MessageReceived](b); in.From != b.Self() || in.Message != order {
		t.Errorf("the own site hears %+v", in)
	}
}
