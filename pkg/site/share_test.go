package site

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// halfOf says that half of the cores are given, for eight hours.
func halfOf(r *rig) step.ShareChanged {
	return step.ShareChanged{Percent: 50, Until: r.now.Add(8 * time.Hour)}
}

// suspended are the attempts that a step suspends.
func suspended(effects []step.Effect) (ids []grid.AttemptID) {
	for _, s := range only[step.SuspendAttempt](effects) {
		ids = append(ids, s.Attempt)
	}
	return ids
}

// continued are those that it lets go on.
func continued(effects []step.Effect) (ids []grid.AttemptID) {
	for _, s := range only[step.ContinueAttempt](effects) {
		ids = append(ids, s.Attempt)
	}
	return ids
}

// Of four running tasks of one core, two fit into half of four cores: the others are suspended,
// told why, and go on as there is space.
func TestWhatTakesMoreThanTheHoursGiveIsSuspended(t *testing.T) {
	r := newRig(t)
	ids := r.running(job1, alice, 4)
	if diff := cmp.Diff(ids[2:], suspended(r.step(halfOf(r)))); diff != "" {
		t.Fatalf("suspended (-want +got):\n%s", diff)
	}
	r.step(step.AttemptFrozen{Attempt: ids[2]})
	want := protocol.Progress{
		Attempt: ids[2], Phase: grid.PhaseFrozen, Reason: grid.ReasonOwnerHours,
	}
	if got := one[protocol.Progress](r, alice); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
	if diff := cmp.Diff(ids[2:3], continued(r.exited(ids[0]))); diff != "" {
		t.Errorf("when one has ended, go on (-want +got):\n%s", diff)
	}
	all := step.ShareChanged{Percent: 100}
	if diff := cmp.Diff(ids[3:], continued(r.step(all))); diff != "" {
		t.Errorf("when all is given again, go on (-want +got):\n%s", diff)
	}
	if got := r.step(all); len(only[step.Report](got)) != 1 || len(suspended(got)) != 0 {
		t.Errorf("the same again: %v", got)
	}
}

// An owner who comes and goes meanwhile changes nothing about it.
func TestAnOwnerWhoComesWithinSuchHours(t *testing.T) {
	r := newRig(t)
	ids := r.running(job1, alice, 4)
	r.step(halfOf(r))
	r.step(ownerBusy())
	if diff := cmp.Diff(ids[:2], continued(r.step(step.OwnerAway{}))); diff != "" {
		t.Errorf("go on (-want +got):\n%s", diff)
	}
}

// Nothing is offered beyond the share, and what fits is.
func TestOffersKeepToTheShare(t *testing.T) {
	r := newRig(t)
	r.step(halfOf(r))
	core := func(s *grid.Spec) { s.Need.MilliCPUs, s.Need.MFLOPS = 1000, 0 }
	four := announcement(job1, alice, core)
	four.Count = 4
	r.receive(alice, four)
	if got := one[protocol.Bid](r, alice).Offer.TasksNow; got != 2 {
		t.Errorf("%d tasks of one core are offered, want 2 of half of four", got)
	}
}

// Who waits for longer than for an owner who stays goes on elsewhere.
func TestTheSurplusEndsAfterTheOwnersPatience(t *testing.T) {
	r := newRig(t)
	ids := r.running(job1, alice, 4)
	r.step(halfOf(r))
	due := r.timers[step.TimerKey{Name: timerShare}]
	if want := r.now.Add(r.m.cfg.OwnerPatience); !due.Equal(want) {
		t.Fatalf("patience ends %s, want %s", due, want)
	}
	r.lease(alice, ids, r.m.cfg.OwnerPatience+time.Hour)
	stopped := only[step.StopAttempt](r.advance(r.m.cfg.OwnerPatience))
	if len(stopped) != 2 || stopped[0].Attempt != ids[2] || stopped[1].Attempt != ids[3] {
		t.Errorf("stopped %v, want %v", stopped, ids[2:])
	}
}

func TestSharesThatAreNone(t *testing.T) {
	r := newRig(t)
	ids := r.running(job1, alice, 4)
	for _, wrong := range []step.ShareChanged{
		{}, {Percent: -1}, {Percent: 101}, {Percent: 50, Memory: -1}, {Percent: 50, Memory: 101},
	} {
		r.step(wrong)
		r.reported(eventInvalid)
		if got := suspended(r.out); len(got) > 0 || len(ids) != 4 {
			t.Errorf("%+v suspends %v", wrong, got)
		}
	}
}

// While somebody uses the machine less memory is given, too: what does not fit is suspended, told
// why, and nothing is offered beyond it.
func TestLessMemoryWhileSomebodyIsThere(t *testing.T) {
	r := newRig(t)
	ids := r.running(job1, alice, 4)
	part := r.m.capability.Total.MemoryBytes
	each, _ := r.m.plan.Commitment(ids[0])
	percent := (2*each.Give.MemoryBytes*100 + part - 1) / part // of two
	out := r.step(step.ShareChanged{Percent: 100, Memory: percent, InUse: true})
	if diff := cmp.Diff(ids[2:], suspended(out)); diff != "" {
		t.Fatalf("suspended (-want +got):\n%s", diff)
	}
	r.step(step.AttemptFrozen{Attempt: ids[2]})
	want := protocol.Progress{
		Attempt: ids[2], Phase: grid.PhaseFrozen, Reason: grid.ReasonOwnerBusy,
	}
	if got := one[protocol.Progress](r, alice); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
	if diff := cmp.Diff(ids[2:], continued(r.step(step.ShareChanged{Percent: 100}))); diff != "" {
		t.Errorf("when nobody is there, go on (-want +got):\n%s", diff)
	}
}

// Offers keep to the memory that is given while somebody uses the machine.
func TestOffersKeepToTheMemory(t *testing.T) {
	r := newRig(t)
	r.step(step.ShareChanged{Percent: 100, Memory: 50, InUse: true})
	quarter := func(s *grid.Spec) {
		s.Need = grid.Resources{MilliCPUs: 1, MemoryBytes: r.m.capability.Total.MemoryBytes / 4}
	}
	four := announcement(job1, alice, quarter)
	four.Count = 4
	r.receive(alice, four)
	if got := one[protocol.Bid](r, alice).Offer.TasksNow; got != 2 {
		t.Errorf("%d tasks of a quarter of the memory are offered, want 2 of half of it", got)
	}
}
