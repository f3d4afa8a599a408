package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// speaks lets a site say something, of an attempt that is none.
func (b *bench) speaks(site grid.SiteID, id grid.JobID) {
	b.Helper()
	b.hear(site, protocol.Renew{Renewal: 4, Attempts: []grid.AttemptID{attemptOf(id, 0, 99)}})
}

// awaited is an attempt of a bound job whose reservation is over, while its site is cut off.
func awaited(t *testing.T) (*bench, grid.AttemptID) {
	t.Helper()
	b := newBench(t, nil, "a", "b")
	res := b.placed(b.reservation(), "a")
	b.now = b.now.Add(30*time.Minute - time.Second)
	b.renew("a", res, 1)
	id := b.submit(inside(res))
	b.offers(id, 1, "a")
	b.accept("a", id, 0, 1)
	run := attemptOf(id, 0, 1)
	b.hear("a", protocol.Progress{Attempt: run, Phase: grid.PhaseRunning})
	b.do(step.PeerGone{Site: "a"})
	for b.m.jobs.all[res].open > 0 { // b is heard: it is a that is cut off
		b.speaks("b", id)
		b.pass(time.Second)
	}
	b.wantPhase(id, 0, grid.PhaseWaiting)
	return b, run
}

// What was done in a reservation is not thrown away because it is over when the site that did it
// can be heard again.
func TestAResultComesAfterItsReservation(t *testing.T) {
	for name, first := range map[string]func(*bench){
		"is heard":         func(*bench) {},
		"starts meanwhile": func(b *bench) { b.restart("b") },
	} {
		t.Run(name, func(t *testing.T) {
			b, run := awaited(t)
			first(b)
			b.pass(maxAway / 2)
			b.wantPhase(run.Task.Job, 0, grid.PhaseWaiting)
			b.hear("a", protocol.Exited{Attempt: run, Exit: grid.Exit{Cause: grid.CauseExited}})
			b.wantPhase(run.Task.Job, 0, grid.PhaseDone)
		})
	}
}

// Nobody waits forever for a result that does not come, nor for long when its site is there
// again and has nothing to tell.
func TestAResultIsNotWaitedForWithoutEnd(t *testing.T) {
	b, run := awaited(t)
	b.pass(maxAway)
	b.wantPhase(run.Task.Job, 0, grid.PhaseRefused)

	b, run = awaited(t)
	b.do(step.PeerSeen{Site: "a"})
	b.pass(resultWait - time.Second)
	b.wantPhase(run.Task.Job, 0, grid.PhaseWaiting)
	b.pass(b.m.cfg.Reunion + time.Second)
	b.wantPhase(run.Task.Job, 0, grid.PhaseRefused)

	b, run = awaited(t)
	b.hear("a", protocol.Exited{Attempt: run, Exit: grid.Exit{Cause: grid.CauseSiteRestart}})
	b.wantPhase(run.Task.Job, 0, grid.PhaseRefused)
}

// runningAtA is a task with a fixed start that a has begun; b is a member, too.
func runningAtA(t *testing.T) (*bench, grid.JobID) {
	t.Helper()
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.fixed(1), "a")
	b.now = b.now.Add(30 * time.Minute)
	b.renew("a", id, 1)
	b.hear("a", protocol.Progress{Attempt: attemptOf(id, 0, 1), Phase: grid.PhaseRunning})
	return b, id
}

// A site that takes work, stays connected and never says a word of it is there: its silence is
// not waited out as that of one that went away with a result.
func TestASilentSiteThatIsConnectedIsNotAwaited(t *testing.T) {
	b, id := runningAtA(t)
	for b.phase(id, 0) == grid.PhaseRunning {
		b.speaks("b", id)
		b.pass(time.Second)
	}
	b.pass(resultWait - time.Second)
	b.wantPhase(id, 0, grid.PhaseWaiting)
	b.pass(b.m.cfg.Reunion + time.Second)
	b.wantPhase(id, 0, grid.PhaseFailed)
}

// What cannot have begun brings no result: its promise is broken when its start has passed.
func TestNoResultIsAwaitedOfWhatHasNotBegun(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.fixed(1), "a")
	b.pass(20 * time.Minute) // a says no word more, and its lease ends before the start
	b.speaks("b", id)
	b.pass(10 * time.Minute)
	b.wantPhase(id, 0, grid.PhaseFailed)
}

// A site that has spoken of other things since it last spoke of an attempt is there: it has had
// its time to tell when it falls silent for want of anything to say.
func TestASiteThatSpeaksOfOtherThingsIsNotAwaited(t *testing.T) {
	b, id := runningAtA(t)
	b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin/2)
	b.speaks("a", id)
	b.pass(b.m.cfg.LeaseMargin)
	b.wantPhase(id, 0, grid.PhaseWaiting)
	b.pass(resultWait + b.m.cfg.Reunion)
	b.wantPhase(id, 0, grid.PhaseFailed)
}
