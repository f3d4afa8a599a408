package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// queuedJob waits in the plans of sites rather than at its submitter.
func queuedJob(run time.Duration, flood bool) grid.Job {
	job := wasmJob(1, run)
	job.Spec.Map, job.Flood = grid.MapSeconds, flood
	return job
}

// twoCores are n equal sites with room for one task of queuedJob's size with all cores.
func twoCores(n int) []SiteSpec {
	sites := fleet(n)
	for i := range sites {
		sites[i].Capability.Total = sites[0].Capability.Total
		sites[i].Capability.UpBps = sites[0].Capability.UpBps
	}
	return sites
}

// blocked fills three sites with jobs that take both cores and are estimated at 10,
// 20 and 30 s. The one that is to end first really runs for ten minutes. Then it
// submits a job, and tells after which time that started.
func blocked(t *testing.T, flood bool) time.Duration {
	t.Helper()
	w := New(Config{
		Seed: 5, Sites: twoCores(3), Network: lan(), CheckFacts: true,
		Run: func(_ grid.Task, estimate time.Duration, _ SiteSpec) (time.Duration, grid.Exit) {
			if estimate == 10*time.Second {
				return 10 * time.Minute, grid.Exit{Cause: grid.CauseExited}
			}
			return estimate, grid.Exit{Cause: grid.CauseExited}
		},
	})
	_ = w.Run(time.Second)
	for i, estimate := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second} {
		job := queuedJob(estimate, false)
		job.Spec.Need.MilliCPUs, job.Spec.Need.MFLOPS = 2000, 0
		mustSubmit(t, w, "s0", job)
		_ = w.Run(time.Duration(i+2) * time.Second)
	}
	job := queuedJob(5*time.Second, flood)
	job.Spec.Need.MilliCPUs, job.Spec.Need.MFLOPS = 2000, 0
	submitted := w.elapsed
	id := mustSubmit(t, w, "s0", job)
	wantAllDone(t, mustEnd(t, w, time.Hour, "s0", id))
	if n := w.Trace().overlaps(); n != 0 {
		t.Errorf("%d pairs of attempts overlap", n)
	}
	for _, run := range w.Trace().Intervals {
		if run.Attempt.Task.Job == id {
			return run.From - submitted
		}
	}
	t.Fatal("it never ran")
	return 0
}

// Where estimates are wrong the site that is to be free first may be the last. Once
// placed there a job stays; dispatched to three it starts on the first with free capacity.
func TestFloodingPassesAQueueThatIsBlocked(t *testing.T) {
	once, flooded := blocked(t, false), blocked(t, true)
	t.Logf("starts after %s if placed once, after %s if dispatched to three", once, flooded)
	if flooded > 30*time.Second || once < 2*flooded {
		t.Errorf("starts after %s if dispatched to three, %s if placed once", flooded, once)
	}
}

// What the network does, and who dies and comes back, is drawn. No task runs twice at
// the same time, every one runs, and when all is over no site has kept a place for it.
func TestRivalsNeverRunTogether(t *testing.T) {
	stopped := 0
	defer func() {
		if stopped == 0 {
			t.Error("no rival was ever told to stop: the check is blind")
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		net := Network{
			Latency:   5 * time.Millisecond,
			Jitter:    time.Duration(rapid.IntRange(0, 60).Draw(rt, "jitter ms")) * time.Millisecond,
			Loss:      rapid.Float64Range(0, .2).Draw(rt, "loss"),
			Duplicate: rapid.Float64Range(0, .3).Draw(rt, "duplicate"),
			Reorder:   rapid.Float64Range(0, .3).Draw(rt, "reorder"), Detect: 5 * time.Millisecond,
		}
		w := New(Config{
			Seed: rapid.Uint64().Draw(rt, "seed"), Sites: twoCores(4), Network: net, CheckFacts: true,
			CheckEvery: 7,
		})
		_ = w.Run(time.Second)
		job := queuedJob(8*time.Second, true)
		job.Count = 16
		id, err := w.Submit("s0", job)
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 6).Draw(rt, "troubles") {
			w.trouble(rt)
		}
		w.recoverAt(50 * time.Second)
		_ = w.Run(51 * time.Second)
		if !w.runUntil(30*time.Minute, func() bool { return w.ended("s0", id) }) {
			s, _ := w.Broker("s0").Job(id)
			rt.Fatalf("not ended: %v, %+v", w.err(), s.Tasks)
		}
		state, _ := w.Broker("s0").Job(id)
		for _, task := range state.Tasks {
			if task.Phase != grid.PhaseDone {
				rt.Errorf("%s is %s: %+v", task.ID, task.Phase, task.Tries)
			}
		}
		if n := w.Trace().overlaps(); n != 0 {
			rt.Errorf("%d pairs of attempts overlap", n)
		}
		_ = w.Run(w.elapsed + 2*time.Minute)
		if err := w.err(); err != nil {
			rt.Error(err)
		}
		stopped += w.Trace().Sent["Fence"]
		for _, site := range w.order {
			if n := len(w.Site(site).Status().Attempts); n > 0 {
				rt.Errorf("%s still has %d attempts", site, n)
			}
		}
	})
}

// recoverAt ends all troubles: all sites are up and reach all others over a network
// that loses nothing.
func (w *World) recoverAt(at time.Duration) {
	w.At(at, func() {
		w.heal()
		w.cfg.Network = lan()
		for _, site := range w.order {
			w.Restart(site)
		}
	})
}

// trouble schedules one thing that goes wrong.
func (w *World) trouble(t *rapid.T) {
	at := time.Duration(rapid.IntRange(1000, 40_000).Draw(t, "at ms")) * time.Millisecond
	back := at + time.Duration(rapid.IntRange(0, 15_000).Draw(t, "for ms"))*time.Millisecond
	victim := rapid.SampledFrom(w.order).Draw(t, "victim")
	switch rapid.IntRange(0, 2).Draw(t, "trouble") {
	case 0:
		w.At(at, func() { w.CrashInStep(victim) })
	case 1:
		w.At(at, func() { w.Crash(victim) })
	default:
		w.At(at, func() { w.Isolate(victim) })
		w.At(back, func() { w.Rejoin(victim) })
		return
	}
	w.At(back, func() { w.Restart(victim) })
}
