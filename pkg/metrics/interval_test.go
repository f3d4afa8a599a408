package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Student's t for 95 % and 2 degrees of freedom is 4.303: W. S. Gosset, "The Probable Error of a
// Mean", Biometrika 6(1), 1908.
func TestIntervalOf(t *testing.T) {
	got := IntervalOf([]float64{1, 2, 3})
	if !near(got.Mean, 2) || math.Abs(got.CI95-4.302652729749464/math.Sqrt(3)) > 1e-9 {
		t.Errorf("1, 2, 3: %+v", got)
	}
	if got = IntervalOf([]float64{7}); got != (Interval{Mean: 7}) {
		t.Errorf("one replication: %+v", got)
	}
	if got = IntervalOf(nil); got != (Interval{}) {
		t.Errorf("none: %+v", got)
	}
}

// Of 95 % of all samples the interval holds the mean that they were drawn from: here of sums of
// twelve uniform numbers, which are nearly normal.
func TestIntervalsHoldTheMean(t *testing.T) {
	const samples, size = 2000, 5
	rng := rand.New(rand.NewPCG(1, 2))
	held := 0
	for range samples {
		var values []float64
		for range size {
			sum := -6.0
			for range 12 {
				sum += rng.Float64()
			}
			values = append(values, sum)
		}
		if i := IntervalOf(values); math.Abs(i.Mean) <= i.CI95 {
			held++
		}
	}
	if share := float64(held) / samples; math.Abs(share-.95) > .02 {
		t.Errorf("%.3f of the intervals hold the mean, want .95", share)
	}
}

// The order of the replications does not matter, and the interval grows with their unit.
func TestIntervalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 2, 20).Draw(t, "values")
		a := IntervalOf(values)
		moved := rapid.Permutation(values).Draw(t, "moved")
		for i := range moved {
			moved[i] *= 8
		}
		b := IntervalOf(moved)
		scale := max(1, math.Abs(b.Mean), b.CI95)
		if math.Abs(8*a.Mean-b.Mean) > 1e-9*scale || math.Abs(8*a.CI95-b.CI95) > 1e-6*scale {
			t.Errorf("%+v became %+v", a, b)
		}
	})
}
