package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// whole asks for all of a site of twoCores.
func whole(job grid.Job) grid.Job {
	job.Spec.Need.MilliCPUs, job.Spec.Need.MFLOPS = 2000, 0
	return job
}

// began is when the first attempt of a job was started, since the world began.
func (w *World) began(t *testing.T, id grid.JobID) time.Duration {
	t.Helper()
	for _, run := range w.Trace().Intervals {
		if run.Attempt.Task.Job == id {
			return run.From
		}
	}
	t.Fatalf("job %s never ran", id)
	return 0
}

// Inputs of 100 MB take 8 s over links of 100 Mbit/s or more. A job that waits in the
// plan has them when its place comes, and starts right away.
func TestInputsAreFetchedWhileAJobWaits(t *testing.T) {
	sites := twoCores(2)
	sites[0].Capability.Total.MilliCPUs = 100 // only submits
	sites[0].Capability.UpBps = 100_000_000
	w := New(Config{Seed: 7, Sites: sites, Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	first := mustSubmit(t, w, "s0", whole(queuedJob(30*time.Second, false)))
	_ = w.Run(2 * time.Second)
	job := whole(queuedJob(5*time.Second, false))
	job.Spec.Inputs = []grid.Input{{Path: "/in", CID: "binput", Bytes: 100_000_000}}
	second := mustSubmit(t, w, "s0", job)
	wantAllDone(t, mustEnd(t, w, 5*time.Minute, "s0", second))
	gap := w.began(t, second) - w.began(t, first) - 30*time.Second
	if gap < 0 || gap > 100*time.Millisecond {
		t.Errorf("started %s after the one before it had ended", gap)
	}
}

// fixedJob starts exactly then.
func (w *World) fixedJob(in, run time.Duration) grid.Job {
	job := whole(wasmJob(1, run))
	job.Spec.Window.At = w.now().Add(in)
	return job
}

func TestAPromisedStartIsKeptAmongBestEffort(t *testing.T) {
	w := New(Config{Seed: 8, Sites: twoCores(5), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	filling := mustSubmit(t, w, "s0", wasmJob(200, 4*time.Second))
	at := w.elapsed + 30*time.Second
	id := mustSubmit(t, w, "s1", w.fixedJob(30*time.Second, 10*time.Second))
	wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s1", id))
	if late := w.began(t, id) - at; late < 0 || late > 100*time.Millisecond {
		t.Errorf("started %s after its time", late)
	}
	wantAllDone(t, mustEnd(t, w, 20*time.Minute, "s0", filling))
}

// Who dies before the time and comes back keeps its promise, and so does the mesh if
// the site stays away.
func TestAPromisedStartOutlivesItsSite(t *testing.T) {
	for _, back := range []bool{true, false} {
		w := New(Config{Seed: 9, Sites: twoCores(3), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		at := w.elapsed + time.Minute
		own := w.fixedJob(59*time.Second, 30*time.Second) // fills the submitter's own site
		mustSubmit(t, w, "s0", own)
		_ = w.Run(2 * time.Second)
		id := mustSubmit(t, w, "s0", w.fixedJob(59*time.Second, 10*time.Second))
		_ = w.Run(5 * time.Second)
		s, _ := w.Broker("s0").Job(id)
		holder := s.Tasks[0].Site
		w.At(10*time.Second, func() { w.Crash(holder) })
		if back {
			w.At(12*time.Second, func() { w.Restart(holder) })
		}
		wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s0", id))
		if late := w.began(t, id) - at; late < 0 || late > 100*time.Millisecond {
			t.Errorf("back %t: started %s after its time", back, late)
		}
	}
}

func TestAReservationOutlivesBothSides(t *testing.T) {
	w := New(Config{Seed: 10, Sites: twoCores(3), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	at := w.elapsed + 2*time.Minute
	spec := whole(wasmJob(1, time.Minute))
	spec.Spec.Kind, spec.Spec.Module = grid.KindReservation, grid.Input{}
	spec.Spec.Window.At = w.now().Add(2 * time.Minute)
	reservation := mustSubmit(t, w, "s0", spec)
	_ = w.Run(3 * time.Second)
	s, _ := w.Broker("s0").Job(reservation)
	holder := s.Tasks[0].Site
	bound := whole(wasmJob(1, 10*time.Second))
	bound.Spec.Reservation = reservation
	id := mustSubmit(t, w, "s0", bound)
	w.At(10*time.Second, func() { w.Crash("s0") })
	w.At(20*time.Second, func() { w.Restart("s0") })
	w.At(40*time.Second, func() { w.Crash(holder) })
	w.At(45*time.Second, func() { w.Restart(holder) })
	filling := mustSubmit(t, w, "s1", wasmJob(100, 4*time.Second))
	wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s0", id))
	if late := w.began(t, id) - at; late < 0 || late > time.Second {
		t.Errorf("started %s after the reservation began", late)
	}
	wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s0", reservation))
	wantAllDone(t, mustEnd(t, w, 20*time.Minute, "s1", filling))
}

// Whatever is asked for, a promise that was given is kept where nothing fails: jobs
// with a fixed start begin in their second and those with a deadline end before it,
// among others that take less or a little more than their estimate.
func TestPromisesAreKeptWhateverElseIsAskedFor(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := New(Config{
			Seed: rapid.Uint64Max(1000).Draw(r, "seed"), Sites: twoCores(3), Network: lan(),
			Run: func(task grid.Task, estimate time.Duration, _ SiteSpec) (time.Duration, grid.Exit) {
				if len(task.Args) > 0 { // not promised anything
					estimate = estimate * 3 / 2
				}
				return estimate, grid.Exit{Cause: grid.CauseExited}
			},
		})
		_ = w.Run(time.Second)
		var promised []grid.JobID
		for range rapid.IntRange(5, 15).Draw(r, "jobs") {
			job := wasmJob(1, time.Duration(rapid.IntRange(2, 20).Draw(r, "runtime s"))*time.Second)
			job.Spec.Need.MFLOPS = 0
			in := time.Duration(rapid.IntRange(5, 60).Draw(r, "in s")) * time.Second
			switch rapid.IntRange(0, 2).Draw(r, "class") {
			case 0:
				job.Spec.Window.At = w.now().Add(in)
			case 1:
				job.Spec.Window.Deadline = w.now().Add(in)
			default:
				job.Spec.Map, job.Spec.Args = grid.MapSeconds, []string{"longer"}
			}
			id, err := w.Submit("s0", job)
			if err != nil { // a deadline nearer than its run time
				continue
			}
			if job.Spec.Window.Promised() {
				promised = append(promised, id)
			}
			pause := rapid.IntRange(0, 5_000).Draw(r, "pause ms")
			_ = w.Run(w.elapsed + time.Duration(pause)*time.Millisecond)
		}
		_ = w.Run(w.elapsed + 10*time.Minute)
		for _, id := range promised {
			w.wantKept(r, id)
		}
		if n := w.Trace().overlaps(); n != 0 {
			r.Errorf("%d pairs of attempts overlap", n)
		}
	})
}

// wantKept fails if a job was accepted and not done in its time.
func (w *World) wantKept(r *rapid.T, id grid.JobID) {
	s, _ := w.Broker("s0").Job(id)
	task, window := s.Tasks[0], s.Job.Spec.Window
	if task.Phase == grid.PhaseRefused && len(task.Tries) == 0 {
		return
	}
	if task.Phase != grid.PhaseDone {
		r.Errorf("job %s with %+v is %s", id, window, task.Phase)
		for _, try := range task.Tries {
			r.Errorf("%s: awarded %s, started %s, ended %s: %s",
				try.Site, try.AwardedAt, try.StartedAt, try.EndedAt, try.Outcome)
		}
		return
	}
	last := task.Tries[len(task.Tries)-1]
	if late := last.StartedAt.Sub(window.At); !window.At.IsZero() && (late < 0 || late > time.Second) {
		r.Errorf("job %s began %s after its time", id, late)
	}
	if late := last.EndedAt.Sub(window.Deadline); !window.Deadline.IsZero() &&
		late > 100*time.Millisecond {
		r.Errorf("job %s ended %s after its deadline", id, late)
	}
}
