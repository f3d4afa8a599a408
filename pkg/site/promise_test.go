package site

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// at fixes the start so long after the epoch.
func at(d time.Duration) func(*grid.Spec) {
	return func(s *grid.Spec) { s.Window.At = epoch().Add(d) }
}

// by sets a deadline so long after the epoch.
func by(d time.Duration) func(*grid.Spec) {
	return func(s *grid.Spec) { s.Window.Deadline = epoch().Add(d) }
}

// cores asks for so many cores, and as much of everything.
func cores(n int64) func(*grid.Spec) {
	return func(s *grid.Spec) {
		s.Need = grid.Resources{MilliCPUs: n * 1_000, MemoryBytes: n << 30, MFLOPS: n * 2_000}
	}
}

// reserving makes a reservation of it.
func reserving(d time.Duration) func(*grid.Spec) {
	return func(s *grid.Spec) {
		s.Kind, s.Module, s.Args, s.Runtime = grid.KindReservation, grid.Input{}, nil, d
	}
}

// hold announces a job and has the offer made firm.
func (r *rig) hold(job grid.JobID, from grid.SiteID, change ...func(*grid.Spec)) grid.Offer {
	r.t.Helper()
	a := announcement(job, from, change...)
	offer := r.bid(a)
	if offer.Firm {
		r.t.Fatalf("the first offer is firm: %+v", offer)
	}
	r.receive(from, protocol.HoldOffer{Job: job, Seq: a.Seq, OfferID: offer.ID, Tasks: 1})
	return one[protocol.Bid](r, from).Offer
}

// promised has a job accepted that was asked for with a time.
func (r *rig) promised(
	job grid.JobID, from grid.SiteID, change ...func(*grid.Spec),
) grid.AttemptID {
	r.t.Helper()
	firm := r.hold(job, from, change...)
	r.receive(from, award(job, firm, 1, 1, change...))
	id := attemptID(job, 0, 1)
	if asked := only[step.Verify](r.out); len(asked) == 1 {
		none[protocol.Accepted](r)
		r.step(step.Verified{Attempt: id})
	}
	if got := one[protocol.Accepted](r, from).Attempts; !slices.Equal(got, []grid.AttemptID{id}) {
		r.t.Fatalf("accepted %v", got)
	}
	return id
}

// starts is when an attempt was started within d, as an offset from the epoch.
func (r *rig) starts(id grid.AttemptID, d time.Duration) time.Duration {
	r.t.Helper()
	for end := r.now.Add(d); r.now.Before(end); {
		out := r.advance(100 * time.Millisecond)
		i := slices.IndexFunc(only[step.StartAttempt](out), func(s step.StartAttempt) bool {
			return s.Attempt == id
		})
		if i >= 0 {
			return r.now.Sub(epoch())
		}
		r.lease(id2submitter(r, id), []grid.AttemptID{id}, time.Hour)
	}
	r.t.Fatalf("%s did not start within %s", id, d)
	return 0
}

func id2submitter(r *rig, id grid.AttemptID) grid.SiteID {
	from, _ := r.m.Submitter(id)
	return from
}

func TestAFirmOfferHoldsItsPlaceUntilItEnds(t *testing.T) {
	r := newRig(t)
	firm := r.hold(job1, alice, at(time.Minute), cores(4))
	if !firm.Firm || firm.LatestStart != time.Minute {
		t.Fatalf("offer %+v", firm)
	}
	r.receive(bob, announcement(job2, bob, at(90*time.Second), cores(1)))
	none[protocol.Bid](r)
	r.advance(firm.Validity)
	r.receive(bob, announcement(job3, bob, at(90*time.Second), cores(1)))
	one[protocol.Bid](r, bob)
}

func TestAHoldThatCameTwiceStillServesTheAward(t *testing.T) {
	r := newRig(t)
	firm := r.hold(job1, alice, at(time.Minute), cores(4))
	r.receive(alice, protocol.HoldOffer{Job: job1, Seq: 1, OfferID: firm.ID - 1, Tasks: 1})
	r.receive(alice, award(job1, firm, 1, 1, at(time.Minute), cores(4)))
	if len(only[step.Verify](r.out)) != 1 {
		t.Fatalf("effects %+v", r.out)
	}
}

func TestNobodyElseCanHoldAnOffer(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice, at(time.Minute)))
	r.receive(bob, protocol.HoldOffer{Job: job1, Seq: 1, OfferID: offer.ID, Tasks: 1})
	r.reported(eventNotSubmitter)
	none[protocol.Bid](r)
}

// A refusal of a time names the earliest that could be kept.
func TestAWindowIsRefusedWithWhatCouldBePromised(t *testing.T) {
	r := newRig(t)
	r.promised(job1, alice, at(time.Minute), cores(4), func(s *grid.Spec) {
		s.Runtime = 10 * time.Minute
	})
	a := announcement(job2, bob, by(5*time.Minute), func(s *grid.Spec) { s.Runtime = 4 * time.Minute })
	a.Explain = true
	r.receive(bob, a)
	got := one[protocol.Refuse](r, bob).Refusal
	// Each has a second to begin in.
	want := grid.Refusal{Reason: grid.ReasonWindow, Want: 300, Have: 15*60 + 2}
	if got != want {
		t.Errorf("refused %+v, want %+v", got, want)
	}
}

// Of a fixed start the next one is named, not one that was to be had before it.
func TestAFixedStartIsRefusedWithTheNextOne(t *testing.T) {
	r := newRig(t)
	r.reservation(job1, alice) // of ten minutes, from one minute on
	a := announcement(job2, bob, at(2*time.Minute), func(s *grid.Spec) {
		s.Runtime = 10 * time.Second
	})
	a.Explain = true
	r.receive(bob, a)
	if got := one[protocol.Refuse](r, bob).Refusal; got.Have != 11*60 || got.Want != 120 {
		t.Errorf("refused %+v, want the end of the reservation", got)
	}
}

// Of a start that has passed the next one is now: a second is the shortest time there is.
func TestAFixedStartThatHasPassedIsRefusedWithNow(t *testing.T) {
	r := newRig(t)
	a := announcement(job1, alice, at(-5*time.Second))
	a.Explain = true
	r.receive(alice, a)
	want := grid.Refusal{Reason: grid.ReasonWindow, Have: 1}
	if got := one[protocol.Refuse](r, alice).Refusal; got != want {
		t.Errorf("refused %+v, want %+v", got, want)
	}
}

// OpenCCS: "One task of the MM is to verify if a schedule received from the PM can be
// realized with the available hardware."
func TestASandboxThatCannotKeepThePlanDeclines(t *testing.T) {
	r := newRig(t)
	firm := r.hold(job1, alice, at(time.Minute))
	r.receive(alice, award(job1, firm, 1, 1, at(time.Minute)))
	none[protocol.Accepted](r)
	id := attemptID(job1, 0, 1)
	r.step(step.Verified{Attempt: id, Problem: "bubblewrap is gone"})
	r.declinedWith(alice, grid.ReasonAdapter, id)
	if got := r.m.Status().Attempts; len(got) != 0 {
		t.Errorf("attempts %+v", got)
	}
	r.receive(alice, award(job1, firm, 1, 1, at(time.Minute)))
	r.declinedWith(alice, grid.ReasonStale, id)
}

func TestAnAwardThatComesAgainWhileItIsVerified(t *testing.T) {
	r := newRig(t)
	firm := r.hold(job1, alice, at(time.Minute))
	r.receive(alice, award(job1, firm, 1, 1, at(time.Minute)))
	r.receive(alice, award(job1, firm, 1, 1, at(time.Minute)))
	none[protocol.Accepted](r)
	none[protocol.Declined](r)
	r.receive(alice, protocol.Cancel{Job: job1})
	r.step(step.Verified{Attempt: attemptID(job1, 0, 1)})
	none[protocol.Accepted](r)
}

// Inputs are fetched right away, and the start is in its second.
func TestAFixedStartIsKept(t *testing.T) {
	r := newRig(t)
	id := r.promised(job1, alice, at(30*time.Second))
	if staged := only[step.Stage](r.out); len(staged) != 1 {
		t.Fatalf("effects %+v", r.out)
	}
	if p := one[protocol.Progress](r, alice); p.StartsIn != 30*time.Second {
		t.Errorf("starts in %s", p.StartsIn)
	}
	r.step(step.StageProgress{Attempt: id, Done: 1, Total: 1})
	if p := one[protocol.Progress](r, alice); p.StartsIn != 30*time.Second {
		t.Errorf("while its inputs come it starts in %s", p.StartsIn)
	}
	r.step(step.Staged{Attempt: id})
	if got := r.starts(id, time.Minute); got != 30*time.Second {
		t.Errorf("started after %s", got)
	}
}

func TestAFixedStartOutlivesARestart(t *testing.T) {
	r := newRig(t)
	id := r.promised(job1, alice, at(30*time.Second), cores(4))
	r.advance(5 * time.Second)
	r = r.restart(2)
	if staged := only[step.Stage](r.out); len(staged) != 1 || staged[0].Module.CID != "bmodule" {
		t.Fatalf("effects %+v", r.out)
	}
	r.receive(bob, announcement(job2, bob, at(40*time.Second)))
	none[protocol.Bid](r) // the place is kept
	r.step(step.Staged{Attempt: id})
	if got := r.starts(id, time.Minute); got != 30*time.Second {
		t.Errorf("started after %s", got)
	}
	r.step(step.AttemptStarted{Attempt: id})
	r = r.restart(3) // now it has died with the agent
	one[protocol.Exited](r, alice)
}

// What was promised a start is stopped soon after its lease, if it says so, after a restart, too.
func TestAnUnwantedPromiseOutlivesARestart(t *testing.T) {
	r := newRig(t, func(c *Config) { c.GiveUp = 20 * time.Second })
	id := r.promised(job1, alice, at(30*time.Second), func(s *grid.Spec) {
		s.Unattended = grid.UnattendedStop
	})
	r = r.restart(2)
	r.step(step.Staged{Attempt: id})
	r.starts(id, time.Minute) // under a lease of an hour
	r.step(step.AttemptStarted{Attempt: id})
	if got := only[step.StopAttempt](r.advance(time.Hour + 20*time.Second)); len(got) != 1 {
		t.Errorf("stops %v, want %s", got, id)
	}
}

func TestAFixedStartThatPassedIsGivenBack(t *testing.T) {
	r := newRig(t)
	r.promised(job1, alice, at(30*time.Second))
	r.now = epoch().Add(time.Minute)
	r = r.restart(2)
	if got := one[protocol.Exited](r, alice).Exit.Cause; got != grid.CauseSiteRestart {
		t.Errorf("ended with %s", got)
	}
}

// reservation has ten minutes of all cores reserved from one minute on.
func (r *rig) reservation(job grid.JobID, from grid.SiteID) grid.AttemptID {
	r.t.Helper()
	return r.promised(job, from, reserving(10*time.Minute), at(time.Minute), cores(4))
}

func TestAReservationIsHeldOpenAndOver(t *testing.T) {
	r := newRig(t)
	id := r.reservation(job1, alice)
	if len(only[step.Stage](r.out)) > 0 {
		t.Errorf("effects %+v", r.out)
	}
	out := r.advance(time.Minute) // without any lease
	if p := sent[protocol.Progress](out, alice); len(p) != 1 || p[0].Phase != grid.PhaseRunning {
		t.Errorf("progress %+v", p)
	}
	r.receive(bob, announcement(job2, bob, at(2*time.Minute)))
	none[protocol.Bid](r)
	out = r.advance(10 * time.Minute)
	exits := sent[protocol.Exited](out, alice)
	if len(exits) == 0 || exits[0].Attempt != id || exits[0].Exit.Status() != 0 {
		t.Errorf("exits %+v", exits)
	}
	if len(only[step.StartAttempt](out)) > 0 {
		t.Error("something was started")
	}
	r.receive(bob, announcement(job3, bob))
	one[protocol.Bid](r, bob)
}

// While the agent was down the places of both passed, and neither has its inputs. The
// first keeps all cores until they are here, so that the plan loses the second already
// while it is restored: the site never took that one up again.
func TestOfTwoPlacesThatPassedARestartKeepsOne(t *testing.T) {
	r := newRig(t)
	first := r.promised(job1, alice, by(10*time.Minute), cores(4))
	second := r.promised(job2, bob, by(10*time.Minute), cores(4))
	r.now = r.now.Add(3 * time.Minute)
	r = r.restart(2)
	r.reported(eventTakenUp)
	lost := one[protocol.Exited](r, bob)
	if lost.Attempt != second || lost.Exit.Cause != grid.CauseSiteRestart {
		t.Fatalf("exited %+v, want %s with the agent", lost, second)
	}
	r.step(step.HeldChanged{}) // the plan tells here what it lost at the restart
	r.step(step.Staged{Attempt: first})
	r.advance(r.m.cfg.RenewRetry)
	started := only[step.StartAttempt](r.lease(alice, []grid.AttemptID{first}, time.Hour))
	if len(started) != 1 || started[0].Attempt != first {
		t.Errorf("started %+v, want %s", started, first)
	}
}

func TestAReservationOutlivesARestart(t *testing.T) {
	r := newRig(t)
	id := r.reservation(job1, alice)
	r = r.restart(2)
	none[protocol.Exited](r)
	r.advance(2 * time.Minute)
	r = r.restart(3) // also in the middle of it
	if s := r.m.Status().Attempts; len(s) != 1 || s[0].ID != id || s[0].Phase != "ready" {
		t.Fatalf("attempts %+v", s)
	}
	r.now = epoch().Add(time.Hour)
	r = r.restart(4)
	if e := one[protocol.Exited](r, alice); e.Exit.Status() != 0 {
		t.Errorf("exit %+v", e.Exit)
	}
}

func TestAReservationIsReleased(t *testing.T) {
	r := newRig(t)
	r.reservation(job1, alice)
	r.receive(alice, protocol.Cancel{Job: job1})
	if s := r.m.Status().Attempts; len(s) != 0 {
		t.Errorf("attempts %+v", s)
	}
	r.receive(bob, announcement(job2, bob, at(2*time.Minute)))
	one[protocol.Bid](r, bob)
}

// in binds it to a reservation.
func in(job grid.JobID) func(*grid.Spec) { return func(s *grid.Spec) { s.Reservation = job } }

func TestABoundJobRunsInItsReservation(t *testing.T) {
	r := newRig(t)
	r.reservation(job1, alice)
	a := announcement(job2, alice, in(job1))
	offer := r.bid(a)
	r.receive(alice, award(job2, offer, 1, 1, in(job1)))
	id := attemptID(job2, 0, 1)
	one[protocol.Accepted](r, alice)
	r.step(step.Staged{Attempt: id})
	if got := r.starts(id, 2*time.Minute); got != time.Minute {
		t.Errorf("started after %s, want when the reservation opens", got)
	}
	r.step(step.AttemptStarted{Attempt: id})
	r.advance(10 * time.Minute) // the reservation is over
	if s := r.m.Status().Attempts; s[1].Phase != "stopping" {
		t.Errorf("attempts %+v", s)
	}
}

// A promise inside a reservation stays inside it when it is awarded.
func TestAPromiseInAReservationStaysInIt(t *testing.T) {
	r := newRig(t)
	holder := r.reservation(job1, alice)
	id := r.promised(job2, alice, in(job1), at(2*time.Minute))
	if c, ok := r.m.plan.Commitment(id); !ok || c.Within != holder {
		t.Errorf("%+v, want a place within %s", c, holder)
	}
}

func TestOthersCannotUseAReservation(t *testing.T) {
	r := newRig(t)
	r.reservation(job1, alice)
	for _, id := range []grid.JobID{job1, job3} {
		a := announcement(job2, bob, in(id))
		a.Seq, a.Explain = a.Seq+1, true
		r.receive(bob, a)
		if got := one[protocol.Refuse](r, bob).Refusal.Reason; got != grid.ReasonReservation {
			t.Errorf("refused for %s", got)
		}
		r.receive(bob, protocol.Clear{Job: job2, Submitter: bob, Kind: protocol.ClearPlaced})
		r.advance(time.Minute)
	}
}

// An attempt that overruns its estimate is suspended for a promise, and goes on after it.
func TestAnOverrunStandsAsideForAPromise(t *testing.T) {
	r := newRig(t)
	late := r.running(job1, bob, 1)[0] // of a minute
	id := r.promised(job2, alice, at(90*time.Second), func(s *grid.Spec) {
		cores(4)(s)
		s.Need.MemoryBytes = 1 << 30
	})
	r.step(step.Staged{Attempt: id})
	r.lease(alice, []grid.AttemptID{id}, time.Hour)
	out := r.advance(90 * time.Second)
	if got := only[step.SuspendAttempt](out); len(got) != 1 || got[0].Attempt != late {
		t.Fatalf("suspended %+v", got)
	}
	if got := only[step.StartAttempt](out); len(got) != 1 || got[0].Attempt != id {
		t.Fatalf("started %+v", got)
	}
	r.step(step.AttemptFrozen{Attempt: late})
	if p := one[protocol.Progress](r, bob); p.Reason != grid.ReasonOverrun {
		t.Errorf("progress %+v", p)
	}
	r.step(step.AttemptStarted{Attempt: id})
	out = r.exited(id)
	if got := only[step.ContinueAttempt](out); len(got) != 1 || got[0].Attempt != late {
		t.Errorf("went on %+v", got)
	}
}

// What was told to end while it was suspended does not go on when its place comes: it only ends.
func TestWhatIsToEndDoesNotGoOn(t *testing.T) {
	r := newRig(t)
	late := r.running(job1, bob, 1)[0]
	id := r.promised(job2, alice, at(90*time.Second), func(s *grid.Spec) {
		cores(4)(s)
		s.Need.MemoryBytes = 1 << 30
	})
	r.step(step.Staged{Attempt: id})
	r.lease(alice, []grid.AttemptID{id}, time.Hour)
	r.advance(90 * time.Second)
	r.step(step.AttemptFrozen{Attempt: late})
	r.step(step.AttemptStarted{Attempt: id})
	r.receive(bob, protocol.Cancel{Job: job1})
	if got := only[step.StopAttempt](r.out); len(got) != 1 || got[0].Attempt != late {
		t.Fatalf("stopped %+v", got)
	}
	reason := r.m.roster.all[late].displaced
	out := append(r.exited(id), r.advance(time.Minute)...)
	for _, e := range only[step.ContinueAttempt](out) {
		t.Errorf("%s goes on", e.Attempt)
	}
	if got := r.m.roster.all[late]; got == nil || got.displaced != reason || len(
		only[step.StartAttempt](out)) > 0 {
		t.Errorf("%+v, effects %+v", got, out)
	}
}

func TestAnOverrunThatAllowsItIsStopped(t *testing.T) {
	r := newRig(t)
	stops := func(s *grid.Spec) { s.Overrun = grid.OverrunStop }
	offer := r.bid(announcement(job1, bob, stops))
	r.receive(bob, award(job1, offer, 1, 1, stops))
	late := attemptID(job1, 0, 1)
	r.lease(bob, []grid.AttemptID{late}, time.Hour)
	r.step(step.Staged{Attempt: late})
	r.step(step.AttemptStarted{Attempt: late})
	id := r.promised(job2, alice, at(90*time.Second), cores(4))
	r.lease(alice, []grid.AttemptID{id}, time.Hour)
	out := r.advance(90 * time.Second)
	if got := only[step.StopAttempt](out); len(got) != 1 || got[0].Attempt != late {
		t.Fatalf("stopped %+v", got)
	}
	r.step(step.AttemptExited{Attempt: late, Exit: grid.Exit{Cause: grid.CauseStopped}})
	if e := one[protocol.Exited](r, bob).Exit; e.Cause != grid.CauseTimeLimit {
		t.Errorf("exit %+v", e)
	}
}

// What its submitter has called off already is not told to end again when its place is wanted, and
// its end interests nobody.
func TestWhatWasCalledOffIsNotStoppedAgain(t *testing.T) {
	r := newRig(t)
	stops := func(s *grid.Spec) { s.Overrun = grid.OverrunStop }
	late := r.accepted(job1, bob, 1, stops)[0]
	r.lease(bob, []grid.AttemptID{late}, time.Hour)
	r.step(step.Staged{Attempt: late})
	r.step(step.AttemptStarted{Attempt: late})
	id := r.promised(job2, alice, at(90*time.Second), cores(4))
	r.lease(alice, []grid.AttemptID{id}, time.Hour)
	r.advance(80 * time.Second)
	r.receive(bob, protocol.Cancel{Job: job1})
	before := *r.m.roster.all[late]
	for _, e := range only[step.StopAttempt](r.advance(10 * time.Second)) {
		t.Errorf("%s is told to end again", e.Attempt)
	}
	if after := r.m.roster.all[late]; after.overran != before.overran || after.phase != before.phase {
		t.Errorf("%+v became %+v", before, *after)
	}
	out := r.step(step.AttemptExited{Attempt: late, Exit: grid.Exit{Cause: grid.CauseStopped}})
	if got := sent[protocol.Exited](out, bob); len(got) > 0 {
		t.Errorf("told of its end: %+v", got)
	}
}

// A promise that the site can no longer keep is given back before its time.
func TestALostPromiseIsGivenBack(t *testing.T) {
	r := newRig(t)
	id := r.promised(job1, alice, at(time.Hour), cores(4))
	small := fourCores()
	small.Total.MilliCPUs = 2_000
	r.step(step.CapacityChanged{Capability: small})
	if got := only[step.StopAttempt](r.out); len(got) != 1 || got[0].Attempt != id {
		t.Fatalf("effects %+v", r.out)
	}
	r.reported(eventPromiseGone)
	r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
	if e := one[protocol.Exited](r, alice).Exit; e.Cause != grid.CauseStopped {
		t.Errorf("exit %+v", e)
	}
}

// What other programs take now is felt now, and not tomorrow.
func TestWhatOthersTakeNowDoesNotHinderTomorrow(t *testing.T) {
	r := newRig(t)
	left := fourCores()
	left.Total.MilliCPUs = 500
	r.step(step.CapacityChanged{Capability: fourCores(), Left: &left})
	r.receive(alice, announcement(job1, alice))
	none[protocol.Bid](r)
	r.receive(alice, announcement(job2, alice, at(24*time.Hour)))
	one[protocol.Bid](r, alice)
}

func TestABusyOwnerPromisesLaterTimes(t *testing.T) {
	r := newRig(t)
	r.step(step.OwnerBusy{Reason: grid.ReasonOwnerBusy})
	r.receive(alice, announcement(job1, alice, at(5*time.Minute)))
	none[protocol.Bid](r)
	r.receive(alice, announcement(job2, alice, at(time.Hour)))
	one[protocol.Bid](r, alice)
	r.step(step.Pause{Until: epoch().Add(2 * time.Hour)})
	r.receive(bob, announcement(job3, bob, at(time.Hour)))
	none[protocol.Bid](r)
}

func TestPromisesToOthersHaveLimits(t *testing.T) {
	r := newRig(t)
	for name, tt := range map[string]struct {
		job    grid.JobID
		change []func(*grid.Spec)
		want   grid.Refusal
	}{
		"ahead": {job1, []func(*grid.Spec){at(31 * 24 * time.Hour)}, grid.Refusal{
			Reason: grid.ReasonAhead, Want: 31 * 86_400, Have: 30 * 86_400,
		}},
		"long": {job2, []func(*grid.Spec){reserving(25 * time.Hour), at(time.Hour)}, grid.Refusal{
			Reason: grid.ReasonAhead, Never: true, Want: 25 * 3_600, Have: 24 * 3_600,
		}},
	} {
		a := announcement(tt.job, alice, tt.change...)
		a.Explain = true
		r.receive(alice, a)
		if got := one[protocol.Refuse](r, alice).Refusal; got != tt.want {
			t.Errorf("%s: refused %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestPlanningChanges(t *testing.T) {
	r := newRig(t)
	r.step(step.PlanningChanged{Policy: "edf", Backfill: "easy"})
	r.reported(eventPlanning)
	if r.m.cfg.Planning.Policy != grid.PolicyEDF || r.m.cfg.Planning.Backfill != grid.BackfillEASY {
		t.Errorf("plans by %s, %s", r.m.cfg.Planning.Policy, r.m.cfg.Planning.Backfill)
	}
	r.step(step.PlanningChanged{Policy: "best", Backfill: "easy"})
	r.reported(eventInvalid)
}

// A long lease of one attempt does not delay the renewal of another's short one.
func TestEachLeaseIsRenewedInItsTime(t *testing.T) {
	r := newRig(t)
	short, long := r.accepted(job1, alice, 1), r.accepted(job2, alice, 1)
	r.lease(alice, short, 3*time.Second)
	r.lease(alice, long, 8*time.Hour)
	out := r.advance(1500 * time.Millisecond)
	renewals := sent[protocol.Renew](out, alice)
	if len(renewals) == 0 || !slices.Contains(renewals[0].Attempts, short[0]) {
		t.Errorf("renewals %+v", renewals)
	}
}

// Three offers stand, two of them of one submitter. A request to hold that comes again, with
// the number of an offer that was replaced, of its own one or of another's, means its own.
func TestARepeatedHoldIsTheJobsOwn(t *testing.T) {
	r := newRig(t, func(c *Config) { c.OfferValidity = time.Hour })
	jobs := []struct {
		id   grid.JobID
		from grid.SiteID
		at   time.Duration
	}{
		{job1, alice, time.Minute}, {job2, alice, 10 * time.Minute}, {job3, bob, 20 * time.Minute},
	}
	numbers := []uint64{1 << 40}
	for _, j := range jobs {
		numbers = append(numbers, r.hold(j.id, j.from, at(j.at), cores(4)).ID)
	}
	for _, j := range jobs {
		for _, number := range numbers {
			r.receive(j.from, protocol.HoldOffer{Job: j.id, Seq: 1, OfferID: number, Tasks: 1})
			if o := one[protocol.Bid](r, j.from).Offer; !o.Firm || o.LatestStart != j.at {
				t.Errorf("job %s with the number %d: %+v", j.id, number, o)
			}
			for _, each := range jobs {
				if free := r.free(each.at); free != 0 {
					t.Fatalf("%d cores are free at %s, want all places held", free, each.at)
				}
			}
		}
	}
	if offers := r.m.plan.Offers(); len(offers) != len(jobs) {
		t.Errorf("%d offers, want %d", len(offers), len(jobs))
	}
}

// Parts of a job that are to start together are held at the common start, not at the
// earliest.
func TestAHoldIsForTheStartThatWasAskedFor(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice, cores(4), by(time.Hour)))
	hold := protocol.HoldOffer{
		Job: job1, Seq: 1, OfferID: offer.ID, Tasks: 1, At: epoch().Add(10 * time.Minute),
	}
	r.receive(alice, hold)
	if o := one[protocol.Bid](r, alice).Offer; o.Parts.Wait+o.Parts.StageIn != 10*time.Minute {
		t.Errorf("the place begins in %s, want 10 minutes", o.Parts.Wait+o.Parts.StageIn)
	}
	if now, then := r.free(0), r.free(10*time.Minute); now != 4 || then != 0 {
		t.Errorf("%d cores are free now and %d at the common start, want 4 and 0", now, then)
	}
	hold.At = epoch().Add(2 * time.Hour) // the job's deadline still counts
	r.receive(alice, hold)
	if got := one[protocol.Refuse](r, alice).Refusal.Reason; got != grid.ReasonInvalid {
		t.Errorf("a start after the deadline: %v", got)
	}
}
