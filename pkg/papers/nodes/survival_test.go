package nodes

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// near allows a relative error of 1e-9; only an infinity is near an infinity.
func near(a, b float64) bool {
	size := max(math.Abs(a), math.Abs(b))
	return a == b || !math.IsInf(size, 0) && math.Abs(a-b) <= max(1e-12, 1e-9*size)
}

// At the edges: ages and times without end, and tails where a plain S(t+tau)/S(t)
// would be 0/0.
func TestSurvivalAtTheEdges(t *testing.T) {
	inf := math.Inf(1)
	mixed := HyperExponential{{0.5, 10}, {0.5, 1000}, {0, inf}}
	for _, c := range []struct {
		l              Lifetime
		age, tau, want float64
	}{
		{Exponential{100}, inf, 100, math.Exp(-1)},
		{Exponential{inf}, 5, inf, 1},
		{Exponential{5}, 5, inf, 0},
		{Weibull{0.5, 100}, inf, 10, 1},
		{Weibull{2, 100}, inf, 10, 0},
		{Weibull{1, 100}, inf, 100, math.Exp(-1)},
		{Weibull{2, 100}, inf, 0, 1},
		{Weibull{2, inf}, 10, inf, 1},
		{Weibull{2, 100}, 0, 100, math.Exp(-1)},
		{Weibull{2, 100}, 5, inf, 0},
		{Weibull{0.5, 1}, 1e12, 1e-300, 1}, // the loss is below what a float64 holds near 1
		{Weibull{1, 100}, 1e-300, 100, math.Exp(-1)},
		{Weibull{4, 1e300}, 1e-300, 1e300, math.Exp(-1)},
		{mixed, 745_000, 100, math.Exp(-0.1)},
		{mixed, 1e300, 100, math.Exp(-0.1)},
		{mixed, inf, 1000, math.Exp(-1)},
		{mixed, 0, inf, 0},
		{HyperExponential{{0.25, inf}, {0.75, 10}}, 0, inf, 0.25},
		{HyperExponential{{0.25, inf}, {0.75, 10}}, 1e9, 1e9, 1},
	} {
		got, err := Survival(c.l, c.age, c.tau)
		if err != nil || !near(got, c.want) {
			t.Errorf("Survival(%v, age %v, tau %v) = %v, %v, want %v", c.l, c.age, c.tau, got, err, c.want)
		}
	}
}

func lifetimes() *rapid.Generator[Lifetime] {
	span := rapid.Float64Range(1e-3, 1e6)
	return rapid.Custom(func(t *rapid.T) Lifetime {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return Exponential{span.Draw(t, "mean")}
		case 1:
			return Weibull{rapid.Float64Range(0.1, 5).Draw(t, "shape"), span.Draw(t, "scale")}
		default:
			p := rapid.Float64Range(0, 1).Draw(t, "p")
			return HyperExponential{{p, span.Draw(t, "short")}, {1 - p, span.Draw(t, "long")}}
		}
	})
}

// Surviving a + b is surviving a, then b at the age a later; survival is a
// probability and falls with time; joining nodes multiplies.
func TestSurvivalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := lifetimes().Draw(t, "lifetime")
		span := rapid.Float64Range(0, 1e4)
		age, a, b := span.Draw(t, "age"), span.Draw(t, "a"), span.Draw(t, "b")
		whole, err := Survival(l, age, a+b)
		first, _ := Survival(l, age, a)
		second, _ := Survival(l, age+a, b)
		if err != nil || !(whole >= 0 && whole <= 1) {
			t.Fatalf("S = %v, %v", whole, err)
		}
		if whole > first*(1+1e-9) {
			t.Errorf("survival grows from %v to %v with time", first, whole)
		}
		if math.Abs(whole-first*second) > 1e-7*whole+1e-12 {
			t.Errorf("S(a+b) = %v, S(a) S(b) = %v", whole, first*second)
		}
		joint, err := JointSurvival([]Node{{l, age}, {l, age}}, a)
		if err != nil || !near(joint, first*first) {
			t.Errorf("two nodes = %v, %v, want %v", joint, err, first*first)
		}
	})
}

// Whatever the numbers, survival is a probability.
func TestSurvivalIsNeverNaN(t *testing.T) {
	extreme := rapid.SampledFrom(
		[]float64{5e-324, 1e-300, 1e-9, 0.5, 1, 2, 745, 1e9, 1e300, math.MaxFloat64, math.Inf(1)},
	)
	times := rapid.OneOf(rapid.Just(0.0), extreme)
	rapid.Check(t, func(t *rapid.T) {
		var l Lifetime
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			l = Exponential{extreme.Draw(t, "mean")}
		case 1:
			l = Weibull{min(extreme.Draw(t, "shape"), math.MaxFloat64), extreme.Draw(t, "scale")}
		default:
			p := rapid.SampledFrom([]float64{0, 1e-300, 0.5, 1}).Draw(t, "p")
			l = HyperExponential{{p, extreme.Draw(t, "one")}, {1 - p, extreme.Draw(t, "other")}}
		}
		age, tau := times.Draw(t, "age"), times.Draw(t, "tau")
		s, err := Survival(l, age, tau)
		if err != nil || !(s >= 0 && s <= 1) || tau == 0 && s != 1 {
			t.Errorf("Survival(%+v, %v, %v) = %v, %v", l, age, tau, s, err)
		}
		joint, err := JointSurvival([]Node{{l, age}, {l, tau}}, tau)
		if err != nil || !(joint >= 0 && joint <= 1) {
			t.Errorf("joint survival of two %+v, %v, %v = %v, %v", l, age, tau, joint, err)
		}
	})
}

func TestInvalidArguments(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, l := range []Lifetime{
		Exponential{},
		Exponential{nan},
		Weibull{0, 1},
		Weibull{1, nan},
		Weibull{inf, 1},
		HyperExponential{},
		HyperExponential{{1, 0}},
		HyperExponential{{nan, 1}, {1, 1}},
		HyperExponential{{0.5, 1}},
	} {
		if s, err := Survival(l, 1, 0); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%#v: %v, %v, want argument.ErrInvalid", l, s, err)
		}
		if _, err := JointSurvival([]Node{{l, 0}}, 1); !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("joint, %#v: %v, want argument.ErrInvalid", l, err)
		}
	}
}
