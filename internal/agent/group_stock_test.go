package agent

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// All that is kept for another owner together stays within the bound, whatever is taken again,
// dropped and released; what does not fit changes nothing.
func TestAStockIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &stock{most: 100}
		twin := map[grid.JobID]map[grid.CID]int64{}
		sum := func() (n int64) {
			for _, job := range twin {
				for _, bytes := range job {
					n += bytes
				}
			}
			return n
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			job := grid.JobID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "job"))
			cid := grid.CID(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "cid"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				s.release(job)
				delete(twin, job)
			case 1:
				s.drop(job, cid)
				delete(twin[job], cid)
			default:
				bytes := rapid.Int64Range(0, 120).Draw(t, "bytes")
				fits := sum()-twin[job][cid]+bytes <= 100
				if s.take(job, cid, bytes) != fits {
					t.Fatalf("%d bytes beside %d: want %t", bytes, sum(), fits)
				}
				if fits && twin[job] == nil {
					twin[job] = map[grid.CID]int64{}
				}
				if fits {
					twin[job][cid] = bytes
				}
			}
			if s.sum != sum() {
				t.Fatalf("%d bytes are counted, want %d", s.sum, sum())
			}
		}
	})
	if unbounded := (&stock{}); !unbounded.take("a", "x", 1<<40) {
		t.Error("a stock without a bound has one")
	}
}
