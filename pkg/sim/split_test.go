package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// partsJob is a job whose parts run together, each on one core.
func partsJob(mode grid.Split, parts uint32, run time.Duration) grid.Job {
	job := wasmJob(parts, run)
	job.Split, job.Spec.Need.MFLOPS = mode, 0
	return job
}

// starts lists when each part of a job's last start began to run, and where.
func (w *World) starts(id grid.JobID) (at []time.Duration, sites []grid.SiteID) {
	var last grid.Token
	for _, run := range w.Trace().Intervals {
		if run.Attempt.Task.Job == id {
			last = max(last, run.Attempt.Token)
		}
	}
	seen := make(map[grid.TaskID]bool)
	for _, run := range w.Trace().Intervals {
		if task := run.Attempt.Task; task.Job == id && run.Attempt.Token == last && !seen[task] {
			seen[task] = true
			at, sites = append(at, run.From), append(sites, run.Site)
		}
	}
	slices.Sort(sites)
	return at, slices.Compact(sites)
}

// mixed counts the pairs of parts of different starts that ran at the same time.
func (w *World) mixed(id grid.JobID) int {
	n := 0
	for i, a := range w.Trace().Intervals {
		for _, b := range w.Trace().Intervals[:i] {
			if a.Attempt.Task.Job == id && b.Attempt.Task.Job == id && a.Attempt.Token != b.Attempt.Token &&
				a.overlaps(b) {
				n++
			}
		}
	}
	return n
}

func TestPartsStartTogether(t *testing.T) {
	for _, test := range []struct {
		mode  grid.Split
		parts uint32
		sites int // that are to be used
	}{
		{grid.SplitNever, 5, 1},
		{grid.SplitIfNeeded, 5, 1},
		{grid.SplitIfNeeded, 9, 2},
		{grid.SplitGreedy, 16, 4},
	} {
		sites := fleet(5) // of 2, 3, 4, 5 and 6 cores
		sites[3].Skew, sites[4].Skew = 300*time.Millisecond, -200*time.Millisecond
		w := New(Config{Seed: 11, Sites: sites, Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", partsJob(test.mode, test.parts, 20*time.Second))
		wantAllDone(t, mustEnd(t, w, 2*time.Minute, "s0", id))
		at, used := w.starts(id)
		if len(at) != int(test.parts) || len(used) < test.sites || test.sites == 1 && len(used) > 1 {
			t.Errorf("%d, %d parts: started %d on %v", test.mode, test.parts, len(at), used)
			continue
		}
		if spread := slices.Max(at) - slices.Min(at); spread > 50*time.Millisecond {
			t.Errorf("%d parts on %v start within %s: %v", test.parts, used, spread, at)
		}
	}
}

// When a site dies all parts begin anew, together, and no part of the first start runs
// beside one of the second.
func TestALostPartStartsAllAnew(t *testing.T) {
	for seed := range uint64(6) {
		w := New(Config{Seed: seed, Sites: fleet(5), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", partsJob(grid.SplitIfNeeded, 9, 30*time.Second))
		if !w.runUntil(time.Minute, func() bool { at, _ := w.starts(id); return len(at) == 9 }) {
			t.Fatal("not started")
		}
		_, used := w.starts(id)
		_ = w.Run(w.elapsed + time.Duration(seed)*3*time.Second)
		victim := used[len(used)-1]
		w.Crash(victim)
		w.At(w.elapsed+15*time.Second, func() { w.Restart(victim) })
		wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s0", id))
		at, _ := w.starts(id)
		if len(at) != 9 || slices.Max(at)-slices.Min(at) > 50*time.Millisecond {
			t.Errorf("seed %d: started again at %v", seed, at)
		}
		if n := w.mixed(id) + w.Trace().overlaps(); n > 0 {
			t.Errorf("seed %d: parts of two starts ran at the same time, %d pairs", seed, n)
		}
	}
}

// The same whatever the network does and whichever site dies.
func TestPartsAreOneJob(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		net := Network{
			Latency:   5 * time.Millisecond,
			Jitter:    time.Duration(rapid.IntRange(0, 40).Draw(rt, "jitter ms")) * time.Millisecond,
			Loss:      rapid.Float64Range(0, .1).Draw(rt, "loss"),
			Duplicate: rapid.Float64Range(0, .3).Draw(rt, "duplicate"),
			Reorder:   rapid.Float64Range(0, .3).Draw(rt, "reorder"), Detect: 5 * time.Millisecond,
		}
		w := New(Config{
			Seed: rapid.Uint64().Draw(rt, "seed"), Sites: fleet(4), Network: net, CheckFacts: true,
			CheckEvery: 7,
		})
		_ = w.Run(time.Second)
		mode := rapid.SampledFrom([]grid.Split{grid.SplitIfNeeded, grid.SplitGreedy}).Draw(rt, "mode")
		job := partsJob(mode, rapid.Uint32Range(1, 12).Draw(rt, "parts"), 10*time.Second)
		id, err := w.Submit("s0", job)
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 5).Draw(rt, "troubles") {
			w.trouble(rt)
		}
		w.recoverAt(56 * time.Second)
		_ = w.Run(57 * time.Second)
		if !w.runUntil(time.Hour, func() bool { return w.ended("s0", id) }) {
			s, _ := w.Broker("s0").Job(id)
			rt.Fatalf("not ended: %v, %+v", w.err(), s.Tasks)
		}
		state, _ := w.Broker("s0").Job(id)
		for _, task := range state.Tasks {
			if task.Phase != grid.PhaseDone {
				rt.Errorf("%s is %s: %+v", task.ID, task.Phase, task.Tries)
			}
		}
		if n := w.mixed(id) + w.Trace().overlaps(); n > 0 {
			rt.Errorf("parts of two starts ran at the same time, %d pairs", n)
		}
		if err := w.err(); err != nil {
			rt.Error(err)
		}
	})
}
