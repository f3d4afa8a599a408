package domain

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// three is a domain of three sites, of which the largest has five reservations: the first three
// start soon, one later, the last far ahead, when nobody has reserved anything else.
func three(t *testing.T, tune func(*Config)) *rig {
	t.Helper()
	r := newRig(t, tune)
	r.comes(here, big, mid)
	r.says(here, 4)
	r.says(mid, 2)
	r.says(big, 8, places(1, 2, 20*time.Minute), places(0, 2, 30*time.Minute),
		places(2, 4, 20*time.Minute), places(3, 2, 50*time.Minute), places(4, 1, 8*time.Hour))
	r.wait(time.Second)
	return r
}

// "jobs ... are remapped in the order of their booking" (VRM, 4.2), best fit; what starts behind
// the interval stays, and what finds no other site is said to have none.
func TestTheSoonOnesLeaveInTheOrderOfBooking(t *testing.T) {
	r := three(t, nil)
	r.do(step.PeerGone{Site: big})
	if _, is := told(r.wait(r.cfg.Grace-time.Millisecond), user, big); is {
		t.Fatal("told before the site has had the time to come back")
	}
	wantMoves(t, r.wait(time.Second), "200>c", "201>a", "202>", "203>a")
	got := r.m.Status()
	if b := got.Sites[1]; b.Failed.IsZero() || b.Leaving != 4 || b.Stuck != 1 || b.Bookings != 5 {
		t.Errorf("shown as %+v", b)
	}
}

// While the failure lasts all is worked out anew in each slot, and told again.
func TestEachSlotIsJudgedAnew(t *testing.T) {
	r := three(t, nil)
	r.do(step.PeerGone{Site: big})
	r.wait(r.cfg.Grace + time.Second)
	wantMoves(t, r.wait(r.cfg.Slot), "200>c", "201>a", "202>", "203>a")
	r.says(mid, 8) // has more now: what was told stands, what has no place gets one
	wantMoves(t, r.wait(r.cfg.Slot), "200>c", "201>a", "202>c", "203>a")
	r.do(step.PeerSeen{Site: big})
	if _, is := told(r.wait(3*r.cfg.Slot), user, big); is {
		t.Error("told of a site that is back")
	}
}

// A controller that takes over knows the failed site's bookings from the facts, and says the same.
func TestASuccessorSaysTheSame(t *testing.T) {
	r := three(t, nil)
	r.do(step.PeerGone{Site: big})
	r.wait(r.cfg.Grace + time.Second)
	r.takeOver()
	r.comes(here, mid)
	r.says(here, 4)
	r.says(mid, 2)
	wantMoves(t, r.wait(bootGrace+time.Second), "200>c", "201>a", "202>", "203>a")

	r = three(t, nil) // and one that took over before the site had failed
	r.takeOver()
	r.comes(here, mid)
	r.says(here, 4)
	r.says(mid, 2)
	wantMoves(t, r.wait(bootGrace+time.Second), "200>c", "201>a", "202>", "203>a")
}

// What a submitter says is elsewhere is not told again; others cannot say so.
func TestSubmittersConfirm(t *testing.T) {
	r := three(t, nil)
	r.do(step.PeerGone{Site: big})
	r.wait(r.cfg.Grace + time.Second)
	answer := protocol.Remapped{
		Term: r.term, Number: 1, Elsewhere: []grid.TaskID{attempt(0).Task, attempt(4).Task},
	}
	r.do(step.MessageReceived{From: "mallory", Message: answer})
	old := answer
	old.Term++
	r.do(step.MessageReceived{From: user, Message: old})
	wantMoves(t, r.wait(r.cfg.Slot), "200>c", "201>a", "202>", "203>a")
	r.do(step.MessageReceived{From: user, Message: answer})
	wantMoves(t, r.wait(r.cfg.Slot), "201>a", "202>", "203>a") // 201 was told so, and keeps it
	if n := r.m.Status().Sites[1].Bookings; n != 4 {
		t.Errorf("%d bookings, want 4: what was not to leave is not dropped", n)
	}
}

// A task whose new site says that it has it is not reserved for a second time.
func TestWhatHasMovedTakesNoSecondPlace(t *testing.T) {
	r := three(t, nil)
	r.do(step.PeerGone{Site: big})
	r.wait(r.cfg.Grace + time.Second)
	moved := places(0, 2, 30*time.Minute)
	moved.Attempt.Token = 2
	r.says(here, 4, moved)
	wantMoves(t, r.wait(r.cfg.Slot), "200>a", "201>a", "202>", "203>c")
	forged := moved
	forged.Submitter = "mallory" // who says so of another's task is not believed
	r.says(here, 4, forged)
	wantMoves(t, r.wait(r.cfg.Slot), "200>a", "201>c", "202>", "203>")
}

// A part of a site fails: what was booked first stays on what is left of it.
func TestAPartOfASiteFails(t *testing.T) {
	r := three(t, nil)
	r.saysPartly(big, 8, 4, places(1, 2, 20*time.Minute), places(0, 2, 30*time.Minute),
		places(2, 4, 20*time.Minute), places(3, 2, 50*time.Minute), places(4, 1, 8*time.Hour))
	out := r.wait(time.Second)
	wantMoves(t, out, "202>a", "203>c")
	if !isPartly(out) || r.m.Status().Sites[1].Short.IsZero() {
		t.Errorf("it is there: %+v, %+v", out, r.m.Status().Sites[1])
	}
	wantMoves(t, r.wait(r.cfg.Slot), "202>a", "203>c") // it is repeated
	if !r.m.sites[big].failed.IsZero() {
		t.Error("it counts as failed")
	}
	r.do(step.PeerGone{Site: big})
	if out = r.wait(r.cfg.Grace + time.Second); isPartly(out) {
		t.Errorf("it is gone: %+v", out)
	}
}

// isPartly reports whether submitters are told last that the site is there.
func isPartly(effects []step.Effect) (partly bool) {
	for _, e := range effects {
		if s, is := e.(step.Send); is {
			if m, is := s.Message.(protocol.Remap); is {
				partly = m.Partly
			}
		}
	}
	return partly
}

// What has begun stays on what is left of a site, also if another was booked before.
func TestWhatHasBegunStays(t *testing.T) {
	r := three(t, nil)
	r.saysPartly(big, 8, 4, places(0, 4, 20*time.Minute), places(1, 4, 0))
	wantMoves(t, r.wait(time.Second), "200>a")
}

// A site that has enough again is said to keep all, once, and nothing leaves it any more.
func TestASiteThatHasEnoughAgainKeepsAll(t *testing.T) {
	r := three(t, nil)
	all := []protocol.Booking{places(0, 4, 20*time.Minute), places(1, 4, 20*time.Minute)}
	r.saysPartly(big, 8, 4, all...)
	wantMoves(t, r.wait(time.Second), "201>a")
	wantMoves(t, r.says(big, 8, all...))
	if s := r.m.Status().Sites[1]; s.Leaving != 0 || !s.Short.IsZero() {
		t.Errorf("%+v", s)
	}
	if _, told := told(r.wait(time.Hour), user, big); told {
		t.Error("it is said again")
	}
}

// With prices the cheapest site takes what leaves; one that names none is neither cheap nor dear.
func TestPricesDecideWhereItGoes(t *testing.T) {
	for _, c := range []struct {
		prices bool
		of     map[grid.SiteID]float64
		want   string
	}{
		{false, map[grid.SiteID]float64{here: 1, mid: 9}, "200>c"}, // the best fit
		{true, map[grid.SiteID]float64{here: 1, mid: 9}, "200>a"},
		{true, map[grid.SiteID]float64{here: 3, mid: 1}, "200>c"},
		{true, map[grid.SiteID]float64{here: 2}, "200>c"}, // the same, and the best fit
		{true, nil, "200>c"},
	} {
		r := newRig(t, func(cfg *Config) { cfg.Prices, cfg.Share = c.prices, .1 })
		r.comes(here, big, mid)
		for site, cores := range map[grid.SiteID]int64{here: 4, mid: 2, big: 8} {
			price, priced := c.of[site]
			msg := protocol.Bookings{
				Term: r.term, Number: 1, Whole: true, Priced: priced, Price: price,
				Capacity: grid.Resources{MilliCPUs: cores * 1000},
			}
			if msg.Works = msg.Capacity; site == big {
				msg.Held = []protocol.Booking{places(0, 2, 20*time.Minute)}
			}
			r.do(step.MessageReceived{From: site, Message: msg})
		}
		r.takeOver() // it is a fact
		r.comes(here, mid)
		wantMoves(t, r.wait(time.Minute), c.want)
	}
}

// Who would be hit harder moves first, if the owner says so.
func TestFinesDecideWhoMovesFirst(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Fines = map[grid.SiteID]float64{"rich": 5} })
	r.comes(here, big)
	r.says(here, 2)
	second := places(1, 2, 20*time.Minute)
	second.Submitter = "rich"
	r.says(big, 4, places(0, 2, 20*time.Minute), second)
	r.do(step.PeerGone{Site: big})
	out := r.wait(r.cfg.Grace + time.Second)
	wantMoves(t, out, "200>")
	if got, _ := told(out, "rich", big); !slices.Equal(got, []string{"201>a"}) {
		t.Errorf("told %v", got)
	}
}

// Data that cannot be there in time, and a run that takes longer than there is space, keep a task
// from a site.
func TestDataAndSpeedCount(t *testing.T) {
	r := newRig(t, nil)
	far, slow := grid.SiteID("far"), grid.SiteID("slow")
	r.do(step.PeerSeen{Site: big, Capability: grid.Capability{CoreMFLOPS: 4000}})
	r.do(step.PeerSeen{Site: far, Capability: grid.Capability{
		CoreMFLOPS: 4000, DownBps: 1_000_000,
	}})
	r.do(step.PeerSeen{Site: slow, Capability: grid.Capability{CoreMFLOPS: 1000}})
	r.says(far, 2)
	r.says(slow, 3, places(9, 2, 3*time.Hour))
	moving := places(0, 2, 20*time.Minute)
	moving.DataBytes = 1 << 30 // 2 h 23 min
	r.says(big, 8, moving)
	r.do(step.PeerGone{Site: big})
	wantMoves(t, r.wait(r.cfg.Grace+time.Second), "200>slow")
	moving.Scales = true // 4 h there
	r.do(step.PeerSeen{Site: big, Capability: grid.Capability{CoreMFLOPS: 4000}})
	r.says(big, 8, moving)
	r.do(step.PeerGone{Site: big})
	wantMoves(t, r.wait(r.cfg.Grace+time.Second), "200>")
}

// A message that goes on from one that was lost is not taken, and all is asked for again; what
// comes twice is answered twice and taken once.
func TestWhatIsMissingIsAskedForAgain(t *testing.T) {
	r := newRig(t, nil)
	r.comes(mid)
	send := func(m protocol.Bookings) protocol.Booked {
		m.Term = r.term
		for _, e := range r.do(step.MessageReceived{From: mid, Message: m}) {
			if s, is := e.(step.Send); is {
				return s.Message.(protocol.Booked)
			}
		}
		return protocol.Booked{}
	}
	one := []protocol.Booking{places(0, 1, time.Hour)}
	two := []protocol.Booking{places(1, 1, time.Hour)}
	for _, c := range []struct {
		msg  protocol.Bookings
		want protocol.Booked
		have int
	}{
		{protocol.Bookings{Number: 5, Held: one}, protocol.Booked{Number: 5, Again: true}, 0},
		{protocol.Bookings{Number: 6, Whole: true, Held: one}, protocol.Booked{Number: 6}, 1},
		{protocol.Bookings{Number: 7, Held: two}, protocol.Booked{Number: 7}, 2},
		{protocol.Bookings{Number: 7, Held: two}, protocol.Booked{Number: 7}, 2},
		{protocol.Bookings{Number: 6, Whole: true}, protocol.Booked{Number: 6}, 2},
		{protocol.Bookings{Number: 9}, protocol.Booked{Number: 9, Again: true}, 2},
		{
			protocol.Bookings{Number: 8, Gone: []grid.AttemptID{attempt(0)}},
			protocol.Booked{Number: 8},
			1,
		},
	} {
		c.want.Term = r.term
		if got := send(c.msg); got != c.want {
			t.Errorf("number %d: answered %+v, want %+v", c.msg.Number, got, c.want)
		}
		if got := len(r.m.sites[mid].bookings); got != c.have {
			t.Errorf("number %d: %d bookings, want %d", c.msg.Number, got, c.have)
		}
	}
	r.term++ // said to another controller
	if got := send(protocol.Bookings{Number: 20, Whole: true}); got != (protocol.Booked{}) {
		t.Errorf("answered %+v for another term", got)
	}
}

// Nobody makes the controller hold more than it has promised itself.
func TestSitesAndBookingsAreBounded(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSites, c.MaxBookings = 3, 4 })
	var many []protocol.Booking
	for i := range 6 {
		many = append(many, places(i, 1, time.Hour))
	}
	r.comes("s1", "s2", "s3", "s4")
	r.says("s1", 100, many...)
	r.says("s5", 100, many...)
	if got := r.m.Status(); len(got.Sites) != 3 || got.Sites[0].Bookings != 4 {
		t.Errorf("%+v", got.Sites)
	}
	r.do(step.BansChanged{Banned: []grid.SiteID{"s1"}})
	r.says("s1", 100, many...)
	if got := r.m.Status(); len(got.Sites) != 2 {
		t.Errorf("with one banned: %+v", got.Sites)
	}
}

// A site that claims to have promised far more than it has makes nobody else leave earlier: it
// counts for what it has.
func TestALiarCountsForWhatItHas(t *testing.T) {
	interval := func(claims int) time.Duration {
		r := three(t, nil)
		var lies []protocol.Booking
		for i := range claims {
			lies = append(lies, places(100+i, 2, 5*time.Hour))
		}
		r.says(mid, 2, lies...)
		r.do(step.PeerGone{Site: big})
		r.wait(r.cfg.Grace + time.Second)
		return r.m.Status().Before
	}
	if honest, lied := interval(1), interval(500); honest != lied || honest == 0 {
		t.Errorf("interval %s, with lies %s", honest, lied)
	}
}

// What is over is forgotten, and so is a site that is gone and has promised nothing.
func TestWhatIsOverIsForgotten(t *testing.T) {
	r := three(t, nil)
	r.do(step.PeerGone{Site: big})
	r.do(step.PeerGone{Site: mid})
	r.wait(12 * time.Hour)
	got := r.m.Status()
	if len(got.Sites) != 1 || len(r.facts.All()) != 1 || len(r.timers) != 0 {
		t.Errorf("%+v, %d facts, timers %v", got.Sites, len(r.facts.All()), r.timers)
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Here = "" }, func(c *Config) { c.Weight = .5 },
		func(c *Config) { c.Share = 1.1 }, func(c *Config) { c.Slot = time.Millisecond },
		func(c *Config) { c.Grace = -1 }, func(c *Config) { c.MaxSites = 0 },
		func(c *Config) { c.MaxBookings = 0 },
		func(c *Config) { c.Fines = map[grid.SiteID]float64{"x": -1} },
	} {
		c := Default(here)
		change(&c)
		if _, err := New(c); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestFactsThatAreRefused(t *testing.T) {
	site := step.NewFact(factSite, "b", siteFact{})
	good := bookingFact{Submitter: user, StartMS: 1, EndMS: 2}
	at := bookingKey("b", attempt(0))
	for name, f := range map[string]step.Fact{
		"kind":      step.NewFact("moon/1", "b", 1),
		"no site":   step.NewFact(factBooking, bookingKey("x", attempt(0)), good),
		"attempt":   step.NewFact(factBooking, "x b", good),
		"order":     step.NewFact(factBooking, at, bookingFact{Submitter: user}),
		"submitter": step.NewFact(factBooking, at, bookingFact{EndMS: 1}),
		"site":      step.NewFact(factSite, "", siteFact{}),
		"works":     step.NewFact(factSite, "c", siteFact{Works: grid.Resources{MilliCPUs: 1}}),
	} {
		m, _ := New(Default(here))
		err := m.Restore(step.EncodeFacts([]step.Fact{site, f}))
		if !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, _ := New(Default(here))
	facts := []step.Fact{step.NewFact(FactGroup, "settings", 1), site}
	if err := m.Restore(step.EncodeFacts(facts)); err != nil || m.Check() != nil {
		t.Errorf("the group's own facts: %v, %v", err, m.Check())
	}
}
