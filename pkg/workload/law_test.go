package workload

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// laws are one of each kind, and wide ones.
func someLaws() []Law {
	return []Law{
		{Normal, 100, 0.25},
		{Normal, 100, 1},
		{Normal, 3, 4},
		{Exponential, 100, 0},
		{Weibull, 100, 0.5},
		{Weibull, 100, 3},
		{LogNormal, 100, 1},
		{LogNormal, 7, 0.3},
	}
}

// Means, medians and the spread of what is drawn are those that the law gives.
func TestLawsDrawWhatTheySay(t *testing.T) {
	for _, law := range someLaws() {
		const n = 100_000
		numbers := law.Sample(Stream(1, "law"), n)
		sum, squares := 0.0, 0.0
		for _, x := range numbers {
			if !(x > 0) {
				t.Fatalf("%+v: drew %v", law, x)
			}
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / n
		off := math.Abs(mean-law.Mean()) / math.Sqrt((squares/n-mean*mean)/n)
		if off > 4 {
			t.Errorf("%+v: mean of what is drawn %v, of the law %v: %.1f standard errors", law, mean,
				law.Mean(), off)
		}
		below := 0
		for _, x := range numbers {
			if x < law.Median() {
				below++
			}
		}
		if share := float64(below) / n; math.Abs(share-0.5) > 0.007 {
			t.Errorf("%+v: %.4f of what is drawn is below the median %v", law, share, law.Median())
		}
	}
}

// Means and medians of the laws, by their formulas.
func TestMeansAndMedians(t *testing.T) {
	for _, c := range []struct {
		law          Law
		mean, median float64
	}{
		{Law{Exponential, 100, 0}, 100, 100 * math.Ln2},
		{Law{Weibull, 2.964, 0.393}, 2.964 * math.Gamma(1+1/0.393), 2.964 * math.Pow(math.Ln2, 1/0.393)},
		{Law{LogNormal, 0.5, 2}, 0.5 * math.Exp(2), 0.5},
		{Law{Normal, 50, 0.1}, 50, 50},
		// At a standard deviation of the mean 16 % is cut off: phi(1)/Phi(1) = .2876.
		{Law{Normal, 10, 1}, 12.876, 12.002},
	} {
		if m := c.law.Mean(); math.Abs(m-c.mean) > 1e-4*c.mean {
			t.Errorf("%+v: mean %v, want %v", c.law, m, c.mean)
		}
		if m := c.law.Median(); math.Abs(m-c.median) > 1e-4*c.median {
			t.Errorf("%+v: median %v, want %v", c.law, m, c.median)
		}
		if m := c.law.WithMean(7); math.Abs(m.Mean()-7) > 1e-9 || m.Shape != c.law.Shape {
			t.Errorf("%+v with a mean of 7: %+v, %v", c.law, m, m.Mean())
		}
	}
}

// What remains of a duration at an instant: its mean is that of the squares by twice the
// mean, as renewal theory has it.
func TestWhatRemains(t *testing.T) {
	for _, law := range someLaws() {
		const n = 100_000
		rng := Stream(3, "remaining")
		sum, squares, remaining := 0.0, 0.0, 0.0
		for range n {
			x, left := law.Draw(rng), law.remaining(rng)
			sum, squares = sum+x, squares+x*x
			remaining += left
		}
		want := squares / 2 / sum
		got := remaining / n
		if math.Abs(got-want) > 0.06*want {
			t.Errorf("%+v: %v remain on average, want %v", law, got, want)
		}
		if met := law.met(rng); !(met > 0) {
			t.Errorf("%+v: met %v", law, met)
		}
	}
}

func TestLawsAreChecked(t *testing.T) {
	for _, law := range append(someLaws(),
		Law{Weibull, 1e-9, 0.1}, Law{Weibull, 1e9, 100}, Law{Normal, 1, 1e-6}, Law{Normal, 1, 10},
		Law{LogNormal, 1, 1e-6}, Law{LogNormal, 1, 6}, Law{Exponential, math.MaxFloat64, 0}) {
		if err := law.Validate(); err != nil {
			t.Errorf("%+v: %v", law, err)
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		law  Law
		want string
	}{
		{Law{"", 1, 1}, `law: invalid law: want one of normal, exponential, weibull, lognormal, have ""`},
		{Law{"gamma", 0, 0}, `have "gamma"`},
		{Law{Weibull, 0, 1}, "scale: invalid law: want a positive number, have 0"},
		{Law{Weibull, -1, 1}, "scale: "},
		{Law{Weibull, nan, 1}, "scale: "},
		{Law{Weibull, inf, 1}, "scale: "},
		{Law{Weibull, 1, 0.09}, "shape: invalid law: want 0.1 to 100 for a weibull law, have 0.09"},
		{Law{Weibull, 1, 101}, "shape: "},
		{Law{Weibull, 1, nan}, "shape: "},
		{Law{Normal, 1, 0}, "shape: invalid law: want 1e-06 to 10 for a normal law"},
		{Law{Normal, 1, 10.1}, "shape: "},
		{Law{LogNormal, 1, 0}, "shape: invalid law: want 1e-06 to 6 for a lognormal law"},
		{Law{LogNormal, 1, 6.1}, "shape: "},
		{Law{Exponential, 1, 0.1}, "shape: invalid law: an exponential law has none, have 0.1"},
		{Law{Exponential, 1, nan}, "shape: "},
	} {
		if err := c.law.Validate(); !errors.Is(err, errLaw) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error = %v, want %q", c.law, err, c.want)
		}
	}
	if !slices.Equal(Laws(), []string{"normal", "exponential", "weibull", "lognormal"}) {
		t.Errorf("laws %v", Laws())
	}
}

// Machines of every law are up for the share of time that was asked for.
func TestAvailabilityIsGenerated(t *testing.T) {
	const machines, cycles = 1000, 50
	for _, up := range []Law{
		{Normal, 1, 0.25}, {Normal, 1, 0.8}, {Exponential, 1, 0}, {Weibull, 1, 0.5}, {LogNormal, 1, 1},
	} {
		for _, want := range []float64{0.9, 0.5, 0.3} {
			up = up.WithMean(7200 * want)
			turns := Turns{Up: up, Down: up.WithMean(7200 * (1 - want))}
			if got := turns.Availability(); math.Abs(got-want) > 1e-12 {
				t.Errorf("%+v: availability %v, want %v", turns, got, want)
			}
			var begins, ups, all float64
			rng := Stream(11, "machines")
			for range machines {
				for i, s := range turns.Spells(rng, cycles*7200) {
					all += s.To - s.From
					if !s.Up {
						continue
					}
					ups += s.To - s.From
					if i == 0 {
						begins++
					}
				}
			}
			if got := ups / all; math.Abs(got-want) > 0.01 {
				t.Errorf("%s: up for %.4f of the time, want %v", up.Name, got, want)
			}
			if got := begins / machines; math.Abs(got-want) > 0.05 {
				t.Errorf("%s: %.3f of the machines begin up, want %v", up.Name, got, want)
			}
			if math.Abs(all-machines*cycles*7200) > 1 {
				t.Errorf("%s: watched for %v seconds", up.Name, all)
			}
		}
	}
}

// A short time is as good as a long one: the first hour of many machines has the same
// availability, also where durations are long.
func TestAvailabilityFromTheFirstHour(t *testing.T) {
	for _, law := range []Law{
		{Weibull, 40_000, 0.5}, {LogNormal, 40_000, 1.2}, {Normal, 40_000, 0.3},
	} {
		turns := Turns{Up: law, Down: law.WithMean(law.Mean() / 9)}
		const machines = 30_000
		ups := 0.0
		rng := Stream(12, "machines")
		for range machines {
			for _, s := range turns.Spells(rng, 3600) {
				if s.Up {
					ups += s.To - s.From
				}
			}
		}
		if got := ups / machines / 3600; math.Abs(got-0.9) > 0.01 {
			t.Errorf("%+v: up for %.4f of the first hour, want .9", law, got)
		}
	}
}

// The same seed gives the same spells, which can be looked at in testdata.
func TestSpellsRepeat(t *testing.T) {
	var text strings.Builder
	for _, law := range someLaws() {
		turns := Turns{Up: law, Down: law.WithMean(20)}
		fmt.Fprintf(&text, "%+v\n", turns)
		for seed := range uint64(4) {
			for _, s := range turns.Spells(Stream(seed, "spells"), 400) {
				fmt.Fprintf(&text, "%d %t %.9g %.9g\n", seed, s.Up, s.From, s.To)
			}
		}
		fmt.Fprintf(&text, "%.9g\n", law.Sample(Stream(1, "sample"), 5))
	}
	golden(t, "spells.txt", text.String())
}

// Spells follow each other in turns without a gap, from 0 to the end.
func TestSpellsAreInTurns(t *testing.T) {
	turns := Turns{Up: Law{Exponential, 50, 0}, Down: Law{Weibull, 10, 2}}
	for seed := range uint64(20) {
		spells := turns.Spells(Stream(seed, "x"), 1000)
		at := 0.0
		for i, s := range spells {
			if s.From != at || s.To <= s.From || i > 0 && s.Up == spells[i-1].Up {
				t.Fatalf("spell %d: %+v after %v", i, s, at)
			}
			at = s.To
		}
		if at != 1000 || len(spells) < 5 {
			t.Errorf("%d spells end at %v", len(spells), at)
		}
	}
	if spells := turns.Spells(Stream(1, "x"), 0); len(spells) != 0 {
		t.Errorf("spells of no time: %v", spells)
	}
}

// Half of all numbers are above the median, all above 0. Survival says which share of all draws is
// above a number.
func TestSurvival(t *testing.T) {
	for _, l := range []Law{
		{Normal, 3, .25},
		{Normal, 3, 2}, // much of it is cut at 0
		{Exponential, 3, 0},
		{Weibull, 3, .5},
		{LogNormal, 3, 1},
	} {
		half, all := l.Survival(l.Median()), min(l.Survival(0), l.Survival(-1))
		if math.Abs(half-.5) > 1e-9 || all != 1 {
			t.Errorf("%+v: %v above the median, %v above 0", l, half, all)
		}
		rng := Stream(1, "survival")
		const draws = 20_000
		for _, x := range []float64{.5, 3, 7} {
			above := 0.0
			for range draws {
				if l.Draw(rng) > x {
					above++
				}
			}
			if want := l.Survival(x); math.Abs(above/draws-want) > .015 {
				t.Errorf("%+v: %v of all are above %v, want %v", l, above/draws, x, want)
			}
		}
	}
}
