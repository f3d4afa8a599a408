package workload

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// What was drawn from a law gives that law back, whatever its unit.
func TestFitFindsTheLaw(t *testing.T) {
	for _, want := range []Law{
		{Weibull, 10_000, 0.393},
		{Weibull, 1e-3, 0.7},
		{Weibull, 5, 1},
		{Weibull, 1e9, 4.5},
		{LogNormal, 3600, 2.2},
		{LogNormal, 1e-3, 0.3},
	} {
		got, err := Fit(want.Name, want.Sample(Stream(1, "fit"), 20_000))
		if err != nil || got.Name != want.Name || math.Abs(got.Shape/want.Shape-1) > 0.02 ||
			math.Abs(math.Log(got.Scale/want.Scale)) > 0.05 {
			t.Errorf("fitted %+v, %v, want %+v", got, err, want)
		}
	}
}

// The fit is the maximum: laws beside it are less likely.
func TestFitIsTheMostLikely(t *testing.T) {
	durations := []float64{1, 2.5, 0.2, 40, 7, 7, 3}
	for _, name := range []string{Weibull, LogNormal} {
		best, err := Fit(name, durations)
		if err != nil {
			t.Fatal(err)
		}
		top := best.LogLikelihood(durations)
		for _, off := range []float64{0.999, 1.001} {
			for _, other := range []Law{
				{name, best.Scale * off, best.Shape}, {name, best.Scale, best.Shape * off},
			} {
				if l := other.LogLikelihood(durations); l >= top {
					t.Errorf("%+v: %v, and %+v: %v", best, top, other, l)
				}
			}
		}
	}
	// Of two numbers, by hand: mean and deviation of ln 1 and ln e^2.
	two, err := Fit(LogNormal, []float64{1, math.Exp(2)})
	if err != nil || math.Abs(two.Scale-math.E) > 1e-12 || math.Abs(two.Shape-1) > 1e-12 {
		t.Errorf("fitted %+v, %v", two, err)
	}
	one := Law{Exponential, 2, 0}.LogLikelihood([]float64{2, 4})
	if want := math.Log(0.5) - 1.5; math.Abs(one-want) > 1e-12 {
		t.Errorf("likelihood %v, want %v", one, want)
	}
}

func TestFitRefuses(t *testing.T) {
	for name, durations := range map[string][]float64{
		"none": nil, "one": {3}, "alike": {2, 2, 2}, "zero": {1, 0, 2}, "negative": {1, -1},
		"not a number": {1, 2, math.NaN()}, "endless": {1, math.Inf(1)},
	} {
		for _, law := range []string{Weibull, LogNormal} {
			if got, err := Fit(law, durations); !errors.Is(err, errFit) || got != (Law{}) ||
				!strings.Contains(err.Error(), "fit a "+law+" law to ") {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	if _, err := Fit(Normal, []float64{1, 2}); !errors.Is(err, errLaw) ||
		!strings.Contains(err.Error(), "want weibull or lognormal, have \"normal\"") {
		t.Errorf("error = %v", err)
	}
}
