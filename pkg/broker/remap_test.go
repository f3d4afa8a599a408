package broker

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// silent is a reservation at a, which falls silent; c is the controller of term 3.
func silent(t *testing.T) (*bench, grid.JobID) {
	t.Helper()
	b := newBench(t, nil, "a", "b", "c")
	id := b.placed(b.reservation(), "a")
	b.renew("a", id, 1)
	b.do(step.Controller{Site: "c", Term: 3})
	b.pass(5 * time.Second)
	b.do(step.PeerGone{Site: "a"})
	return b, id
}

// remap is the controller's word on a.
func remap(all ...protocol.RemapMove) protocol.Remap {
	return protocol.Remap{Term: 3, Number: 1, Site: "a", Before: time.Hour, Moves: all}
}

func leaves(id grid.JobID, to grid.SiteID) protocol.RemapMove {
	return protocol.RemapMove{Task: grid.TaskID{Job: id}, To: to}
}

func askedAll(effects []step.Effect) int {
	_, again := sent[protocol.Reannounce](effects)
	_, anew := sent[protocol.Announce](effects)
	return len(again) + len(anew)
}

// overLease lets the lease of a reservation end.
func (b *bench) overLease() []step.Effect { return b.pass(time.Minute + b.m.cfg.LeaseMargin) }

// What the controller does not name stays at its silent site until the guard before its start; its
// owner can see that.
func TestWhatIsNotNamedStaysUntilItsStartIsNear(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap())
	if n := askedAll(b.overLease()); n != 0 {
		t.Fatalf("%d announcements", n)
	}
	b.wantPhase(id, 0, grid.PhaseStaging)
	s, _ := b.m.Job(id)
	if s.Tasks[0].PromiseNote == "" {
		t.Error("its owner is not told")
	}
	guard := s.Job.Spec.Window.At.Add(-b.m.cfg.RemapGuard)
	if n := askedAll(b.pass(guard.Sub(b.now) - time.Second)); n != 0 {
		t.Errorf("%d announcements before the guard", n)
	}
	if n := askedAll(b.pass(2 * time.Second)); n == 0 {
		t.Error("its start is near, and nobody is asked")
	}
}

// A site that is back goes on with what stayed there.
func TestWhatStayedGoesOnWhereItWas(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap())
	b.overLease()
	b.do(step.PeerSeen{Site: "a"})
	if _, lease := one[protocol.Lease](t, b.renew("a", id, 1)); lease.Duration != time.Minute {
		t.Errorf("a lease of %s", lease.Duration)
	}
	s, _ := b.m.Job(id)
	if s.Tasks[0].PromiseNote != "" || s.Tasks[0].Token != 1 {
		t.Errorf("%+v", s.Tasks[0])
	}
	b.hear("c", remap(leaves(id, "b"))) // it was on its way: the site answers
	b.pass(50 * time.Second)
	b.renew("a", id, 1)
	b.pass(50 * time.Second)
	b.wantPhase(id, 0, grid.PhaseStaging)
	b.hear("c", remap()) // and once more
	b.overLease()
	b.wantPhase(id, 0, grid.PhaseStaging)
	if s, _ := b.m.Job(id); s.Tasks[0].PromiseNote == "" {
		t.Error("its owner is not told the second time")
	}
}

// holdsFor lets b and c offer for a reservation that is looked for, and the first one that is asked
// hold what it has offered.
func (b *bench) holdsFor(id grid.JobID) (at grid.SiteID) {
	b.Helper()
	b.hear("c", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(41, .1, 1)})
	effects := b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(42, 9, 1)})
	effects = append(effects, b.refusal(id, self, false)...)
	at, _ = one[protocol.HoldOffer](b.T, effects)
	b.firm(id, at, offer(50, 1, 1))
	return at
}

// neverTwice lets a time pass in which the lease of a reservation lasts, and the sites that are
// asked hold what they have offered for longer. It counts how often they are.
func (b *bench) neverTwice(id grid.JobID, d time.Duration) (asked int) {
	b.Helper()
	for end := b.now.Add(d); b.now.Before(end); {
		effects := b.pass(time.Second)
		if to, _ := sent[protocol.Award](effects); len(to) > 0 {
			b.Fatalf("awarded to %v while its lease lasts", to)
		}
		to, _ := sent[protocol.HoldOffer](effects)
		for _, site := range to {
			asked++
			b.firm(id, site, offer(uint64(70+asked), 1, 1))
		}
	}
	return asked
}

// For what is named a place is held in no time, at the site that is named before nearer ones, and
// for as long as its lease lasts; it is awarded when that is over and not before.
func TestWhatIsNamedHasAPlaceBeforeItsLeaseIsOver(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap(leaves(id, "b")))
	if n := askedAll(b.pass(time.Millisecond)); n == 0 {
		t.Fatal("nobody is asked")
	}
	if at := b.holdsFor(id); at != "b" {
		t.Errorf("%s is asked to hold, want b", at)
	}
	if n := b.neverTwice(id, 55*time.Second); n != 2 {
		t.Errorf("b was asked %d times to go on, want 2: an offer holds for 30 s", n)
	}
	if s, _ := b.m.Job(id); s.Tasks[0].PromiseNote != noteHeld {
		t.Errorf("its owner is told %q", s.Tasks[0].PromiseNote)
	}
	to, award := one[protocol.Award](t, b.pass(time.Second))
	if to != "b" || award.OfferID != 72 || award.Tasks[0].Token <= 1 {
		t.Errorf("awarded to %s: %+v", to, award)
	}
	if n := b.faultIndex("a"); n != 1 {
		t.Errorf("the fault index of its site is %d", n)
	}
}

// If the named site cannot hold it others are asked.
func TestAnotherSiteThanTheNamedOneMayHoldIt(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap(leaves(id, "b")))
	b.pass(time.Millisecond)
	b.hear("c", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(41, .1, 1)})
	b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(42, 9, 1)})
	b.refusal(id, self, false)
	effects := b.hear("b", protocol.Refuse{
		Job: id, Seq: b.m.asked(id).seq, Refusal: grid.Refusal{Reason: grid.ReasonPromised},
	})
	if to, _ := one[protocol.HoldOffer](t, effects); to != "c" {
		t.Errorf("%s is asked to hold, want c", to)
	}
	b.firm(id, "c", offer(43, .1, 1))
	b.neverTwice(id, 55*time.Second)
	if to, _ := one[protocol.Award](t, b.pass(time.Second)); to != "c" {
		t.Errorf("awarded to %s", to)
	}
}

// A site that is back while its lease lasts has its task, and what is held elsewhere is let go. It
// has failed nobody.
func TestWhoIsBackWithinItsLeaseKeepsItsTask(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap(leaves(id, "b")))
	b.pass(time.Millisecond)
	b.holdsFor(id)
	b.neverTwice(id, 20*time.Second)
	b.do(step.PeerSeen{Site: "a"})
	effects := b.renew("a", id, 1)
	if _, lease := one[protocol.Lease](t, effects); lease.Duration != time.Minute {
		t.Errorf("a lease of %s", lease.Duration)
	}
	if to, _ := sent[protocol.Clear](effects); !slices.Contains(to, "b") {
		t.Errorf("%v are to let go, want b", to)
	}
	b.wantPhase(id, 0, grid.PhaseStaging)
	b.neverTwice(id, 55*time.Second)
	if s, _ := b.m.Job(id); s.Tasks[0].PromiseNote != "" || b.faultIndex("a") != 0 {
		t.Errorf("%+v, fault index %d", s.Tasks[0], b.faultIndex("a"))
	}
	if n := askedAll(b.overLease()); n == 0 {
		t.Error("it is silent again, and nobody is asked")
	}
}

// Who has no other place hears so from the controller's word on.
func TestWhoIsStuckHearsImmediately(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap(leaves(id, "")))
	effects := b.pass(time.Millisecond)
	s, _ := b.m.Job(id)
	if s.Tasks[0].PromiseNote != noteGone {
		t.Errorf("the owner is told %q", s.Tasks[0].PromiseNote)
	}
	if n := askedAll(effects); n == 0 {
		t.Error("nobody is asked")
	}
	b.neverTwice(id, 30*time.Second)
	b.do(step.PeerSeen{Site: "a"})
	b.renew("a", id, 1)
	b.wantPhase(id, 0, grid.PhaseStaging)
	if s, _ = b.m.Job(id); s.Tasks[0].PromiseNote != "" {
		t.Errorf("it is back, and its owner is told %q", s.Tasks[0].PromiseNote)
	}
}

// Nothing leaves early whose site is there for its submitter, or that would begin within its lease.
func TestWhatDoesNotLeaveEarly(t *testing.T) {
	b, id := silent(t)
	b.do(step.PeerSeen{Site: "a"})
	b.hear("c", remap(leaves(id, "b")))
	if n := askedAll(b.pass(50 * time.Second)); n != 0 {
		t.Errorf("its site is there, and %d are asked", n)
	}
	if n := askedAll(b.overLease()); n == 0 {
		t.Error("its lease is over, and nobody is asked")
	}

	b = newBench(t, nil, "a", "b", "c")
	job := b.reservation()
	job.Spec.Window.At = b.now.Add(40 * time.Second)
	id = b.placed(job, "a")
	b.renew("a", id, 1)
	b.do(step.Controller{Site: "c", Term: 3})
	b.do(step.PeerGone{Site: "a"})
	b.hear("c", remap(leaves(id, "")))
	if n := askedAll(b.pass(time.Millisecond)); n != 0 {
		t.Errorf("its site may begin it, and %d are asked", n)
	}
	b.wantPhase(id, 0, grid.PhaseStaging)
}

// A submitter that is restarted meanwhile waits for the lease that it presumes.
func TestARestartedSubmitterWaitsForTheLease(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap(leaves(id, "b")))
	b.pass(time.Millisecond)
	b.holdsFor(id)
	b.restart("b") // which is asked as soon as it is there
	effects := b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(60, 1, 1)})
	one[protocol.HoldOffer](t, effects)
	b.firm(id, "b", offer(61, 1, 1))
	b.neverTwice(id, 55*time.Second)
	one[protocol.Award](t, b.pass(10*time.Second))
}

// What stayed and is named later leaves then.
func TestWhatIsNamedLaterLeavesLater(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap())
	b.overLease()
	b.hear("c", remap(leaves(id, "")))
	if n := askedAll(b.pass(time.Millisecond)); n == 0 {
		t.Error("it is named, and nobody is asked")
	}
	b.wantPhase(id, 0, grid.PhaseAnnounced)
}

// short is a reservation at a, which is there and has promised more than it has; c is the
// controller.
func short(t *testing.T) (*bench, grid.JobID) {
	t.Helper()
	b := newBench(t, nil, "a", "b", "c")
	id := b.placed(b.reservation(), "a")
	b.renew("a", id, 1)
	b.do(step.Controller{Site: "c", Term: 3})
	return b, id
}

// partly is the controller's word on a, of which a part has failed.
func partly(all ...protocol.RemapMove) protocol.Remap {
	msg := remap(all...)
	msg.Partly = true
	return msg
}

// found lets all sites answer the enquiry for what is to move: b offers, or none does.
func (b *bench) found(offers bool) []step.Effect {
	b.Helper()
	var scout grid.JobID
	for _, p := range b.m.probes {
		scout = p.id
	}
	for _, site := range []grid.SiteID{"a", "c", self} {
		b.refusal(scout, site, false)
	}
	if !offers {
		return b.refusal(scout, "b", false)
	}
	return b.hear("b", protocol.Bid{Job: scout, Seq: b.m.asked(scout).seq, Offer: offer(31, 1, 1)})
}

// What its site cannot keep moves with its help, while its lease lasts: another site offers, its
// own ends it and says so, and the named one is asked to hold first.
func TestWhatASiteCannotKeepMovesWithItsHelp(t *testing.T) {
	b, id := short(t)
	b.hear("c", partly(leaves(id, "b")))
	b.hear("c", partly(leaves(id, "b"))) // it may be repeated
	effects := b.found(true)
	if to, ask := one[protocol.Move](t, effects); to != "a" || ask.Stop {
		t.Fatalf("%s is told %+v", to, ask)
	}
	b.renew("a", id, 1) // meanwhile
	at := attemptOf(id, 0, 1)
	effects = b.hear("a", protocol.Movable{Attempt: at})
	if to, stop := one[protocol.Move](t, effects); to != "a" || !stop.Stop {
		t.Fatalf("%s is told %+v", to, stop)
	}
	if b.phase(id, 0) != grid.PhaseStaging {
		t.Error("it has left before its site has said so")
	}
	b.hear("a", protocol.Exited{Attempt: at, Exit: grid.Exit{Cause: grid.CauseStopped}})
	b.refusal(id, "a", false)
	if to := b.holdsFor(id); to != "b" {
		t.Errorf("%s is asked to hold, want b", to)
	}
	to, award := one[protocol.Award](t, b.last)
	if to != "b" || award.Tasks[0].Token != 2 || b.faultIndex("a") != 0 {
		t.Errorf("awarded to %s: %+v; a fault index of %d", to, award, b.faultIndex("a"))
	}
}

// It stays where it is if nobody offers, if no site is known that has space, and if it is not
// named; its owner hears that its site may not keep it, and when it can again.
func TestWhatCannotMoveStays(t *testing.T) {
	b, id := short(t)
	b.hear("c", partly(leaves(id, "b")))
	if to, _ := sent[protocol.Move](b.found(false)); len(to) > 0 {
		t.Errorf("nobody offers, and %v is told", to)
	}
	note := func() string {
		s, _ := b.m.Job(id)
		return s.Tasks[0].PromiseNote
	}
	b.hear("c", partly(leaves(id, "")))
	if note() != noteShort {
		t.Errorf("its owner is told %q", note())
	}
	b.renew("a", id, 1)
	b.hear("c", partly(leaves(id, "")))
	if note() != noteShort {
		t.Errorf("a while later its owner is told %q", note())
	}
	b.hear("c", partly())
	if note() != "" {
		t.Errorf("it is kept, and its owner is told %q", note())
	}
	if n := askedAll(b.pass(time.Second)); n != 0 {
		t.Errorf("%d are asked for it", n)
	}
	b.wantPhase(id, 0, grid.PhaseStaging)
}

// Nothing stays for a controller that does not speak, of an earlier word, of another site, or is
// none.
func TestOnlyTheControllersWordHoldsATask(t *testing.T) {
	for name, c := range map[string]struct {
		from grid.SiteID
		say  func(*protocol.Remap)
	}{
		"another site":  {"b", func(*protocol.Remap) {}},
		"an older term": {"c", func(m *protocol.Remap) { m.Term = 2 }},
		"another one's": {"c", func(m *protocol.Remap) { m.Site = "b" }},
	} {
		b, id := silent(t)
		msg := remap()
		c.say(&msg)
		b.hear(c.from, msg)
		if n := askedAll(b.overLease()); n == 0 {
			t.Errorf("%s: nobody is asked", name)
		}
		b.wantPhase(id, 0, grid.PhaseAnnounced)
	}
	b, id := silent(t)
	b.hear("c", remap())
	b.overLease()
	b.wantPhase(id, 0, grid.PhaseStaging)
	if n := askedAll(append(b.do(step.Controller{}), b.pass(time.Millisecond)...)); n == 0 {
		t.Error("there is no controller any more, and nobody is asked")
	}
	b, _ = silent(t)
	b.hear("c", remap())
	b.do(step.PeerSeen{Site: "a"})
	b.pass(time.Second)
	b.renew("a", b.m.Jobs()[0], 1) // after the controller spoke
	if n := askedAll(b.overLease()); n == 0 {
		t.Error("the controller has not spoken of this silence, and nobody is asked")
	}
}

// The controller hears which of the tasks that it names are not there.
func TestTheControllerHearsWhatIsElsewhere(t *testing.T) {
	b, id := silent(t)
	other := leaves("zzzzzzzzzzzzzzzz", "b")
	effects := b.hear("c", remap(leaves(id, "b"), other))
	to, answer := one[protocol.Remapped](t, effects)
	if to != "c" || len(answer.Elsewhere) != 1 || answer.Elsewhere[0] != other.Task {
		t.Errorf("answered %s with %+v", to, answer)
	}
	b.overLease() // it waits for another site: the controller has nothing to do for it
	_, answer = one[protocol.Remapped](t, b.hear("c", remap(leaves(id, "b"))))
	if len(answer.Elsewhere) != 1 {
		t.Errorf("answered %+v", answer)
	}
}

// Who has lost its place, and finds that no site has another, is told so, once; and that it is over
// when one has.
func TestWhoHasNoOtherPlaceIsTold(t *testing.T) {
	b, id := silent(t)
	b.pass(56 * time.Second)
	said := 0
	for range 2 {
		effects := b.refusal(id, "b", false)
		effects = append(effects, b.refusal(id, "c", false)...)
		effects = append(effects, b.refusal(id, self, false)...)
		effects = append(effects, b.pass(2*time.Second)...)
		for _, e := range effects {
			if r, is := e.(step.Report); is && r.Event == eventNoOtherPlace {
				if said++; r.Reason != grid.ReasonNowhere {
					t.Errorf("because of %s", r.Reason)
				}
			}
		}
	}
	if said != 1 {
		t.Errorf("said %d times", said)
	}
	b.restart("b", "c")
	s, _ := b.m.Job(id)
	if s.Tasks[0].PromiseNote == "" {
		t.Error("forgotten over a restart")
	}
}

// A restarted submitter lets what is named leave when the lease is over that it presumes.
func TestARestartedSubmitterHearsTheControllerAgain(t *testing.T) {
	b, id := silent(t)
	b.hear("c", remap())
	b.overLease()
	b.restart("b", "c")
	b.do(step.Controller{Site: "c", Term: 3})
	b.pass(time.Second)
	b.hear("c", remap())
	b.overLease()
	b.wantPhase(id, 0, grid.PhaseStaging)
	b.hear("c", remap(leaves(id, "b")))
	b.pass(time.Millisecond)
	b.wantPhase(id, 0, grid.PhaseAnnounced)
}

// controlled does anything that may happen, with a controller that says anything, sense or
// nonsense.
func (r *rig) controlled(s source) {
	switch s.n(8) {
	case 0:
		at := []grid.SiteID{"a", "b", "", "c"}[s.n(4)]
		r.do(step.Controller{Site: at, Term: uint64(s.n(3))})
	case 1, 2:
		c := r.m.remaps.controller
		msg := protocol.Remap{
			Term: c.Term, Number: 1, Site: sites[s.n(4)], Before: time.Duration(1 + s.n(200)),
			Partly: s.n(3) == 0,
		}
		for range s.n(3) {
			msg.Moves = append(msg.Moves, protocol.RemapMove{
				Task: r.drawAttempt(s).Task, To: sites[s.n(len(sites))],
			})
		}
		if s.n(5) == 0 {
			msg.Term++
		}
		r.hear(c.Site, msg)
	default:
		r.act(s)
	}
}

// Whatever a controller says: no task is awarded while a lease of it lasts, and nothing else is
// broken that the rig checks.
func TestAControllerMaySayAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, nil)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			r.controlled(rapidSource{t})
		}
	})
}

func FuzzController(f *testing.F) {
	f.Add([]byte{0, 0, 1, 3, 0, 0, 5, 0, 1, 1, 1, 2, 0, 9, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 512 {
			return
		}
		s := &bytesSource{data}
		r := newRig(t, nil)
		for len(s.left) > 0 {
			r.controlled(s)
		}
	})
}
