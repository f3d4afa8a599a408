package metrics

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Numbers computed by a second implementation are compared in internal/vectors.

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= max(1e-12, 1e-9*max(math.Abs(a), math.Abs(b)))
}

// "2n.TTL + max(CT_n)" (thesis, 4.1) and what a broadcast needs.
func TestPaperPlacingTime(t *testing.T) {
	paper, parallel, err := PlacingTime(100, 0.5, []float64{0.1, 0.3, 0.2})
	if err != nil || !near(paper, 100.3) || !near(parallel, 1.3) {
		t.Errorf("%v, %v, %v", paper, parallel, err)
	}
	paper, parallel, err = PlacingTime(0, math.Inf(1), nil)
	if paper != 0 || !math.IsInf(parallel, 1) || err != nil {
		t.Errorf("no sites: %v, %v, %v", paper, parallel, err)
	}
}

// Who reads a number beside an error reads 0.
func TestNothingStandsBesideAnError(t *testing.T) {
	for name, c := range map[string]struct {
		sites   int64
		ttl     float64
		compute []float64
	}{
		"sites": {-1, 1, nil}, "TTL": {1, -1, nil}, "compute": {1, 1, []float64{1, -1}},
		"no number": {1, 1, []float64{math.NaN()}},
	} {
		paper, parallel, err := PlacingTime(c.sites, c.ttl, c.compute)
		if paper != 0 || parallel != 0 || !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%s: %v and %v beside %v", name, paper, parallel, err)
		}
	}
}

func amounts() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(0, 1e6),
		rapid.SampledFrom([]float64{0, 5e-324, 1e300, math.MaxFloat64, math.Inf(1)}))
}

// A broadcast takes no longer than sending to one site after the other.
func TestPlacingTimeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := rapid.OneOf(rapid.Int64Range(1, 9),
			rapid.SampledFrom([]int64{1, 1e9, math.MaxInt64})).Draw(t, "n")
		paper, parallel, err := PlacingTime(sites,
			amounts().Draw(t, "TTL"), []float64{amounts().Draw(t, "CT")})
		if err != nil || !(parallel >= 0) || paper < parallel {
			t.Errorf("%d sites: %v and %v, %v", sites, paper, parallel, err)
		}
	})
}
