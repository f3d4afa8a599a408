package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

func (w *World) started(i Interval) time.Time { return Epoch().Add(i.From) }

// runs lists the attempts of a job that ran, from their first interval; an attempt
// has a further one for each lease.
func (w *World) runs(id grid.JobID) []Interval {
	var all []Interval
	for _, i := range w.trace.Intervals {
		again := slices.ContainsFunc(all, func(o Interval) bool { return o.Attempt == i.Attempt })
		if i.Attempt.Task.Job == id && !again {
			all = append(all, i)
		}
	}
	return all
}

func reservation(at time.Time, length time.Duration, count uint32) grid.Job {
	j := wasmJob(count, length)
	j.Spec.Kind, j.Spec.Module, j.Spec.Window.At = grid.KindReservation, grid.Input{}, at
	return j
}

// phase returns the phase and the site of a job's first task.
func (w *World) phase(at grid.SiteID, id grid.JobID) (grid.Phase, grid.SiteID) {
	s, _ := w.Broker(at).Job(id)
	return s.Tasks[0].Phase, s.Tasks[0].Site
}

func held(t *testing.T, w *World, id grid.JobID) grid.SiteID {
	t.Helper()
	ok := w.runUntil(w.elapsed+5*time.Second, func() bool {
		p, _ := w.phase("s0", id)
		return p == grid.PhaseStaging
	})
	phase, at := w.phase("s0", id)
	if !ok {
		s, _ := w.Broker("s0").Job(id)
		t.Fatalf("it is %s at %s: %+v", phase, at, s.Answers)
	}
	return at
}

// A reservation made for +30 s opens in its second while best-effort jobs fill the
// sites, and what is bound to it runs in it; the agents of both sides are killed and
// start again in between.
func TestAReservationIsKept(t *testing.T) {
	for name, crash := range map[string][]grid.SiteID{
		"quiet": nil, "its site is killed": {"site"}, "its submitter is killed": {"s0"},
		"both are": {"site", "s0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(Config{Seed: 21, Sites: fleet(4), Network: lan(), CheckFacts: true})
			_ = w.Run(time.Second)
			mustSubmit(t, w, "s0", wasmJob(60, 7*time.Second))
			at := w.now().Add(30 * time.Second)
			id := mustSubmit(t, w, "s0", reservation(at, 20*time.Second, 1))
			holder := held(t, w, id)
			job := wasmJob(1, 5*time.Second)
			job.Spec.Reservation = id
			bound := mustSubmit(t, w, "s0", job)
			_ = w.Run(12 * time.Second)
			for _, s := range crash {
				if s == "site" {
					s = holder
				}
				w.Crash(s)
				w.At(w.elapsed+3*time.Second, func() { w.Restart(s) })
			}
			wantAllDone(t, mustEnd(t, w, 2*time.Minute, "s0", bound))
			runs := w.runs(bound)
			if len(runs) != 1 {
				t.Fatalf("it ran %d times: %+v", len(runs), runs)
			}
			if late := w.started(runs[0]).Sub(at); late < 0 || late > time.Second {
				t.Errorf("it started %s after its time", late)
			}
			wantAllDone(t, mustEnd(t, w, 2*time.Minute, "s0", id))
		})
	}
}

// A site that stays away is replaced, and what is bound follows.
func TestAReservationMovesFromADeadSite(t *testing.T) {
	w := New(Config{Seed: 22, Sites: fleet(4), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	at := w.now().Add(3 * time.Minute)
	id := mustSubmit(t, w, "s0", reservation(at, 20*time.Second, 1))
	holder := held(t, w, id)
	job := wasmJob(1, 5*time.Second)
	job.Spec.Reservation = id
	bound := mustSubmit(t, w, "s0", job)
	if holder == "s0" {
		t.Fatal("it is held where it was submitted")
	}
	_ = w.Run(10 * time.Second)
	w.Crash(holder)
	wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s0", bound))
	runs := w.runs(bound)
	if last := runs[len(runs)-1]; w.started(last).Sub(at).Abs() > time.Second {
		t.Errorf("it started at %s, want %s", w.started(last), at)
	}
	if _, now := w.phase("s0", id); now == holder {
		t.Errorf("it is still at %s", now)
	}
}

// A job with a fixed start whose site dies looks for another site for the same instant.
func TestAFixedStartIsKeptByAnotherSite(t *testing.T) {
	w := New(Config{Seed: 23, Sites: fleet(4), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	job := wasmJob(1, 5*time.Second)
	at := w.now().Add(time.Minute)
	job.Spec.Window.At = at
	job.Spec.Need.MilliCPUs = 3000 // too much for s0
	id := mustSubmit(t, w, "s0", job)
	holder := held(t, w, id)
	_ = w.Run(20 * time.Second)
	w.Crash(holder)
	wantAllDone(t, mustEnd(t, w, 5*time.Minute, "s0", id))
	runs := w.runs(id)
	if len(runs) != 1 || w.started(runs[0]).Sub(at).Abs() > time.Second {
		t.Errorf("it ran %+v, want once from %s on", runs, at)
	}
}

// Ten jobs with a deadline, each of which takes all of the largest site: those that can be
// met are accepted and met, the rest is refused right away and says what could be kept.
func TestDeadlinesAreMetOrRefusedAtOnce(t *testing.T) {
	w := New(Config{Seed: 24, Sites: fleet(2), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	deadline := w.now().Add(time.Minute)
	var ids []grid.JobID
	for range 10 {
		job := wasmJob(1, 18*time.Second)
		job.Spec.Need.MilliCPUs, job.Spec.Need.MFLOPS = 2000, 8000
		job.Spec.Window.Deadline = deadline
		ids = append(ids, mustSubmit(t, w, "s0", job))
		_ = w.Run(w.elapsed + 200*time.Millisecond)
	}
	met, refused := 0, 0
	for _, id := range ids {
		s, _ := w.Broker("s0").Job(id)
		if s.Tasks[0].Phase != grid.PhaseRefused {
			continue
		}
		refused++
		if took := s.Ended.Sub(s.Submitted); took > 200*time.Millisecond {
			t.Errorf("refused after %s", took)
		}
		for _, a := range s.Answers {
			if a.Refusal.Reason != grid.ReasonWindow || a.Refusal.Have <= a.Refusal.Want {
				t.Errorf("%s refused with %+v: when could it have been kept?", a.Site, a.Refusal)
			}
		}
	}
	_ = w.Run(3 * time.Minute)
	for _, id := range ids {
		s, _ := w.Broker("s0").Job(id)
		if s.Tasks[0].Phase == grid.PhaseDone && !s.Ended.After(deadline) {
			met++
		}
	}
	if met != 6 || refused != 4 {
		t.Errorf("%d met, %d refused, want 6 and 4: %v", met, refused, w.Trace().Brokers)
	}
}

// drawPromise draws a job that wants a promise within the first minute.
func (w *World) drawPromise(t *rapid.T) grid.Job {
	at := w.now().Add(time.Duration(rapid.IntRange(5_000, 45_000).Draw(t, "at ms")) * time.Millisecond)
	job := wasmJob(uint32(rapid.IntRange(1, 2).Draw(t, "count")), 5*time.Second)
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		job.Spec.Window.At = at
	case 1:
		job.Spec.Window.Deadline = at
	default:
		job = reservation(at, 10*time.Second, job.Count)
	}
	return job
}

// Whatever goes wrong in the network and whichever site dies: no attempt starts before its
// fixed start, none after its deadline, no two attempts of a task overlap, and each job
// comes to an end. A fixed start is kept to the second; only one that is cut off from
// its lease is late, and given up when its site has waited for that for too long.
func TestPromisesUnderTroubles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		net := Network{
			Latency:   5 * time.Millisecond,
			Jitter:    time.Duration(rapid.IntRange(0, 60).Draw(rt, "jitter ms")) * time.Millisecond,
			Loss:      rapid.SampledFrom([]float64{0, .05, .2}).Draw(rt, "loss"),
			Duplicate: rapid.Float64Range(0, .3).Draw(rt, "duplicate"),
			Reorder:   rapid.Float64Range(0, .3).Draw(rt, "reorder"), Detect: 5 * time.Millisecond,
		}
		w := New(Config{
			Seed: rapid.Uint64().Draw(rt, "seed"), Sites: fleet(4), Network: net, CheckFacts: true,
			CheckEvery: 7,
		})
		_ = w.Run(time.Second)
		jobs := make(map[grid.JobID]grid.Window)
		for range rapid.IntRange(1, 4).Draw(rt, "jobs") {
			job := w.drawPromise(rt)
			if id, err := w.Submit("s0", job); err == nil {
				jobs[id] = job.Spec.Window
			}
		}
		latest := time.Second
		troubles := rapid.IntRange(0, 4).Draw(rt, "troubles")
		for range troubles {
			w.trouble(rt)
		}
		if troubles > 0 || net.Loss > 0 {
			latest = site.Default("s0", grid.Capability{}).GiveUp
		}
		w.recoverAt(50 * time.Second)
		_ = w.Run(51 * time.Second)
		for id, window := range jobs {
			if !w.runUntil(30*time.Minute, func() bool { return w.ended("s0", id) }) {
				s, _ := w.Broker("s0").Job(id)
				rt.Fatalf("not ended: %v, %+v", w.err(), s.Tasks)
			}
			for _, run := range w.runs(id) {
				late := w.started(run).Sub(window.Earliest())
				if !window.At.IsZero() && (late < 0 || late > latest) {
					rt.Errorf("%s started %s after its time", run.Attempt, late)
				}
				if !window.Deadline.IsZero() && !w.started(run).Before(window.Deadline) {
					rt.Errorf("%s started after its deadline", run.Attempt)
				}
			}
		}
		if n := w.Trace().overlaps(); n != 0 {
			rt.Errorf("%d pairs of attempts overlap", n)
		}
		_ = w.Run(w.elapsed + 5*time.Minute)
		if err := w.err(); err != nil {
			rt.Error(err)
		}
		for _, s := range w.order {
			if n := len(w.Site(s).Status().Attempts); n > 0 {
				rt.Errorf("%s still has %d attempts", s, n)
			}
		}
	})
}
