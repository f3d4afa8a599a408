package site

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// missed fails unless an attempt was given back for its start, and says when that was.
func (r *rig) missed(id grid.AttemptID, d time.Duration, why string) time.Duration {
	r.t.Helper()
	for end := r.now.Add(d); r.now.Before(end); {
		out := r.advance(100 * time.Millisecond)
		if started := only[step.StartAttempt](out); len(started) > 0 {
			r.t.Fatalf("started %+v at %s", started, r.now.Sub(epoch()))
		}
		if slices.Contains(r.events(), eventStartMissed) {
			if len(only[step.StopAttempt](out)) > 0 {
				r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{
					Cause: grid.CauseStopped, Text: "the latest start that was promised has passed: " + why,
				}})
			}
			said := one[protocol.Exited](r, alice)
			if said.Attempt != id || said.Exit.Cause != grid.CauseStopped ||
				!strings.Contains(said.Exit.Text, why) {
				r.t.Errorf("told %+v, want %q", said, why)
			}
			return r.now.Sub(epoch())
		}
	}
	r.t.Fatalf("no word of the missed start within %s", d)
	return 0
}

// free counts the cores that are free at a time after the epoch.
func (r *rig) free(at time.Duration) int64 {
	t := epoch().Add(at)
	return r.m.plan.Free(t, t.Add(time.Second)).MilliCPUs / 1000
}

// A submitter that is away for ten minutes finds what was promised to it: it is there when the
// time has come, and begins then.
func TestAPromiseIsKeptWhileItsSubmitterIsAway(t *testing.T) {
	r := newRig(t)
	id := r.promised(job1, alice, at(15*time.Minute))
	r.step(step.Staged{Attempt: id})
	r.advance(10 * time.Minute)
	if len(r.m.roster.all) != 1 || r.free(15*time.Minute) != 3 {
		t.Fatalf("%d attempts, %d cores free at the start; the promise is gone",
			len(r.m.roster.all), r.free(15*time.Minute))
	}
	if got := r.starts(id, 6*time.Minute); got < 15*time.Minute || got > 15*time.Minute+startGuard {
		t.Errorf("began at %s, want 15m", got)
	}
}

// With one lease that reaches beyond the start the submitter may be away then.
func TestAPromiseBeginsWithALeaseFromBefore(t *testing.T) {
	r := newRig(t)
	id := r.promised(job1, alice, at(time.Minute))
	r.step(step.Staged{Attempt: id})
	r.lease(alice, []grid.AttemptID{id}, 63*time.Second)
	out := r.advance(time.Minute)
	if started := only[step.StartAttempt](out); len(started) != 1 {
		t.Fatalf("started %+v at its time, want %s", started, id)
	}
}

// What the submitter does not come back for ends at the latest start, and not before or later:
// nobody holds an owner's capacity for longer than it was promised.
func TestAPromiseEndsAtItsLatestStart(t *testing.T) {
	for name, c := range map[string]struct {
		window func(*grid.Spec)
		ends   time.Duration
	}{
		"fixed":    {at(5 * time.Minute), 5 * time.Minute},
		"deadline": {by(10 * time.Minute), 9*time.Minute - startGuard},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id := r.promised(job1, alice, c.window)
			r.step(step.Staged{Attempt: id})
			got := r.missed(id, 20*time.Minute, "nothing was heard of its submitter")
			if got < c.ends || got > c.ends+2*startGuard {
				t.Errorf("ended at %s, want %s", got, c.ends)
			}
			if r.free(got+time.Second) != 4 {
				t.Errorf("%d cores are free, want 4", r.free(got+time.Second))
			}
		})
	}
}

// Neither inputs that come late nor an owner at work make it begin later than was promised.
func TestNothingBeginsAfterItsLatestStart(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*rig, grid.AttemptID)
		why    string
	}{
		"inputs": {func(*rig, grid.AttemptID) {}, "its inputs were not here"},
		"owner": {func(r *rig, id grid.AttemptID) {
			r.step(step.Staged{Attempt: id})
			r.step(ownerBusy())
		}, grid.ReasonOwnerBusy.String()},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id := r.promised(job1, alice, at(time.Minute))
			r.lease(alice, []grid.AttemptID{id}, time.Hour)
			c.before(r, id)
			got := r.missed(id, 2*time.Minute, c.why)
			if got < time.Minute || got > time.Minute+2*startGuard {
				t.Errorf("given back at %s, want 1m", got)
			}
			r.step(step.OwnerAway{})
			if started := only[step.StartAttempt](r.advance(time.Minute)); len(started) > 0 {
				t.Errorf("started %+v", started)
			}
		})
	}
}

// A restart keeps until when a promise is good.
func TestALatestStartSurvivesARestart(t *testing.T) {
	r := newRig(t)
	id := r.promised(job1, alice, at(5*time.Minute))
	r = r.restart(2)
	r.step(step.Staged{Attempt: id})
	got := r.missed(id, 10*time.Minute, "nothing was heard of its submitter")
	if got < 5*time.Minute || got > 5*time.Minute+2*startGuard {
		t.Errorf("ended at %s, want 5m", got)
	}
}

// Its submitter learns how long ago an attempt began and ended, however late it hears of it.
func TestTimesAreToldAsDurations(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	began := r.now
	r.advance(time.Second)
	r.exited(id)
	first := one[protocol.Exited](r, alice)
	if first.StartedAgo != time.Second || first.EndedAgo != 0 {
		t.Errorf("told %+v, want that it began 1s ago", first)
	}
	r.advance(time.Minute)
	all := sent[protocol.Exited](r.out, alice)
	last := all[len(all)-1]
	if last.StartedAgo-last.EndedAgo != time.Second || last.EndedAgo < 30*time.Second ||
		last.StartedAgo > r.now.Sub(began) {
		t.Errorf("told again %+v, want the same a second apart", last)
	}
	r = r.restart(2)
	last = one[protocol.Exited](r, alice)
	if last.StartedAgo-last.EndedAgo != time.Second || last.StartedAgo != r.now.Sub(began) {
		t.Errorf("told after a restart %+v, want that it began %s ago", last, r.now.Sub(began))
	}
}

// What is suspended as soon as it has been started, as its owner needs the machine just then,
// begins when it is resumed.
func TestWhatStartsSuspendedBeginsWhenItIsResumed(t *testing.T) {
	r := newRig(t)
	id := r.accepted(job1, alice, 1)[0]
	r.lease(alice, []grid.AttemptID{id}, lease)
	r.step(step.Staged{Attempt: id})
	r.step(ownerBusy())
	r.step(step.AttemptStarted{Attempt: id})
	r.step(step.AttemptFrozen{Attempt: id})
	r.advance(lease / 2)
	r.step(step.OwnerAway{})
	r.step(step.AttemptResumed{Attempt: id})
	r.advance(time.Second)
	r.exited(id)
	if got := one[protocol.Exited](r, alice); got.StartedAgo != time.Second {
		t.Errorf("told %+v, want that it began 1s ago", got)
	}
}
