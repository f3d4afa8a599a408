package site

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func every(d time.Duration) func(*grid.Spec) {
	return func(s *grid.Spec) { s.Checkpoint.Every = d }
}

// saving brings one attempt to run whose program saves its state.
func (r *rig) saving(change ...func(*grid.Spec)) grid.AttemptID {
	r.t.Helper()
	id := r.accepted(job1, alice, 1, change...)[0]
	r.lease(alice, []grid.AttemptID{id}, time.Hour)
	r.step(step.Staged{Attempt: id})
	r.step(step.AttemptStarted{Attempt: id})
	r.step(step.CanSave{Attempt: id})
	return id
}

func taken(n uint64) grid.Checkpoint {
	return grid.Checkpoint{Number: n, CID: grid.CID(fmt.Sprintf("bsaved%d", n)), Bytes: 100}
}

// wantSave wants a checkpoint of this number to be asked for after so long, and not before.
func (r *rig) wantSave(after time.Duration, number uint64) {
	r.t.Helper()
	if early := only[step.Save](r.advance(after - 1)); len(early) > 0 {
		r.t.Fatalf("asks for %+v too early", early)
	}
	got := only[step.Save](r.advance(1))
	if len(got) != 1 || got[0].Number != number {
		r.t.Fatalf("after %s asks for %+v, want number %d", after, got, number)
	}
}

// A checkpoint is asked for, told of until it is answered, and the next comes an interval after it.
func TestLifeOfACheckpoint(t *testing.T) {
	r := newRig(t)
	id := r.saving(every(20 * time.Second))
	r.wantSave(20*time.Second-firstSaveCost, 1)
	r.advance(time.Second) // the program and the disk take that long
	r.step(step.Saved{Attempt: id, Checkpoint: taken(1), Age: 500 * time.Millisecond})
	told := one[protocol.Checkpointed](r, alice)
	want := taken(1)
	want.Worked = 19500 * time.Millisecond
	if told.Attempt != id || told.Checkpoint != want {
		t.Errorf("tells of %+v, want %+v", told, want)
	}
	var at []time.Duration
	for i := range 16 {
		if again := sent[protocol.Checkpointed](r.advance(time.Second), alice); len(again) > 0 {
			at = append(at, time.Duration(i+1))
		}
	}
	if got := fmt.Sprint(at); got != "[2ns 6ns 14ns]" {
		t.Errorf("tells again after %s s", got)
	}
	if len(only[step.Save](r.out)) > 0 {
		t.Error("asks for the next one before the first is answered")
	}
	r.receive(alice, protocol.Held{Attempt: id, Number: 1})
	r.wantSave(0, 2) // 17 s are over, and the next may take as long until it counts
}

// What a loss repeats is no more than the job's owner says, also until a checkpoint counts: the
// next one is asked for by so much earlier as that took of late.
func TestACheckpointCountsWhenTheOneBeforeIsOld(t *testing.T) {
	const limit = 20 * time.Second
	r := newRig(t)
	id := r.saving(every(limit))
	asked := make(map[uint64]time.Time)
	took := []time.Duration{firstSaveCost, 3 * time.Second, time.Second, 2 * time.Second, 0}
	r.wantSave(limit-firstSaveCost, 1)
	for i, d := range took {
		n := uint64(i + 1)
		asked[n] = r.now
		r.advance(d)
		r.step(step.Saved{Attempt: id, Checkpoint: taken(n)})
		r.receive(alice, protocol.Held{Attempt: id, Number: n})
		if old := r.now.Sub(asked[n-1]); n > 1 && d <= 2*took[i-1] && old > limit {
			t.Errorf("until checkpoint %d counts, %s may be lost, want %s", n, old, limit)
		}
		for len(only[step.Save](r.out)) == 0 {
			r.advance(time.Millisecond)
		}
	}
	// The slow one is forgotten by and by: 3 s count, then 2.25, 2 and 1.5. Twice that is left.
	if got, want := r.now.Sub(asked[5]), limit-3*time.Second; got != want {
		t.Errorf("the sixth is asked for %s after the fifth, want %s", got, want)
	}
}

// What the site holds of an attempt are the last two that count.
func TestOldCheckpointsAreLetGo(t *testing.T) {
	r := newRig(t)
	id := r.saving(every(time.Second))
	var gone []step.LetGo
	pause := time.Second / 2
	for n := uint64(1); n <= 4; n++ {
		r.wantSave(pause, n)
		pause = time.Second - 2*leastSaveCost
		r.step(step.Saved{Attempt: id, Checkpoint: taken(n)})
		told := r.receive(alice, protocol.Held{Attempt: id, Number: n})
		gone = append(gone, only[step.LetGo](told)...)
	}
	want := fmt.Sprintf("[{%s [bsaved1]} {%s [bsaved2]}]", id, id)
	if got := fmt.Sprint(gone); got != want {
		t.Errorf("let go: %s, want %s", got, want)
	}
	r.wantSave(pause, 5)
	r.step(step.Saved{Attempt: id, Checkpoint: taken(5)})
	r.receive(alice, protocol.Held{Attempt: id, Number: 5, Reason: grid.ReasonSavedForeign})
	if got := only[step.LetGo](r.out); len(got) != 1 || got[0].CIDs[0] != "bsaved5" {
		t.Errorf("refused, and let go: %+v", got)
	}
	r.reported(eventSavedRefused)
	r.wantSave(pause, 6)
}

// Frozen time is no run time.
func TestFrozenTimeIsNotSaved(t *testing.T) {
	r := newRig(t)
	id := r.saving(every(time.Minute))
	r.advance(10 * time.Second)
	r.step(step.AttemptFrozen{Attempt: id})
	r.advance(30 * time.Second)
	r.step(step.AttemptResumed{Attempt: id})
	r.wantSave(19*time.Second, 1)
	r.step(step.Saved{Attempt: id, Checkpoint: taken(1)})
	if got := one[protocol.Checkpointed](r, alice).Checkpoint.Worked; got != 29*time.Second {
		t.Errorf("run time %s, want 29s", got)
	}
}

// An attempt goes on from what it was awarded with; its own checkpoints come after those.
func TestAnAttemptGoesOn(t *testing.T) {
	r := newRig(t)
	r.receive(alice, announcement(job1, alice, every(10*time.Second)))
	msg := award(job1, one[protocol.Bid](r, alice).Offer, 1, 7, every(10*time.Second))
	before, latest := taken(3), taken(5)
	before.Worked, latest.Worked = time.Minute, 2*time.Minute
	msg.Tasks[0].Saved = []grid.Checkpoint{latest, before}
	r.receive(alice, msg)
	id := one[protocol.Accepted](r, alice).Attempts[0]
	stage := only[step.Stage](r.out)[0]
	task := msg.Spec.Expand(job1, 0, grid.Item{})
	same := fmt.Sprint(stage.Saved) == fmt.Sprint(msg.Tasks[0].Saved)
	if !same || stage.Work != task.WorkDigest() {
		t.Fatalf("stages %+v", stage)
	}
	r.lease(alice, []grid.AttemptID{id}, time.Hour)
	r.step(step.Staged{Attempt: id, Saved: 3, Refused: []step.RefusedCheckpoint{
		{Number: 5, Reason: grid.ReasonSavedDamaged},
	}})
	r.reported(eventSavedRefused)
	r.reported(eventGoesOn)
	r.step(step.AttemptStarted{Attempt: id})
	r.step(step.CanSave{Attempt: id})
	r.wantSave(9*time.Second, 6)
	r.step(step.Saved{Attempt: id, Checkpoint: taken(6)})
	if got := one[protocol.Checkpointed](r, alice).Checkpoint; got.Worked != 69*time.Second {
		t.Errorf("run time %s, want 1m9s", got.Worked)
	}
}

// A promised attempt that a restart finds is staged with its checkpoints, and one that asks for
// none without.
func TestCheckpointsOutliveARestart(t *testing.T) {
	f := attemptFact{
		Attempt: attemptID(job1, 0, 1), Submitter: alice, Phase: factAccepted, Task: &grid.Task{},
		Saved: []grid.Checkpoint{taken(1), taken(2)},
	}
	if err := f.validate(f.Attempt.String()); err == nil {
		t.Error("checkpoints in the wrong order are taken")
	}
	a := attempt{saving: newSaving([]grid.Checkpoint{taken(2), taken(1)})}
	if e := a.stage(alice); len(e.Saved) != 2 || e.Work == "" {
		t.Errorf("stages %+v", e)
	}
	a.task.Checkpoint.Off = true
	if e := a.stage(alice); e.Saved != nil || e.Work != "" {
		t.Errorf("off: stages %+v", e)
	}
}

// Nothing is taken of jobs that want none, of attempts that have ended, or twice.
func TestWhatIsNotSaved(t *testing.T) {
	r := newRig(t)
	r.saving(func(s *grid.Spec) { s.Checkpoint.Off = true })
	if got := only[step.Save](r.advance(50 * time.Minute)); len(got) > 0 {
		t.Errorf("off: %+v", got)
	}
	r = newRig(t)
	id := r.saving(every(10 * time.Second))
	r.wantSave(9*time.Second, 1)
	r.step(step.Saved{Attempt: id, Checkpoint: taken(7)})
	r.reported(eventStale)
	r.step(step.Saved{Attempt: id, Checkpoint: taken(1), Problem: "no space"})
	r.reported(eventSaveFailed)
	r.wantSave(9*time.Second, 2)
	r.receive(bob, protocol.Held{Attempt: id, Number: 2})
	r.reported(eventNotSubmitter)
	r.receive(alice, protocol.Held{Attempt: id, Number: 2})
	r.reported(eventStale)
	r.exited(id)
	if got := only[step.Save](r.advance(time.Minute)); len(got) > 0 {
		t.Errorf("after its end: %+v", got)
	}
	for key := range r.timers {
		if key.Name == timerSave {
			t.Errorf("timer %+v is set", key)
		}
	}
}
