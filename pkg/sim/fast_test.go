package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Without the wire format and the hash, the machines decide what they decide with them, at the
// same times.
func TestFastDecidesTheSame(t *testing.T) {
	for seed := range uint64(6) {
		play := func(fast bool) *World {
			w := New(Config{
				Seed: seed, Sites: fleet(6), Fast: fast, CheckFacts: true,
				Network: Network{
					Latency: 2 * time.Millisecond, Jitter: time.Millisecond, Loss: .05, Duplicate: .05,
					Reorder: .05, Detect: 5 * time.Millisecond,
				},
			})
			for n := range 4 {
				w.At(time.Duration(n+1)*time.Second, func() {
					job := wasmJob(5, 20*time.Second)
					if _, err := w.Submit("s0", job); err != nil {
						t.Error(err)
					}
				})
			}
			w.At(10*time.Second, func() { w.Crash("s3") })
			w.At(20*time.Second, func() { w.Restart("s3"); w.Isolate("s4") })
			w.At(60*time.Second, func() { w.Rejoin("s4") })
			if err := w.Run(5 * time.Minute); err != nil {
				t.Fatal(err)
			}
			return w
		}
		slow, fast := play(false), play(true)
		if diff := cmp.Diff(slow.Trace().Notes, fast.Trace().Notes); diff != "" {
			t.Errorf("seed %d: decisions (-slow +fast):\n%s", seed, diff)
		}
		if diff := cmp.Diff(slow.Trace().Intervals, fast.Trace().Intervals); diff != "" {
			t.Errorf("seed %d: runs (-slow +fast):\n%s", seed, diff)
		}
		if slow.Messages() != fast.Messages() || slow.Hash() == fast.Hash() {
			t.Errorf("seed %d: %d and %d messages, hash %x both", seed, slow.Messages(), fast.Messages(),
				slow.Hash())
		}
	}
}
