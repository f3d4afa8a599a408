package plan

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestPlay is many short plays and some long ones, with operations from a seeded
// source; the tag e2e makes it a million operations.
func TestPlay(t *testing.T) { play(t, 0, 150, true) }

// play plays the seeds from one to before another.
func play(t *testing.T, from, to uint64, closely bool) {
	t.Helper()
	for seed := from; seed < to; seed++ {
		random := rand.New(rand.NewPCG(7, seed))
		w := newWorld(seeded{t, seed}, random.IntN)
		w.closely = closely
		for range 20 + int(seed%8)*20 {
			w.step()
		}
	}
}

// seeded names the seed of a play that fails.
type seeded struct {
	*testing.T
	seed uint64
}

func (s seeded) Fatalf(format string, args ...any) {
	s.Helper()
	s.T.Fatalf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

// TestPlanKeepsItsPromises is the same, with operations that shrink.
func TestPlanKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") })
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			w.step()
		}
	})
}

// FuzzPlanner reads operations from bytes.
func FuzzPlanner(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3})
	f.Add([]byte("the quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 2000 {
			return
		}
		more := true
		w := newWorld(t, func(n int) int {
			if len(script) == 0 {
				more = false
				return 0
			}
			b := int(script[0])
			script = script[1:]
			return b % n
		})
		for more {
			w.step()
		}
	})
}
