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

// Two means of the same are up to 1 apart in 95 % of all cases, also where one kind varies more;
// of different things they are apart.
func TestApart(t *testing.T) {
	const pairs, size = 2000, 6
	rng := rand.New(rand.NewPCG(3, 4))
	sample := func(mean, deviation float64) Interval {
		values := make([]float64, size)
		for i := range values {
			values[i] = mean + deviation*rng.NormFloat64()
		}
		return IntervalOf(values)
	}
	for _, other := range []float64{1, 4} {
		near := 0
		for range pairs {
			if times, told := sample(0, 1).Apart(sample(0, other), size); told && times <= 1 {
				near++
			}
		}
		if share := float64(near) / pairs; share < .935 || share > .965 {
			t.Errorf("deviations 1 and %v: %v are close", other, share)
		}
	}
	a, b := sample(0, 1), sample(9, 1)
	part, known := a.Apart(b, size)
	if back, _ := b.Apart(a, size); !known || part < 2 || !near(back, part) {
		t.Errorf("%v, %v and %v", part, back, known)
	}
	// Welch's test for 5 and 5 with t(.975, 8) = 2.306 (Gosset's tables) and 4 degrees: 2.776.
	x, y := Interval{Mean: 1, CI95: 2.7764451051977987}, Interval{Mean: 2, CI95: 2.7764451051977987}
	part, _ = x.Apart(y, 5)
	if want := 1 / (2.3060041350333704 * math.Sqrt2); math.Abs(part-want) > 1e-9 {
		t.Errorf("%v, want %v", part, want)
	}
	for _, n := range []int{-1, 0, 1} {
		if _, told := a.Apart(b, n); told {
			t.Errorf("%d replications say nothing", n)
		}
	}
	if _, told := (Interval{Mean: 1}).Apart(Interval{Mean: 2}, 9); told {
		t.Error("what does not vary says nothing")
	}
	part, known = Interval{Mean: 1, CI95: 1}.Apart(Interval{Mean: 2}, 9)
	if !known || !near(part, 1) {
		t.Errorf("beside one that does not vary: %v, %t", part, known)
	}
}
