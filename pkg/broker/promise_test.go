package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// fixed is a job that starts in half an hour and at no other time.
func (b *bench) fixed(count uint32) grid.Job {
	j := testJob(count)
	j.Spec.Window.At = b.now.Add(30 * time.Minute)
	return j
}

// due is a job that has to end within an hour.
func (b *bench) due(count uint32) grid.Job {
	j := testJob(count)
	j.Spec.Window.Deadline = b.now.Add(time.Hour)
	return j
}

// firm lets a site hold what it was asked for, with another number than before.
func (b *bench) firm(id grid.JobID, site grid.SiteID, o grid.Offer) []step.Effect {
	b.Helper()
	o.Firm = true
	return b.hear(site, protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: o})
}

// lasting is an offer whose task starts after a wait and then runs for so long.
func lasting(id uint64, distance float64, wait, run time.Duration) grid.Offer {
	o := offer(id, distance, 1)
	o.Parts.Wait, o.Parts.Run = wait, run
	return o
}

func (b *bench) accept(
	site grid.SiteID, id grid.JobID, index uint32, token grid.Token,
) []step.Effect {
	b.Helper()
	return b.hear(site, protocol.Accepted{
		Attempts: []grid.AttemptID{attemptOf(id, index, token)}, Renewal: 1,
	})
}

// "For each scheduling operation the JBS must conduct the following operations: Try to
// reserve resources at three sites using the ARS (3 ARS requests). Start job at the
// resource with shortest expected delay (1 ARS request). Cancel other reservations
// (2 ARS request)." (Migol, section 7, of what 6.2.1 describes)
func TestMigolSubmission(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c", "d")
	id := b.submit(b.due(1))
	effects := b.offers(id, 1, "a", "b", "c", "d") // discovery, matching: who fits has answered
	effects = append(effects, b.refusal(id, self, false)...)
	to, holds := sent[protocol.HoldOffer](effects) // ranking: the nearest three
	if fmt.Sprint(to) != "[a b c]" ||
		holds[2] != (protocol.HoldOffer{Job: id, Seq: 1, OfferID: 3, Tasks: 1, Clock: b.now}) {
		t.Fatalf("asked %v to hold: %+v, want the top three", to, holds)
	}
	effects = append(effects, b.firm(id, "a", lasting(11, 1, 9*time.Minute, time.Minute))...)
	effects = append(effects, b.firm(id, "b", lasting(12, 2, time.Minute, time.Minute))...)
	effects = append(effects, b.firm(id, "c", lasting(13, 3, 2*time.Minute, time.Minute))...)
	site, award := one[protocol.Award](t, effects)
	if site != "b" || award.OfferID != 12 || award.HasNext {
		t.Fatalf("awarded offer %d of %s, runner-up %v; want b's firm offer and no further quote",
			award.OfferID, site, award.HasNext)
	}
	cancelled, clears := sent[protocol.Clear](effects)
	if fmt.Sprint(cancelled) != "[a c]" || clears[0].Kind != protocol.ClearPlaced {
		t.Fatalf("cancelled at %v: %+v, want a and c", cancelled, clears)
	}
	if len(holds) != 3 || len(clears) != 2 {
		t.Errorf("%d reservations, %d cancellations, want 3 and 2", len(holds), len(clears))
	}
	// All sites are told only once the site has acknowledged: that word could
	// overtake the award.
	if to, _ := one[protocol.Clear](t, b.accept("b", id, 0, 1)); to != "*" {
		t.Errorf("that it is placed was said to %s", to)
	}
}

// "Using the returned start time all accepted requests can be compared based on the
// shortest expected delay. For the top resource the broker commits the reservation.
// All other reservations are cancelled." (Migol 6.2.1)
func TestShortestExpectedDelayAmongFirmOffers(t *testing.T) {
	const minute = time.Minute
	for name, c := range map[string]struct {
		job    func(*bench) grid.Job
		offers [3]grid.Offer // firm ones of a, b and c
		want   grid.SiteID
	}{
		"the earliest finish": {
			(*bench).due1,
			[3]grid.Offer{
				lasting(11, 1, minute, 9*minute), lasting(12, 2, 2*minute, 9*minute),
				lasting(13, 3, 3*minute, 2*minute),
			},
			"c",
		},
		"nearest among equals": {
			(*bench).due1,
			[3]grid.Offer{lasting(11, 5, 0, minute), lasting(12, 2, 0, minute), lasting(13, 3, 0, minute)},
			"b",
		},
		"a fixed start is the same everywhere": {
			(*bench).fixed1,
			[3]grid.Offer{
				lasting(11, 1, 30*minute, 9*minute), lasting(12, 2, 29*minute, minute),
				lasting(13, 3, 0, minute),
			},
			"a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b", "c")
			id := b.submit(c.job(b))
			b.offers(id, 1, "a", "b", "c")
			b.refusal(id, self, false)
			for i, site := range []grid.SiteID{"a", "b", "c"} {
				b.firm(id, site, c.offers[i])
			}
			if to, award := one[protocol.Award](t, b.last); to != c.want || award.OfferID < 11 {
				t.Errorf("awarded %d of %s, want %s", award.OfferID, to, c.want)
			}
		})
	}
}

func (b *bench) due1() grid.Job   { return b.due(1) }
func (b *bench) fixed1() grid.Job { return b.fixed(1) }

func TestWhoRefusesToHoldIsReplacedByTheNext(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c", "d", "e")
	id := b.submit(b.fixed(1))
	b.offers(id, 1, "a", "b", "c", "d", "e")
	b.refusal(id, self, false)
	if to, _ := sent[protocol.HoldOffer](b.refusal(id, "b", false)); fmt.Sprint(to) != "[d]" {
		t.Fatalf("asked %v, want d", to)
	}
	if to, _ := sent[protocol.HoldOffer](b.do(step.PeerGone{Site: "a"})); fmt.Sprint(to) != "[e]" {
		t.Fatalf("asked %v when a was gone, want e", to)
	}
	b.firm(id, "d", offer(14, 4, 1))
	b.firm(id, "c", offer(13, 3, 1))
	effects := b.pass(b.m.cfg.AwardWindow) // e is silent
	if to, _ := one[protocol.Award](t, effects); to != "c" {
		t.Errorf("awarded to %s, want c", to)
	}
	if to, _ := sent[protocol.Clear](effects); fmt.Sprint(to) != "[d]" {
		t.Errorf("cancelled at %v, want d", to)
	}
	// A site that answers after the decision holds for nothing, too; what is said twice is not.
	if to, _ := one[protocol.Clear](t, b.firm(id, "e", offer(15, 5, 1))); to != "e" {
		t.Errorf("cancelled at %s, want e", to)
	}
	if to, _ := sent[protocol.Clear](b.firm(id, "c", offer(13, 3, 1))); len(to) != 0 {
		t.Errorf("the award's own offer, said again, is cancelled at %v", to)
	}
	b.accept("c", id, 0, 1)
	b.wantPhase(id, 0, grid.PhaseStaging)
}

// Others were faster everywhere: all sites are asked again right away, twice.
func TestNobodyHolds(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(b.fixed(1))
	for round := range 3 {
		b.offers(id, 1, "a", "b")
		b.refusal(id, self, false)
		b.refusal(id, "a", false)
		effects := b.refusal(id, "b", false)
		again, _ := sent[protocol.Reannounce](effects)
		if round < 2 && len(again) == 0 {
			t.Fatalf("round %d: nobody is asked again right away: %+v", round, effects)
		}
	}
	b.wantPhase(id, 0, grid.PhaseRefused)
}

func TestAnArrayIsHeldUntilItSuffices(t *testing.T) {
	names := manySites(10)
	b := newBench(t, nil, names...)
	id := b.submit(b.due(9))
	effects := b.offers(id, 2, names...)
	effects = append(effects, b.refusal(id, self, false)...)
	to, holds := sent[protocol.HoldOffer](effects)
	if len(to) != 5 || holds[0].Tasks != 2 {
		t.Fatalf("asked %v for %d each, want five sites for 2", to, holds[0].Tasks)
	}
	effects = nil
	for i, site := range to {
		// Each holds fewer than it had offered.
		effects = append(effects, b.firm(id, site, offer(uint64(20+i), float64(i), 1))...)
	}
	more, _ := sent[protocol.HoldOffer](effects)
	if len(more) != 2 { // for 2 each: four are missing when the last of the five has answered
		t.Fatalf("asked %v besides, want two more", more)
	}
	for i, site := range more {
		effects = append(effects, b.firm(id, site, offer(uint64(30+i), float64(10+i), 2))...)
	}
	placed := 0
	for _, a := range awards(effects) {
		placed += len(a.Tasks)
	}
	if placed != 9 || len(b.m.jobs.all[id].waiting) != 0 {
		t.Errorf("%d of 9 tasks are placed", placed)
	}
}

// No site can promise it and all have answered: it is refused right away, and the
// answers say what could be kept.
func TestWhatNobodyPromisesIsRefusedAtOnce(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	job := b.fixed(1)
	id := b.submit(job)
	say := func(site grid.SiteID) {
		b.hear(site, protocol.Refuse{
			Job: id, Seq: 1, Refusal: grid.Refusal{Reason: grid.ReasonWindow, Want: 1800, Have: 2400},
		})
	}
	say("a")
	say("b")
	b.wantPhase(id, 0, grid.PhaseAnnounced)
	say(self)
	b.wantPhase(id, 0, grid.PhaseRefused)
	s, _ := b.m.Job(id)
	if len(s.Answers) != 3 ||
		!strings.Contains(s.Answers[0].Refusal.Explain(), "could be promised in 40m0s") {
		t.Errorf("the answers are %+v", s.Answers)
	}
	b.restart("a", "b") // the answers are gone, and the reason is not
	b.wantText(id, 0, "could be promised in 40m0s")
}

// Of the reasons that sites give for refusing a job, it ends with the most frequent one.
func TestARefusedJobSaysWhy(t *testing.T) {
	offered := grid.Offer{}
	for _, c := range []struct {
		say  map[grid.SiteID]Answer
		want string
	}{
		{nil, "no site could hold"},
		{map[grid.SiteID]Answer{"a": {Offer: &offered}}, "no site could hold"},
		{map[grid.SiteID]Answer{
			"a": {Refusal: grid.Refusal{Reason: grid.ReasonPaused}}, "b": {Offer: &offered},
			"c": {Refusal: grid.Refusal{Reason: grid.ReasonWindow}},
			"d": {Refusal: grid.Refusal{Reason: grid.ReasonWindow}},
		}, grid.ReasonWindow.String()},
		{map[grid.SiteID]Answer{
			"a": {Refusal: grid.Refusal{Reason: grid.ReasonAvailability}},
			"b": {Refusal: grid.Refusal{Reason: grid.ReasonWindow}},
			"c": {Refusal: grid.Refusal{Reason: grid.ReasonWindow}},
		}, grid.ReasonAvailability.String()},
	} {
		if got := (&job{enquiry: enquiry{answers: c.say}}).refusal(); !strings.Contains(got, c.want) {
			t.Errorf("%+v: says %q, want %q", c.say, got, c.want)
		}
	}
}

// A member that answers nothing delays a refusal for one round more.
func TestASilentMemberIsNotAwaitedForEver(t *testing.T) {
	b := newBench(t, nil, "a", "mute")
	id := b.submit(b.fixed(1))
	b.refusal(id, "a", false)
	b.refusal(id, self, false)
	b.pass(time.Second)
	b.wantPhase(id, 0, grid.PhaseWaiting)
	for range 20 {
		if b.m.jobs.all[id].round() != nil {
			b.refusal(id, "a", false)
			b.refusal(id, self, false)
			break
		}
		b.pass(100 * time.Millisecond)
	}
	b.wantPhase(id, 0, grid.PhaseRefused)
}

func TestWindowsThatAreOverAreRefusedBySubmit(t *testing.T) {
	b := newBench(t, nil, "a")
	for field, w := range map[string]grid.Window{
		"start": {At: b.now}, "deadline": {Deadline: b.now.Add(-time.Second)},
	} {
		job := testJob(1)
		job.Spec.Window = w
		for _, e := range b.do(step.Submit{Command: 1, Job: job}) {
			r, is := e.(step.Reply)
			if !is || !errors.Is(r.Err, grid.ErrInvalid) || !strings.Contains(r.Err.Error(), field+": ") ||
				!strings.Contains(r.Err.Error(), "name a later time") {
				t.Errorf("%s: %+v, want an error with field and remedy", field, e)
			}
		}
	}
}

// placed brings a promised job to its site's plan.
func (b *bench) placed(job grid.Job, site grid.SiteID) grid.JobID {
	b.Helper()
	id := b.submit(job)
	b.place(id, site)
	return id
}

// place answers the round under way: only one site offers.
func (b *bench) place(id grid.JobID, site grid.SiteID) {
	b.Helper()
	others := append(b.m.peers.connected(), self)
	for _, other := range slices.DeleteFunc(others, func(s grid.SiteID) bool { return s == site }) {
		b.refusal(id, other, false)
	}
	o := offer(21, 1, 1)
	o.Parts.Z = 0.03
	b.hear(site, protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: o})
	o.ID = 22
	b.firm(id, site, o)
	_, award := one[protocol.Award](b.T, b.last)
	b.accept(site, id, award.Tasks[0].Index, award.Tasks[0].Token)
}

func TestPlannedStartAndWhetherItIsKeptAreKnown(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	job := b.fixed(1)
	id := b.placed(job, "a")
	b.hear("a", protocol.Progress{
		Attempt: attemptOf(id, 0, 1), Phase: grid.PhaseStaging, StartsIn: 30 * time.Minute,
	})
	check := func(when string) {
		t.Helper()
		s, _ := b.m.Job(id)
		if got := s.Tasks[0]; !got.PlannedStart.Equal(job.Spec.Window.At) || got.Kept != 0.97 {
			t.Errorf("%s: planned for %s, kept with %v", when, got.PlannedStart, got.Kept)
		}
	}
	check("placed")
	again := New(b.m.cfg)
	if err := again.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	b.m = again
	check("restored")
	b.do(step.Boot{Incarnation: 2})
	b.hear("a", protocol.Renew{Renewal: 2, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}})
	b.hear("a", protocol.Progress{Attempt: attemptOf(id, 0, 1), Phase: grid.PhaseRunning})
	if s, _ := b.m.Job(id); !s.Tasks[0].PlannedStart.IsZero() {
		t.Error("it runs, and its start is still ahead")
	}
}

// A site that can no longer keep its promise says so: another one is looked for, for
// the same instant, as long as that is ahead; and then it has failed.
func TestALostPromiseIsLookedForElsewhere(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.fixed(1), "a")
	lost := grid.Exit{Cause: grid.CauseStopped, Text: "an outage"}
	b.hear("a", protocol.Exited{Attempt: attemptOf(id, 0, 1), Exit: lost})
	b.wantPhase(id, 0, grid.PhaseAnnounced)
	b.place(id, "b")
	b.hear("b", protocol.Exited{Attempt: attemptOf(id, 0, 2), Exit: lost})
	b.refusal(id, "a", false)
	b.refusal(id, "b", false)
	b.refusal(id, self, false)
	b.wantPhase(id, 0, grid.PhaseWaiting) // it was promised once: not refused
	b.pass(30*time.Minute - time.Millisecond)
	if got := b.phase(id, 0); got.Ended() {
		t.Fatalf("ended as %s before its time", got)
	}
	b.pass(time.Millisecond)
	b.wantPhase(id, 0, grid.PhaseFailed)
	s, _ := b.m.Job(id)
	passed := "its start at 2026-03-01T12:30:00Z has passed"
	if text := s.Tasks[0].Exit.Text; !strings.Contains(text, passed) {
		t.Errorf("it ended with %q", text)
	}
}

// It may be this site that is cut off: the attempt is frozen there, or runs.
func TestAnAttemptMayReturnAfterItsStart(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.fixed(1), "a")
	b.now = b.now.Add(30 * time.Minute)
	lease := step.TimerKey{Name: timerLease, ID: attemptOf(id, 0, 1).String()}
	b.timers[lease] = b.now.Add(5 * time.Second)
	b.hear("a", protocol.Renew{Renewal: 2, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}})
	b.hear("a", protocol.Progress{Attempt: attemptOf(id, 0, 1), Phase: grid.PhaseRunning})
	b.gone(false, "a", "b")
	b.pass(2 * time.Minute) // nobody says a word
	b.do(step.PeerSeen{Site: "a"})
	b.do(step.PeerSeen{Site: "b"})
	b.hear("a", protocol.Renew{Renewal: 3, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}})
	b.wantPhase(id, 0, grid.PhaseRunning)

	b.do(step.PeerGone{Site: "a"}) // now a alone is away
	b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin)
	for range 30 {
		b.hear("b", protocol.Renew{Renewal: 4, Attempts: []grid.AttemptID{attemptOf(id, 0, 99)}})
		b.pass(time.Second)
	}
	b.pass(maxAway - time.Minute)
	b.wantPhase(id, 0, grid.PhaseWaiting) // it had begun: a may come with its result
	b.pass(time.Minute)
	b.wantPhase(id, 0, grid.PhaseFailed)
}

// Holds are no facts: after a restart they expire by themselves, or are given back
// when they are heard of, and the job is announced again.
func TestARestartBetweenHoldAndAward(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(b.due(1))
	b.offers(id, 1, "a", "b")
	b.refusal(id, self, false)
	seq := b.m.jobs.all[id].seq
	b.firm(id, "a", offer(11, 1, 1))
	b.restart("a", "b")
	late := offer(12, 2, 1)
	late.Firm = true
	bid := protocol.Bid{Job: id, Seq: seq, Offer: late}
	if to, _ := one[protocol.Clear](t, b.hear("b", bid)); to != "b" {
		t.Errorf("given back to %s", to)
	}
	if len(awards(b.last)) != 0 {
		t.Error("awarded to a hold of the run before")
	}
	b.pass(2 * time.Second) // those who were seen to come were asked
	for b.m.jobs.all[id].round() == nil {
		b.pass(time.Second)
	}
	b.place(id, "b")
	b.wantPhase(id, 0, grid.PhaseStaging)
	b.do(step.CancelJob{Command: 3, Job: id})
	if to, c := one[protocol.Clear](t, b.firm(id, "a", offer(13, 1, 1))); to != "a" ||
		c.Kind != protocol.ClearEnded {
		t.Errorf("what is held for a job that has ended was answered with %d to %s", c.Kind, to)
	}
}
