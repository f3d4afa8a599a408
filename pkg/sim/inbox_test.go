package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A timer that is set anew by what comes before it in a batch does not fire.
func TestABatchKeepsTheContractOfTimers(t *testing.T) {
	w := New(Config{Seed: 4, Sites: fleet(2), Network: lan()})
	_ = w.Run(time.Second)
	w.Batch("s1", 500*time.Millisecond)
	w.Input("s1", step.Pause{Until: w.hosts["s1"].now().Add(time.Second)})
	w.Input("s1", step.Pause{Until: w.hosts["s1"].now().Add(time.Minute)})
	if w.Site("s1").Status().Paused {
		t.Error("it did not wait for its batch")
	}
	// The timer of the pause fires into the batch that has another pause before it.
	_ = w.Run(1700 * time.Millisecond)
	w.Batch("s1", 2*time.Second)
	w.Input("s1", step.Pause{Until: w.hosts["s1"].now().Add(3 * time.Second)})
	_ = w.Run(4 * time.Second)
	w.Input("s1", step.Pause{Until: w.hosts["s1"].now().Add(time.Hour)})
	_ = w.Run(10 * time.Second)
	if !w.Site("s1").Status().Paused {
		t.Error("the first pause's timer has ended the second pause")
	}
}

// Loops that take much together decide as others do: all is done, nothing twice.
func TestBatchesLoseNothing(t *testing.T) {
	for seed := range uint64(3) {
		w := New(Config{Seed: seed, Sites: fleet(4), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		for _, id := range w.order {
			w.Batch(id, 80*time.Millisecond)
			w.SlowDisk(id, 30*time.Millisecond)
		}
		id := mustSubmit(t, w, "s0", wasmJob(20, 8*time.Second))
		w.At(6*time.Second, func() { w.CrashInStep("s3") })
		w.At(12*time.Second, func() { w.Restart("s3") })
		wantAllDone(t, mustEnd(t, w, 10*time.Minute, "s0", id))
		if n := w.Trace().overlaps(); n != 0 {
			t.Errorf("seed %d: %d overlaps", seed, n)
		}
	}
}
