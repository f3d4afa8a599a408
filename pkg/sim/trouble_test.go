package sim

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// By FIBR the task goes after a kill to the site with the lowest fault index among those
// that offer, and not to the one that failed.
func TestNextSiteAfterAKillHasTheLeastFaultIndex(t *testing.T) {
	sites := fleet(7)
	for i := range sites {
		sites[i].Tune = func(_ *site.Config, b *broker.Config) { b.FIBR = true }
	}
	w := New(Config{Seed: 4, Sites: sites, Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	job := wasmJob(1, 10*time.Second)
	job.Spec.Need.MilliCPUs = 3000 // too many for the submitter's own site
	for range 60 {
		id := mustSubmit(t, w, "s0", job)
		task := func() broker.TaskState { s, _ := w.Broker("s0").Job(id); return s.Tasks[0] }
		w.runUntil(w.elapsed+time.Minute, func() bool { return task().Phase == grid.PhaseRunning })
		victim := task().Site
		w.Crash(victim)
		if !w.runUntil(w.elapsed+time.Minute, func() bool { return task().Token == 2 }) {
			t.Fatalf("%s was not moved from %s", id, victim)
		}
		wantLeastFault(t, w, id, victim)
		w.Restart(victim)
		mustEnd(t, w, w.elapsed+time.Minute, "s0", id)
	}
}

func wantLeastFault(t *testing.T, w *World, id grid.JobID, victim grid.SiteID) {
	t.Helper()
	s, _ := w.Broker("s0").Job(id)
	faults := make(map[grid.SiteID]float64)
	for _, m := range w.Broker("s0").Members() {
		faults[m.Site] = math.Round(m.Fault.Own + m.Fault.Shared)
	}
	next := s.Tasks[0].Site
	if next == victim {
		t.Errorf("given again to %s, which had just failed", victim)
	}
	for _, a := range s.Answers {
		if a.Offer != nil && a.Site != victim && faults[a.Site] < faults[next] {
			t.Errorf("moved to %s with fault index %v; %s offers with %v",
				next, faults[next], a.Site, faults[a.Site])
		}
	}
}

func TestWithoutFencingAttemptsOverlap(t *testing.T) {
	n := 0
	for seed := range uint64(3) {
		sites := fleet(5)
		for i := range sites {
			sites[i].Tune = func(_ *site.Config, b *broker.Config) { b.NoFencing = true }
		}
		w := New(Config{Seed: seed, Sites: sites, Network: lan()})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", wasmJob(8, 60*time.Second))
		_ = w.Run(10 * time.Second)
		s, _ := w.Broker("s0").Job(id)
		cut := s.Tasks[7].Site // the last task is not at the submitter's own site, which has two places
		w.Isolate(cut)
		w.At(30*time.Second, func() { w.Rejoin(cut) })
		if err := w.Run(3 * time.Minute); err != nil {
			t.Fatal(err)
		}
		n += w.Trace().overlaps()
	}
	if n == 0 {
		t.Error("no overlap was seen although stale attempts got leases: the check is blind")
	}
}

// An agent that is killed amid a step, again and again, submitter or site, loses
// and doubles nothing.
func TestKilledAmidSteps(t *testing.T) {
	for seed := range uint64(8) {
		w := New(Config{Seed: seed, Sites: fleet(4), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", wasmJob(12, 4*time.Second))
		for n := range 30 {
			victim := w.order[w.rng.IntN(len(w.order))]
			at := time.Duration(1000+n*700+w.rng.IntN(700)) * time.Millisecond
			w.At(at, func() { w.CrashInStep(victim) })
			w.At(at+time.Duration(w.rng.IntN(3000))*time.Millisecond, func() { w.Restart(victim) })
		}
		_ = w.Run(26 * time.Second)
		for _, s := range w.order {
			w.Restart(s)
		}
		wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s0", id))
		if n := w.Trace().overlaps(); n != 0 {
			t.Errorf("seed %d: %d pairs of attempts overlap", seed, n)
		}
	}
}

func TestSubmitWhereTheAgentIsDown(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(2), Network: lan()})
	w.Crash("s1")
	if _, err := w.Submit("s1", wasmJob(1, time.Second)); !errors.Is(err, ErrDown) {
		t.Errorf("submit to an agent that is down: %v, want %v", err, ErrDown)
	}
}

func TestSilentSiteHearsAndSaysNothing(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(3), Network: lan()})
	_ = w.Run(time.Second)
	w.Silence("s2")
	id := mustSubmit(t, w, "s0", wasmJob(1, time.Second))
	s := mustEnd(t, w, w.elapsed+time.Minute, "s0", id)
	if len(s.Answers) != 2 || w.Trace().Heard["s2"] != 1 {
		t.Errorf("%d sites answered, want 2; s2 heard %d announcements, want 1",
			len(s.Answers), w.Trace().Heard["s2"])
	}
	w.Unsilence("s2")
	id = mustSubmit(t, w, "s0", wasmJob(1, time.Second))
	if s := mustEnd(t, w, w.elapsed+time.Minute, "s0", id); len(s.Answers) != 3 {
		t.Errorf("%d sites answered afterwards, want 3", len(s.Answers))
	}
}

func TestOverlapsAreCounted(t *testing.T) {
	at := func(task uint32, token grid.Token, from, to time.Duration) Interval {
		return Interval{
			Attempt: grid.AttemptID{Task: grid.TaskID{Job: "j", Index: task}, Token: token}, From: from,
			To: to,
		}
	}
	trace := Trace{Intervals: []Interval{
		at(1, 1, 0, 10), at(2, 1, 0, -1), at(1, 2, 10, 20), // one after the other
		at(2, 2, 5, 6), at(2, 3, 30, -1), // both while the first runs on
		at(1, 2, 15, 30), // the same attempt, resumed
	}}
	if got := trace.overlaps(); got != 2 {
		t.Errorf("%d overlaps, want 2", got)
	}
}
