package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func savingWorld(t *testing.T, seed uint64) *trial {
	t.Helper()
	return newTrial(t, Config{
		Seed: seed, Sites: fleet(5), CheckFacts: true,
		Saves: func(t grid.Task) bool { return t.Checkpoint.Every > 0 },
	})
}

func savingJob(run, every time.Duration) grid.Job {
	job := elsewhere(run)
	job.Spec.Checkpoint.Every = every
	return job
}

// ran sums the times that a task's attempts really ran.
func (x *trial) ran(id grid.JobID) (sum time.Duration) {
	for _, i := range x.trace.Intervals {
		if i.Attempt.Task.Job == id {
			sum += i.To - i.From
		}
	}
	return sum
}

// A task whose site is killed goes on elsewhere: what is lost is less than an interval, and what
// telling of a checkpoint takes.
func TestAKilledTaskGoesOn(t *testing.T) {
	const run, every = 2 * time.Minute, 10 * time.Second
	for seed := uint64(1); seed <= 5; seed++ {
		x := savingWorld(t, seed)
		id := x.submit(savingJob(run, every))
		for _, at := range []time.Duration{40 * time.Second, 90 * time.Second} {
			x.At(at, func() { x.Crash(x.victim(id)) })
		}
		x.want(90 * time.Second)
		ran := x.ran(id)
		if lost := ran - run; lost <= 0 || lost > 2*(every+2*time.Second) {
			t.Errorf("seed %d: %s of %s of work were lost", seed, ran-run, run)
		}
		if x.Trace().Brokers["checkpoint_counts"] < 8 || x.Trace().Sites["goes_on"] != 2 {
			t.Errorf("seed %d: %d checkpoints count, %d attempts go on", seed,
				x.Trace().Brokers["checkpoint_counts"], x.Trace().Sites["goes_on"])
		}
	}
}

// The submitter's restart, a cut, a full disk and a power cut lose no checkpoint that counts.
func TestCheckpointsInTrouble(t *testing.T) {
	for name, trouble := range map[string]func(*trial, grid.JobID){
		"submitter restarted": func(x *trial, id grid.JobID) {
			x.Crash("s0")
			x.At(42*time.Second, func() { x.Restart("s0") })
			x.At(60*time.Second, func() { x.Crash(x.victim(id)) })
		},
		"submitter's power": func(x *trial, id grid.JobID) {
			x.PowerCut("s0")
			x.At(42*time.Second, func() { x.Restart("s0") })
			x.At(70*time.Second, func() { x.Crash(x.victim(id)) })
		},
		"cut off": func(x *trial, id grid.JobID) {
			cut := x.victim(id)
			x.Isolate(cut)
			x.At(60*time.Second, func() { x.Rejoin(cut) })
		},
		"site restarted": func(x *trial, id grid.JobID) {
			site := x.victim(id)
			x.Crash(site)
			x.At(41*time.Second, func() { x.Restart(site) })
		},
		"full disk of the submitter": func(x *trial, id grid.JobID) {
			x.FillDisk("s0")
			x.At(55*time.Second, func() { x.FreeDisk("s0") })
			x.At(60*time.Second, func() { x.Crash(x.victim(id)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := savingWorld(t, 3)
			id := x.submit(savingJob(2*time.Minute, 5*time.Second))
			x.At(40*time.Second, func() { trouble(x, id) })
			x.want(70 * time.Second)
			if x.Trace().Brokers["checkpoint_counts"] == 0 {
				t.Error("no checkpoint counts")
			}
		})
	}
}

// Who saves nothing, or is told not to, costs nothing: the world is the same, event by event.
func TestSavingCostsNobodyElse(t *testing.T) {
	play := func(saves func(grid.Task) bool, off bool) uint64 {
		x := newTrial(t, Config{Seed: 7, Sites: fleet(5), Saves: saves})
		job := elsewhere(30 * time.Second)
		job.Spec.Checkpoint.Off = off
		x.submit(job)
		x.want(0)
		return x.Hash()
	}
	nobody := func(grid.Task) bool { return false }
	all := func(grid.Task) bool { return true }
	if play(nil, false) != play(nobody, false) {
		t.Error("a program that does not save changes the world")
	}
	if play(nil, true) != play(all, true) {
		t.Error("a job that wants no checkpoints gets some")
	}
}
