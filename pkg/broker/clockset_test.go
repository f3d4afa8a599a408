package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// set sets the wall clock of the submitter.
func (b *bench) set(by time.Duration) []step.Effect {
	b.Helper()
	return b.do(step.ClockStepped{By: by})
}

// A user names times on the wall clock, also when that was set, and sites are told what it
// shows.
func TestTimesAreNamedOnTheWallClock(t *testing.T) {
	const back = -2 * time.Hour
	b := newBench(t, nil, "a")
	b.set(back)
	job := testJob(1)
	job.Spec.Window.At = b.now.Add(back + 10*time.Minute) // in ten minutes, and long past before
	id := b.submit(job)
	b.offers(id, 1, "a")
	b.refusal(id, self, false)
	_, hold := one[protocol.HoldOffer](t, b.last)
	if want := b.now.Add(back); !hold.Clock.Equal(want) {
		t.Errorf("the site is told that it is %s, the wall clock shows %s", hold.Clock, want)
	}
	b.firm(id, "a", lasting(11, 1, 10*time.Minute, time.Minute))
	_, award := one[protocol.Award](t, b.last)
	if !award.Spec.Window.At.Equal(job.Spec.Window.At) || !award.Clock.Equal(hold.Clock) {
		t.Errorf("awarded for %s at %s", award.Spec.Window.At, award.Clock)
	}
	if s, _ := b.m.Job(id); !s.Submitted.Equal(b.now.Add(back)) {
		t.Errorf("shown as submitted at %s", s.Submitted)
	}
	over := testJob(1)
	over.Spec.Window.At = b.now.Add(back - time.Minute)
	if err := b.refusedBy(over); err == nil {
		t.Error("a start that is over is accepted")
	}
}

// What has a place that is not in its window any more is taken back, and placed again when no
// lease of it can run: the site may not hear that.
func TestASetClockMovesPromises(t *testing.T) {
	for name, test := range map[string]struct {
		job     func(*bench) grid.Job
		by      time.Duration
		running bool
		moves   bool
		ends    grid.Phase // 0: it goes on
	}{
		"a start comes nearer": {job: (*bench).fixed1, by: 10 * time.Minute, moves: true},
		"a start goes away":    {job: (*bench).fixed1, by: -time.Hour, moves: true},
		"a start is passed over": {
			job: (*bench).fixed1, by: time.Hour, moves: true, ends: grid.PhaseFailed,
		},
		"what is called on time":         {job: (*bench).fixed1, by: PromiseTolerance / 2},
		"a running task goes on":         {job: (*bench).fixed1, by: time.Hour, running: true},
		"a reservation":                  {job: (*bench).reservation, by: -time.Hour, moves: true},
		"a deadline that can be kept":    {job: (*bench).due1, by: -time.Hour},
		"a deadline that comes too near": {job: (*bench).due1, by: 40 * time.Minute, moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			job := test.job(b)
			named := job.Spec.Window
			id := b.submit(job)
			b.place(id, "a")
			b.hear("a", protocol.Progress{
				Attempt: attemptOf(id, 0, 1), Phase: grid.PhaseStaging, StartsIn: 30 * time.Minute,
			})
			lease := b.leaseOf(id)
			if test.running {
				b.progress(id, grid.PhaseRunning, 0)
			}
			effects := b.set(test.by)
			fenced, _ := sent[protocol.Fence](effects)
			if moves := slices.Contains(fenced, "a"); moves != test.moves {
				t.Fatalf("fenced %v, want %t", fenced, test.moves)
			}
			task := &b.m.jobs.all[id].tasks[0]
			if task.phase.Ended() != (test.ends != 0) {
				t.Fatalf("the task is %s", task.phase)
			}
			if test.ends != 0 {
				b.wantText(id, 0, "the clock was set by "+test.by.String())
				return
			}
			if !test.moves {
				if left := b.leaseOf(id); left != lease {
					t.Errorf("the lease ends in %s, in %s before", left, lease)
				}
				return
			}
			if j := b.m.jobs.all[id]; !j.traits.passive && task.rest.Sub(b.now) < lease {
				t.Errorf("it may be placed in %s, with a lease of %s", task.rest.Sub(b.now), lease)
			}
			b.pass(max(0, task.rest.Sub(b.now)))
			b.place(id, "b")
			if task.site != "b" || !task.active() {
				t.Errorf("the task is %s at %s", task.phase, task.site)
			}
			if got := b.m.jobs.all[id].traits.window; got != named.Shift(-test.by) {
				t.Errorf("its window is %+v, want that of the user, %+v, moved", got, named)
			}
		})
	}
}
