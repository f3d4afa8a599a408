package site

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// movable wants that a submitter is told so of an attempt by the last input, once.
func (r *rig) movable(want protocol.Movable) {
	r.t.Helper()
	if got := one[protocol.Movable](r, alice); got != want {
		r.t.Errorf("says %+v, want %+v", got, want)
	}
}

// counted takes a checkpoint of an attempt until it counts.
func (r *rig) counted(id grid.AttemptID, n uint64) {
	r.t.Helper()
	r.step(step.Saved{Attempt: id, Checkpoint: taken(n), Took: time.Second})
	r.receive(alice, protocol.Held{Attempt: id, Number: n})
}

// Asked for a last checkpoint, a site takes one, and says which it is; asked again, it takes no
// other.
func TestALastCheckpointIsTakenOnce(t *testing.T) {
	r := newRig(t)
	id := r.saving(every(time.Hour))
	r.receive(alice, protocol.Move{Attempt: id})
	if got := only[step.Save](r.out); len(got) != 1 || got[0].Number != 1 {
		t.Fatalf("takes %+v", got)
	}
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true, Next: 1})
	r.advance(10 * time.Second)
	r.receive(alice, protocol.Move{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true, Next: 1})
	r.step(step.Saved{Attempt: id, Checkpoint: taken(1), Took: time.Second})
	r.advance(20 * time.Second)
	told := r.receive(alice, protocol.Move{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true, Next: 1})
	if len(only[step.Save](told)) > 0 {
		t.Error("takes another one")
	}
	r.receive(alice, protocol.Held{Attempt: id, Number: 1})
	r.receive(alice, protocol.Move{Attempt: id, Stop: true})
	if got := only[step.StopAttempt](r.out); len(got) != 1 {
		t.Fatalf("stops %+v", got)
	}
	r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
	if got := one[protocol.Exited](r, alice); got.Exit.Cause != grid.CauseStopped {
		t.Errorf("ends as %+v", got.Exit)
	}
	r.receive(alice, protocol.Move{Attempt: id, Stop: true})
	one[protocol.Exited](r, alice) // the end may have been lost
}

// A program that shows only later that it saves is asked for its state then.
func TestALastCheckpointOfAProgramThatSavesLater(t *testing.T) {
	r := newRig(t)
	id := r.accepted(job1, alice, 1)[0]
	r.lease(alice, []grid.AttemptID{id}, time.Hour)
	r.step(step.Staged{Attempt: id})
	r.step(step.AttemptStarted{Attempt: id})
	r.receive(alice, protocol.Move{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Begun: true})
	r.advance(time.Second)
	r.step(step.CanSave{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true, Next: 1})
	r.receive(alice, protocol.Move{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true, Next: 1})
}

// One that was taken before and is still told of is too old; the next is taken right after it.
func TestAnOldCheckpointIsNotTheLast(t *testing.T) {
	r := newRig(t)
	id := r.saving(every(20 * time.Second))
	r.wantSave(19*time.Second, 1)
	r.step(step.Saved{Attempt: id, Checkpoint: taken(1), Took: time.Second})
	r.advance(time.Minute)
	r.receive(alice, protocol.Move{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true, Next: 2})
	one[protocol.Checkpointed](r, alice) // it is told of without waiting
	r.receive(alice, protocol.Move{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true, Next: 2})
	r.receive(alice, protocol.Held{Attempt: id, Number: 1})
	r.wantSave(0, 2)
	r.step(step.Saved{Attempt: id, Problem: "the state changed while it was read"})
	r.wantSave(hurrySave, 3)
}

// A frozen program saves nothing: none is to be expected, but for one that is on its way.
func TestAFrozenProgramSavesNothing(t *testing.T) {
	r := newRig(t)
	id := r.saving(every(20 * time.Second))
	r.wantSave(19*time.Second, 1)
	r.step(step.Saved{Attempt: id, Checkpoint: taken(1)})
	r.step(step.OwnerBusy{Reason: grid.ReasonOwnerBusy})
	r.step(step.AttemptFrozen{Attempt: id})
	r.receive(alice, protocol.Move{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true, Next: 1})
	r.receive(alice, protocol.Held{Attempt: id, Number: 1})
	r.receive(alice, protocol.Move{Attempt: id})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true})
	r.receive(alice, protocol.Move{Attempt: id, Stop: true})
	if got := only[step.StopAttempt](r.out); len(got) != 1 {
		t.Fatalf("stops %+v", got)
	}
}

// Orders about an attempt are its submitter's alone, and none is kept for one that is not there.
func TestWhoMayMoveAnAttempt(t *testing.T) {
	r := newRig(t)
	id := r.saving()
	for _, stop := range []bool{false, true} {
		r.receive(bob, protocol.Move{Attempt: id, Stop: stop})
		r.reported(eventNotSubmitter)
		other := grid.AttemptID{Task: id.Task, Token: id.Token + 1}
		r.receive(alice, protocol.Move{Attempt: other, Stop: stop})
		r.reported(eventUnknownAttempt)
		if len(only[step.StopAttempt](r.out))+len(only[step.Save](r.out)) > 0 {
			t.Error("it is done nevertheless")
		}
	}
}

// When the owner stays, the submitter is told after a while, again and again, and once more when
// the owner is away. A program that saves nothing is not spoken of.
func TestAnOwnerWhoStays(t *testing.T) {
	r := newRig(t)
	id := r.saving(every(time.Hour))
	r.counted(id, 1) // not asked for
	r.step(step.OwnerBusy{Reason: grid.ReasonOwnerBusy})
	r.step(step.AttemptFrozen{Attempt: id})
	if early := sent[protocol.Movable](r.advance(r.m.cfg.MoveAfter-1), alice); len(early) > 0 {
		t.Fatalf("says %+v too early", early)
	}
	want := protocol.Movable{Attempt: id, Reason: grid.ReasonOwnerBusy, Saves: true, Begun: true}
	r.advance(1)
	r.movable(want)
	if got := r.m.Status().Attempts[0].Leaves; got != grid.ReasonOwnerBusy {
		t.Errorf("shown to leave for %s", got)
	}
	if again := sent[protocol.Movable](r.advance(3*time.Minute), alice); len(again) != 3 {
		t.Errorf("says so %d times in three minutes", len(again))
	}
	r.step(step.OwnerAway{})
	r.movable(protocol.Movable{Attempt: id, Saves: true, Begun: true})
	r.step(step.AttemptResumed{Attempt: id})
	if more := sent[protocol.Movable](r.advance(10*time.Minute), alice); len(more) > 0 {
		t.Errorf("says %+v afterwards", more)
	}
}

// An owner may set the time anew, also while they stay.
func TestAnOwnerSetsAnotherTime(t *testing.T) {
	r := newRig(t)
	id := r.saving(every(time.Hour))
	r.step(step.OwnerBusy{Reason: grid.ReasonOwnerBusy})
	r.advance(10 * time.Second)
	cfg := r.m.cfg
	r.step(step.TermsChanged{
		MaxRuntime: cfg.MaxRuntime, Patience: cfg.OwnerPatience, MoveAfter: 30 * time.Second,
		Ahead: cfg.Planning.Ahead, Longest: cfg.Planning.Longest,
	})
	if got := sent[protocol.Movable](r.advance(20*time.Second), alice); len(got) != 1 ||
		got[0].Attempt != id {
		t.Errorf("says %+v", got)
	}
}

// A pause in which attempts leave outlives a restart, with the time at which the others are
// stopped, and moves with the wall clock.
func TestALeavingPauseIsKept(t *testing.T) {
	r := newRig(t)
	stop := r.now.Add(time.Hour)
	r.step(step.Pause{Leave: true, StopAt: stop})
	r.step(step.ClockStepped{By: 5 * time.Minute})
	next := r.restart(2)
	s := next.m.Status()
	if !s.Paused || !s.Leaving || !s.StopAt.Equal(stop.Add(5*time.Minute)) {
		t.Errorf("after the restart: %+v", s)
	}
	next.step(step.Resume{})
	if s := next.m.Status(); s.Paused || s.Leaving || !s.StopAt.IsZero() {
		t.Errorf("after resume: %+v", s)
	}
}

// A site that its owner leaves soon offers nothing that would have to leave, and what is short.
func TestNothingBeginsThatWouldHaveToLeave(t *testing.T) {
	r := newRig(t)
	r.step(step.OwnerReturns{At: r.now.Add(20 * time.Minute)})
	for _, c := range []struct {
		after, run time.Duration
		want       bool
	}{
		{0, time.Hour, true}, // long before, nobody knows better
		{16 * time.Minute, time.Hour, false},
		{0, time.Minute, true},
		{2 * time.Minute, 10 * time.Minute, false},
	} {
		r.advance(c.after)
		asked := announcement(job1, alice, func(s *grid.Spec) { s.Runtime = c.run })
		_, refusal, ok := r.m.Quote(asked.Req)
		if ok != c.want || !ok && refusal.Reason != grid.ReasonOwnerHours {
			t.Errorf("%s: offers %t, %+v", c.run, ok, refusal)
		}
	}
}
