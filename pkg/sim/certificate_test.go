package sim

import (
	"testing"
	"time"
)

// What a killed agent's supervisors still hold is not run elsewhere, and what they have
// ended is not waited for: the task moves when its job is gone, not with the hint of a
// refused connection, and not with the lease either.
func TestATaskMovesWhenItsJobIsGone(t *testing.T) {
	for _, lag := range []time.Duration{0, 400 * time.Millisecond, 2 * time.Second} {
		w := New(Config{Seed: 4, Sites: fleet(4), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", elsewhere(time.Minute))
		_ = w.Run(5 * time.Second)
		s, _ := w.Broker("s0").Job(id)
		victim, killed := s.Tasks[0].Site, w.elapsed
		w.Kill(victim, lag)
		_ = w.Run(killed + lag + time.Second)
		if n := w.Trace().overlaps(); n != 0 {
			t.Errorf("lag %s: %d overlaps", lag, n)
		}
		var moved time.Duration
		for _, i := range w.Trace().Intervals {
			if i.Site != victim {
				moved = i.From
			}
		}
		if late := moved - killed - lag; moved == 0 || late < 0 || late > 600*time.Millisecond {
			t.Errorf("lag %s: running elsewhere %s after the job was gone", lag, late)
		}
		wantAllDone(t, mustEnd(t, w, 5*time.Minute, "s0", id))
	}
}

// A cut keeps the certificate away, and so does the loss of power: the lease counts then.
func TestWithoutACertificateTheLeaseCounts(t *testing.T) {
	for name, end := range map[string]func(*World, *host){
		"cut":   func(w *World, h *host) { w.Cut(h.spec.ID, "s0"); w.Kill(h.spec.ID, 0) },
		"power": func(w *World, h *host) { w.PowerCut(h.spec.ID) },
	} {
		w := New(Config{Seed: 4, Sites: fleet(4), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", elsewhere(time.Minute))
		_ = w.Run(5 * time.Second)
		s, _ := w.Broker("s0").Job(id)
		victim, killed := s.Tasks[0].Site, w.elapsed
		end(w, w.hosts[victim])
		wantAllDone(t, mustEnd(t, w, 5*time.Minute, "s0", id))
		for _, i := range w.Trace().Intervals {
			if i.Site != victim && i.From < killed+time.Second {
				t.Errorf("%s: running elsewhere %s after the death", name, i.From-killed)
			}
		}
	}
}
