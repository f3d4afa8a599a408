package nodes

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// What is up is certainly no more than that, whatever the quotients round to.
func TestUpNowIsNeverMoreThanCertain(t *testing.T) {
	for mttf := 1.0; mttf <= 200; mttf++ {
		for mttr := 1.0; mttr <= 200; mttr++ {
			if up, err := CTMCUp(mttf, mttr, 0, true); err != nil || up > 1 || up < 1-1e-15 {
				t.Fatalf("MTTF %v, MTTR %v: up now with %v, %v", mttf, mttr, up, err)
			}
		}
	}
}

// Two failures at least: what the Poisson distribution has beyond none and one, summed from the
// smallest term on.
func TestErlangIsThePoissonTail(t *testing.T) {
	for _, u := range []float64{1e-9, 1e-4, 1e-3, 5e-3, 9.9e-3, 1e-2, 1.1e-2, 0.5, 3, 40, 799, 801} {
		term := math.Exp(-u)
		var terms []float64
		for k := 1; k < 2000; k++ {
			if term *= u / float64(k); k >= 2 {
				terms = append(terms, term)
			}
		}
		want := 0.0
		for _, term := range slices.Backward(terms) {
			want += term
		}
		if u > 700 { // the first terms are below what a float64 holds
			want = 1
		}
		got, err := Erlang2(u, 1)
		if err != nil || math.Abs(got-want) > 2e-12*want {
			t.Errorf("u = %v: %v, %v, want %v", u, got, err, want)
		}
		if split, _ := Erlang2(u/4, 4); math.Abs(split-want) > 2e-12*want {
			t.Errorf("u = %v in four steps: %v, want %v", u, split, want)
		}
	}
}

// A mixture survives as the mean of its phases does; over a moment it fails with the mean of
// their rates, to the last digits.
func TestAMixtureIsTheMeanOfItsPhases(t *testing.T) {
	mix := HyperExponential{{0.2, 10}, {0.5, 40}, {0, 7}, {0.3, 1000}}
	survival := func(tau float64) float64 {
		return 0.2*math.Exp(-tau/10) + 0.5*math.Exp(-tau/40) + 0.3*math.Exp(-tau/1000)
	}
	rate := func(age float64) float64 {
		return (0.02*math.Exp(-age/10) + 0.0125*math.Exp(-age/40) + 0.0003*math.Exp(-age/1000)) /
			survival(age)
	}
	for _, age := range []float64{0, 1, 20, 300, 5000} {
		for _, tau := range []float64{1, 15, 30, 1000, 20000} {
			got, err := mix.LogSurvival(age, tau)
			if want := math.Log(survival(age+tau) / survival(age)); err != nil ||
				math.Abs(got-want) > 1e-11*math.Abs(want) {
				t.Errorf("age %v, %v s more: %v, %v, want %v", age, tau, got, err, want)
			}
		}
		for _, tau := range []float64{1e-20, 1e-12} {
			got, err := mix.LogSurvival(age, tau)
			if want := -tau * rate(age); err != nil || math.Abs(got-want) > 1e-11*math.Abs(want) {
				t.Errorf("age %v, a moment of %v s: %v, %v, want %v", age, tau, got, err, want)
			}
		}
	}
}

// Of a Weibull lifetime the exponents differ: (t/s)^k - ((t+tau)/s)^k.
func TestWeibullIsItsFormula(t *testing.T) {
	for _, shape := range []float64{0.5, 1, 2, 3.5} {
		for _, age := range []float64{0, 1, 50, 400} {
			for _, tau := range []float64{1, 70, 900} {
				got, err := Weibull{shape, 100}.LogSurvival(age, tau)
				want := math.Pow(age/100, shape) - math.Pow((age+tau)/100, shape)
				if err != nil || math.Abs(got-want) > 1e-10*math.Abs(want) {
					t.Errorf("shape %v, age %v, %v s: %v, %v, want %v", shape, age, tau, got, err, want)
				}
			}
		}
	}
}

// Against a great age a moment is nothing, and takes nothing from survival.
func TestAMomentIsNothingAgainstAGreatAge(t *testing.T) {
	for _, age := range []float64{1e200, 1e300} {
		if got, err := (Weibull{0.5, 100}).LogSurvival(age, 1e-200); got != 0 || err != nil {
			t.Errorf("age %v: %v, %v", age, got, err)
		}
	}
}

// At ages that are nearly 0, where (t/s)^k is too small for a number, what comes counts alone; at
// those where it is too large, a moment takes nothing.
func TestWeibullAtTheEnds(t *testing.T) {
	for _, c := range []struct{ shape, age, tau, want float64 }{
		{2, 0x1p-1010, 0x1p-520, -0x1p-1040},
		{10, 1e-33, 1e-3, -1e-30},
		{2, 1e308, 1e-20, 0},
		{.5, 0x1p-1020, 3 * 0x1p-1020, -0x1p-510},
		{.25, 0x1p-1040, 15 * 0x1p-1040, -0x1p-260},
	} {
		got, err := Weibull{Shape: c.shape, Scale: 1}.LogSurvival(c.age, c.tau)
		if err != nil || math.Abs(got-c.want) > 1e-9*math.Abs(c.want) {
			t.Errorf("shape %v, age %v, %v s: %v, %v, want %v", c.shape, c.age, c.tau, got, err, c.want)
		}
	}
}

// A node that fails and recovers nears its availability at the sum of both rates.
func TestTheChainNearsAvailabilityAtBothRates(t *testing.T) {
	for _, c := range []struct{ mttf, mttr, tau float64 }{{90, 10, 5}, {30, 60, 40}, {7, 7, 7}} {
		a, decay := c.mttf/(c.mttf+c.mttr), math.Exp(-c.tau/c.mttf-c.tau/c.mttr)
		up, err := CTMCUp(c.mttf, c.mttr, c.tau, true)
		down, err2 := CTMCUp(c.mttf, c.mttr, c.tau, false)
		if err != nil || err2 != nil || !near(up, a+(1-a)*decay) || !near(down, a*(1-decay)) {
			t.Errorf("%+v: %v and %v, want %v and %v", c, up, down, a+(1-a)*decay, a*(1-decay))
		}
	}
}

// The shares of a mixture sum to 1 within 1e-9.
func TestSharesOfAMixtureSumToOne(t *testing.T) {
	for share, good := range map[float64]bool{
		0.5: true, 0.5 + 9e-10: true, 0.5 + 2e-9: false,
		0.5 - 9e-10: true, 0.5 - 2e-9: false,
	} {
		if _, err := (HyperExponential{{0.5, 1}, {share, 2}}).LogSurvival(0, 1); (err == nil) != good {
			t.Errorf("half and %v: %v", share, err)
		}
	}
}

// Who reads a number beside an error reads 0.
func TestNothingStandsBesideAnError(t *testing.T) {
	nan := math.NaN()
	for name, f := range map[string]func() (float64, error){
		"exponential": func() (float64, error) { return Exponential{}.LogSurvival(0, 1) },
		"weibull":     func() (float64, error) { return Weibull{}.LogSurvival(0, 1) },
		"no end":      func() (float64, error) { return Weibull{math.Inf(1), 1}.LogSurvival(0, 1) },
		"mixture":     func() (float64, error) { return HyperExponential{}.LogSurvival(0, 1) },
		"joint": func() (float64, error) {
			return JointSurvival([]Node{{Exponential{1}, 0}, {Exponential{}, 0}}, 1)
		},
		"chain":      func() (float64, error) { return CTMCUp(0, 1, 1, true) },
		"no chain":   func() (float64, error) { return CTMCUp(math.Inf(1), 1, 1, true) },
		"no repair":  func() (float64, error) { return CTMCUp(1, math.Inf(1), 1, true) },
		"erlang":     func() (float64, error) { return Erlang2(nan, 1) },
		"at least":   func() (float64, error) { return atLeast(-1, nil) },
		"of nothing": func() (float64, error) { return atLeast(1, []float64{nan}) },
		"general": func() (float64, error) {
			return GeneralAvailability([]avail.Cycle{{MTTFSeconds: nan}})
		},
	} {
		if v, err := f(); v != 0 || !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%s: %v beside %v", name, v, err)
		}
	}
	if v, err := GeneralAvailability(nil); v != 0 || err == nil {
		t.Errorf("the availability of no nodes: %v, %v", v, err)
	}
}
