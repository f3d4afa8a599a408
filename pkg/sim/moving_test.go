package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// move lets a job's user move its tasks, which is begun.
func (x *trial) move(id grid.JobID) {
	x.t.Helper()
	if err := x.Move("s0", id, false); err != nil {
		x.t.Errorf("move %s: %v", id, err)
	}
}

// settled tells the oracle that what sites offer does not change while a job moves.
func (x *trial) settled(id grid.JobID) { x.Oracle.jobs[id].Settled = true }

// faults sums the fault indices that s0 keeps of the others.
func (x *trial) faults() (sum float64) {
	for _, m := range x.Broker("s0").Members() {
		sum += m.Fault.Own + m.Fault.Shared
	}
	return sum
}

// A task that its user, or its site's owner, moves goes on elsewhere, once, from a state that is
// new, and that is nobody's fault.
func TestATaskMoves(t *testing.T) {
	const run, every = 4 * time.Minute, 20 * time.Second
	busy := step.OwnerBusy{Reason: grid.ReasonOwnerBusy, Text: "others use all"}
	for name, c := range map[string]struct {
		move func(x *trial, at grid.SiteID, id grid.JobID)
		most time.Duration // of work that is lost; a frozen program has not saved its last
	}{
		"its user wants it": {func(x *trial, _ grid.SiteID, id grid.JobID) {
			x.move(id)
		}, 7 * time.Second},
		"its user wants it, twice": {func(x *trial, _ grid.SiteID, id grid.JobID) {
			x.move(id)
			x.move(id)
		}, 7 * time.Second},
		"it is frozen": {func(x *trial, at grid.SiteID, id grid.JobID) {
			x.Input(at, busy)
			x.after(10*time.Second, func() { x.move(id) })
		}, every + 3*time.Second},
		"its owner stays": {func(x *trial, at grid.SiteID, _ grid.JobID) {
			x.Input(at, busy)
		}, every + 3*time.Second},
		"its owner's hours end": {func(x *trial, at grid.SiteID, _ grid.JobID) {
			x.Input(at, step.OwnerReturns{At: x.now().Add(10 * time.Minute)})
			x.Input(at, step.OwnerReturns{At: x.now().Add(2 * time.Minute)})
		}, 7 * time.Second},
		"its owner lets it leave": {func(x *trial, at grid.SiteID, _ grid.JobID) {
			x.Input(at, step.Pause{Leave: true})
		}, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 3; seed++ {
				x := savingWorld(t, seed)
				id := x.submit(savingJob(run, every))
				x.settled(id)
				var from grid.SiteID
				x.At(75*time.Second, func() { from = x.victim(id); c.move(x, from, id) })
				x.At(215*time.Second, func() {
					if at := x.victim(id); at == from {
						t.Errorf("seed %d: it is at %s still", seed, at)
					}
				})
				x.At(5*time.Minute, func() { x.Input(from, step.Resume{}) })
				x.want(75 * time.Second)
				lost := x.ran(id) - run
				if lost < 0 || lost > c.most {
					t.Errorf("seed %d: %s of work were lost, want at most %s", seed, lost, c.most)
				}
				if n := x.Trace().Brokers["moved"]; n != 1 || x.faults() != 0 {
					t.Errorf("seed %d: it moved %d times, faults %g", seed, n, x.faults())
				}
			}
		})
	}
}

// A task stays where it is, and loses nothing, when no other site offers, when its program saves
// nothing, and when its owner is back before another site was found.
func TestATaskStays(t *testing.T) {
	const run = 3 * time.Minute
	others := func(x *trial, at grid.SiteID) {
		for _, s := range x.World.order {
			if s != at {
				x.Input(s, step.Pause{})
			}
		}
	}
	for name, c := range map[string]struct {
		save bool
		move func(x *trial, at grid.SiteID, id grid.JobID)
		why  grid.Reason
	}{
		"nowhere to go": {true, func(x *trial, at grid.SiteID, id grid.JobID) {
			others(x, at)
			x.move(id)
		}, grid.ReasonNowhere},
		"it saves nothing": {false, func(x *trial, _ grid.SiteID, id grid.JobID) {
			x.move(id)
		}, grid.ReasonCannotSave},
		"its owner stays, it saves nothing": {false, func(x *trial, at grid.SiteID, _ grid.JobID) {
			x.Input(at, step.OwnerBusy{Reason: grid.ReasonOwnerBusy})
			x.after(5*time.Minute, func() { x.Input(at, step.OwnerAway{}) })
		}, grid.ReasonNone},
		"its owner stays, and it is alone": {true, func(x *trial, at grid.SiteID, _ grid.JobID) {
			others(x, at)
			x.Input(at, step.OwnerBusy{Reason: grid.ReasonOwnerBusy})
			x.after(5*time.Minute, func() { x.Input(at, step.OwnerAway{}) })
		}, grid.ReasonNone},
		"it may leave, and then stay": {true, func(x *trial, at grid.SiteID, _ grid.JobID) {
			others(x, at)
			x.Input(at, step.Pause{Leave: true})
			x.after(70*time.Second, func() { x.Input(at, step.Resume{}) })
		}, grid.ReasonNone},
		"it ends before the owner's hours do": {true, func(x *trial, at grid.SiteID, _ grid.JobID) {
			x.Input(at, step.OwnerReturns{At: x.now().Add(4 * time.Minute)})
		}, grid.ReasonNone},
	} {
		t.Run(name, func(t *testing.T) {
			x := savingWorld(t, 2)
			job := savingJob(run, 0)
			if c.save {
				job.Spec.Checkpoint.Every = 20 * time.Second
			}
			id := x.submit(job)
			var at grid.SiteID
			x.At(60*time.Second, func() { at = x.victim(id); c.move(x, at, id) })
			_ = x.Run(150 * time.Second)
			s, _ := x.Broker("s0").Job(id)
			move := s.Tasks[0].Move
			if c.why != grid.ReasonNone && (move == nil || move.Stays != c.why) {
				t.Errorf("it stays for %+v, want %s", move, c.why)
			}
			x.At(10*time.Minute, func() {
				for _, s := range x.World.order {
					x.Input(s, step.Resume{})
				}
			})
			x.want(6 * time.Minute)
			end, _ := x.Job("s0", id)
			if got := end.Tasks[0]; got.Site != at || got.Token != 1 || x.ran(id) != run {
				t.Errorf("token %d at %s ran for %s, want 1 at %s for %s",
					got.Token, got.Site, x.ran(id), at, run)
			}
		})
	}
}

// A program that saves nothing moves if its user says that it may begin anew.
func TestATaskMovesAndBeginsAnew(t *testing.T) {
	x := savingWorld(t, 1)
	id := x.submit(savingJob(time.Minute, 0))
	x.At(30*time.Second, func() {
		if err := x.Move("s0", id, true, 0); err != nil {
			t.Error(err)
		}
	})
	x.want(30 * time.Second)
	if ran, n := x.ran(id), x.Trace().Brokers["moved"]; n != 1 || ran < 80*time.Second {
		t.Errorf("it moved %d times and ran for %s", n, ran)
	}
}

// What a pause lets run on is stopped when the owner said so, and what can leave has left.
func TestAPauseStopsWhatCannotLeave(t *testing.T) {
	x := savingWorld(t, 1)
	id := x.submit(savingJob(4*time.Minute, 0))
	var at grid.SiteID
	x.At(60*time.Second, func() {
		at = x.victim(id)
		x.Input(at, step.Pause{Leave: true, StopAt: x.Clock(at).Add(time.Minute)})
	})
	_ = x.Run(110 * time.Second)
	if got := x.victim(id); got != at {
		t.Errorf("after %s it is at %s", x.elapsed, got)
	}
	_ = x.Run(125 * time.Second)
	if got := x.victim(id); got == at {
		t.Errorf("after %s it is at %s still", x.elapsed, got)
	}
	x.Input(at, step.Resume{})
	x.want(120 * time.Second)
	if x.faults() != 0 {
		t.Error("that is somebody's fault")
	}
}

// What cannot be moved is refused, with what is wrong.
func TestMovesAreRefused(t *testing.T) {
	x := savingWorld(t, 1)
	id := x.submit(savingJob(time.Minute, 0))
	promised := savingJob(time.Minute, 0)
	promised.Spec.Window.Deadline = x.Clock("s0").Add(time.Hour)
	due := x.submit(promised)
	parts := wasmJob(2, time.Minute)
	parts.Split = grid.SplitGreedy
	whole := x.submit(parts)
	several := savingJob(time.Minute, 0)
	several.Spec.Need.MilliCPUs, several.Redundancy.Replicas = 1000, 2
	copied := x.submit(several)
	_ = x.Run(20 * time.Second)
	for _, c := range []struct {
		job   grid.JobID
		tasks []uint32
		want  error
	}{
		{"mfrggzdfmztwq2lk", nil, step.ErrNoSuchJob},
		{id, []uint32{1}, step.ErrNoTask},
		{due, nil, step.ErrPromised},
		{whole, nil, step.ErrTogether},
		{copied, nil, step.ErrCopied},
	} {
		if err := x.Move("s0", c.job, true, c.tasks...); !errors.Is(err, c.want) {
			t.Errorf("move %s %v: %v, want %v", c.job, c.tasks, err, c.want)
		}
	}
	x.want(0)
	if err := x.Move("s0", id, true); !errors.Is(err, step.ErrNotRunning) {
		t.Errorf("a job that has ended moves: %v", err)
	}
}

// Moves amid all kinds of trouble lose and double nothing.
func TestMovesInTrouble(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		x := savingWorld(t, seed)
		job := savingJob(90*time.Second, 7*time.Second)
		job.Count = 3
		id := x.submit(job)
		const trouble = 4 * time.Minute
		for at := 5 * time.Second; at < trouble; {
			at += time.Duration(x.rng.IntN(20_000)) * time.Millisecond
			x.At(at, func() { x.stir(id) })
		}
		x.At(trouble+30*time.Second, func() {
			x.healAll()
			for _, s := range x.World.order {
				x.Restart(s)
				x.Input(s, step.Resume{})
				x.Input(s, step.OwnerAway{})
				x.Input(s, step.OwnerReturns{})
			}
		})
		if x.want(trouble + 30*time.Second); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// stir moves tasks, or hinders moves.
func (x *trial) stir(id grid.JobID) {
	site := x.World.order[x.rng.IntN(len(x.World.order))]
	soon := time.Duration(1000+x.rng.IntN(15_000)) * time.Millisecond
	switch x.rng.IntN(9) {
	case 0, 1, 2:
		_ = x.Move("s0", id, x.rng.IntN(4) == 0)
	case 3:
		x.Crash(site)
		x.after(soon, func() { x.Restart(site) })
	case 4:
		x.Isolate(site)
		x.after(soon, func() { x.Rejoin(site) })
	case 5:
		x.Input(site, step.Pause{Leave: true})
		x.after(soon, func() { x.Input(site, step.Resume{}) })
	case 6:
		x.Input(site, step.OwnerBusy{Reason: grid.ReasonOwnerBusy})
		x.after(soon, func() { x.Input(site, step.OwnerAway{}) })
	case 7:
		x.Input(site, step.OwnerReturns{At: x.now().Add(soon)})
	default:
		x.CrashInStep(site)
		x.after(soon, func() { x.Restart(site) })
	}
}
