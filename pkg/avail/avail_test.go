package avail

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// near allows a relative error of 1e-9; only an infinity is near an infinity.
func near(a, b float64) bool {
	size := max(math.Abs(a), math.Abs(b))
	return a == b || !math.IsInf(size, 0) && math.Abs(a-b) <= max(1e-12, 1e-9*size)
}

func TestFailureSumsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lambda := rapid.OneOf(rapid.Float64Range(1e-9, 2), rapid.Float64Range(0, 1e300)).Draw(t, "lambda")
		steps := rapid.Int64Range(0, 3000).Draw(t, "steps")
		a, err1 := FailureSum(lambda, steps)
		b, err2 := FailureSumClosed(lambda, steps)
		if err1 != nil || err2 != nil || math.Abs(a-b) > 1e-10*max(a, b)+1e-300 {
			t.Errorf("direct %v (%v), closed %v (%v)", a, err1, b, err2)
		}
	})
}

func TestPriorUp(t *testing.T) {
	day := 24 * time.Hour
	p := DefaultPrior()
	for _, c := range []struct {
		age, next time.Duration
		want      float64
	}{
		{0, 0, 1}, {0, day, 0.5}, {day, day, 2.0 / 3}, {0, time.Hour, 24.0 / 25}, {-day, -day, 1},
	} {
		if got := p.Up(c.age, c.next); !near(got, c.want) {
			t.Errorf("Up(%v, %v) = %v, want %v", c.age, c.next, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.Int64Range(0, math.MaxInt64/4)
		age, next := time.Duration(span.Draw(t, "age")), time.Duration(span.Draw(t, "next"))
		up := p.Up(age, next)
		if !(up >= 0 && up <= 1) || p.Up(2*age, next) < up || p.Up(age, 2*next) > up {
			t.Errorf("Up(%v, %v) = %v", age, next, up)
		}
	})
}

// A node that came up just now has shown nothing: what is believed is the prior, to the last
// digit, and so it is for an age below 0.
func TestANewNodeHasShownNothing(t *testing.T) {
	p := Prior{Failures: 1, Exposure: 1e-9}
	want, err := p.Survival(1)
	for _, age := range []time.Duration{0, -1, -time.Hour} {
		if got := p.Up(age, time.Second); err != nil || got != want {
			t.Errorf("age %s: %v, want %v, %v", age, got, want, err)
		}
	}
	if got := p.Up(1, time.Second); !(got > 1.5*want) {
		t.Errorf("after a nanosecond without a failure: %v, want more than %v", got, want)
	}
	if got := p.Up(1, -1); got != 1 {
		t.Errorf("up for no time: %v", got)
	}
}

func TestPriorRefusesNonsense(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, p := range []Prior{{}, {1, inf}, {inf, 1}, {nan, 1}, {1, -1}} {
		if _, err := p.Observe(0, 0); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("Observe of %v: error = %v", p, err)
		}
		if got := p.Up(0, 0); got != 0 {
			t.Errorf("%v.Up = %v, want 0: a senseless belief must not look good", p, got)
		}
	}
	if _, err := DefaultPrior().Observe(0, inf); !errors.Is(err, argument.ErrInvalid) {
		t.Errorf("infinite exposure: error = %v", err)
	}
	if _, err := DefaultPrior().Survival(nan); !errors.Is(err, argument.ErrInvalid) {
		t.Errorf("tau NaN: error = %v", err)
	}
	if _, err := FailureSum(1, maxSteps+1); !errors.Is(err, argument.ErrInvalid) {
		t.Errorf("too many steps: error = %v", err)
	}
}

// Whatever is believed, survival is a probability.
func TestPriorIsNeverNaN(t *testing.T) {
	extreme := rapid.SampledFrom([]float64{5e-324, 1e-300, 1e-9, 0.5, 1, 2, 745, 1e9, 1e300})
	rapid.Check(t, func(t *rapid.T) {
		prior := Prior{extreme.Draw(t, "a0"), extreme.Draw(t, "b0")}
		tau := rapid.OneOf(extreme, rapid.SampledFrom([]float64{0, math.MaxFloat64, math.Inf(1)})).
			Draw(t, "tau")
		s, err := prior.Survival(tau)
		if err != nil || !(s >= 0 && s <= 1) || math.IsNaN(prior.Rate()) {
			t.Errorf("%+v: %v, %v", prior, s, err)
		}
	})
}
