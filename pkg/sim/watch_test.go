package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A watcher changes nothing, and what it is told fits together: no message is lost that
// was not sent, every attempt that ran is gone in the end.
func TestAWatcherSeesAllAndChangesNothing(t *testing.T) {
	play := func(watch func(Sight)) *World {
		net := lan()
		net.Loss = .1
		w := New(Config{Seed: 31, Sites: fleet(4), Network: net, Watch: watch})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", wasmJob(12, 5*time.Second))
		w.At(3*time.Second, func() { w.Crash("s1") })
		w.At(9*time.Second, func() { w.Restart("s1") })
		wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s0", id))
		_ = w.Run(w.elapsed + time.Minute)
		return w
	}
	kinds := make(map[SightKind]int)
	sent := make(map[int]bool)
	ran := make(map[grid.AttemptID]bool)
	last := time.Duration(0)
	w := play(func(s Sight) {
		kinds[s.Kind]++
		if s.At < last {
			t.Errorf("%+v comes after what was seen at %s", s, last)
		}
		last = s.At
		switch s.Kind {
		case SightSent:
			sent[s.Number] = true
		case SightLost:
			if !sent[s.Number] {
				t.Errorf("message %d is lost and was never sent", s.Number)
			}
		case SightRuns:
			ran[s.Attempt] = true
		case SightGone:
			delete(ran, s.Attempt)
		default: // only counted
		}
	})
	if len(ran) > 0 {
		t.Errorf("%d attempts ran and are not gone", len(ran))
	}
	if kinds[SightSent] != w.Messages() || kinds[SightUp] != 5 || kinds[SightDown] != 1 {
		t.Errorf("seen %v, want %d messages, 5 starts and 1 death", kinds, w.Messages())
	}
	if kinds[SightLost] == 0 || kinds[SightReported] == 0 || kinds[SightFrozen] == 0 {
		t.Errorf("seen %v: a kind was never seen", kinds)
	}
	if alone := play(nil); alone.Hash() != w.Hash() {
		t.Errorf("unwatched the hash is %x, watched %x", alone.Hash(), w.Hash())
	}
}

// Where nobody watches, nothing is allocated for it.
func TestWatchingCostsNothingUnlessAsked(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(2), Network: lan()})
	h := w.hosts["s0"]
	allocations := testing.AllocsPerRun(100, func() {
		h.seeAttempt(SightRuns, grid.AttemptID{})
		h.seeLost(h, 1)
	})
	if allocations != 0 {
		t.Errorf("%.1f allocations", allocations)
	}
}
