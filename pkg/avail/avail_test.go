package avail

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// number is a float64 that JSON may write as "NaN", "+Inf" or "-Inf".
type number float64

func (n *number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(string(bytes.Trim(text, `"`)), 64)
	*n = number(v)
	return err
}

// runVectors calls check for every case of one family: check decodes the input and
// returns its outputs by name. Only the keys of the expected output count.
func runVectors(t *testing.T, family string, check func(t *testing.T, in []byte) (map[string]float64, error)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", family+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			ID    string
			In    json.RawMessage
			Out   map[string]number
			Error string
		}
	}
	decode(t, text, &file)
	if len(file.Cases) < 20 {
		t.Fatalf("%s: only %d cases", family, len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			got, err := check(t, c.In)
			if (c.Error != "") != (err != nil) || err != nil && !errors.Is(err, ErrInvalidArgument) {
				t.Fatalf("error = %v, want %q (input %s)", err, c.Error, c.In)
			}
			for key, want := range c.Out {
				if have, ok := got[key]; err == nil && (!ok || !near(have, float64(want))) {
					t.Errorf("%s = %v, want %v (input %s)", key, have, want, c.In)
				}
			}
		})
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
}

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= max(1e-12, 1e-9*max(math.Abs(a), math.Abs(b)))
}

// lifetime reads a distribution as the vectors write it.
type lifetime struct{ Lifetime }

func (l *lifetime) UnmarshalJSON(text []byte) error {
	var kind struct{ Kind string }
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	if kind.Kind == "hyperexp" {
		var in struct{ P, Mean []number }
		err := json.Unmarshal(text, &in)
		var h HyperExponential
		for i := range in.P {
			h = append(h, Phase{float64(in.P[i]), float64(in.Mean[i])})
		}
		l.Lifetime = h
		return err
	}
	var in struct{ Mean, Shape, Scale number }
	err := json.Unmarshal(text, &in)
	switch kind.Kind {
	case "exp":
		l.Lifetime = Exponential{float64(in.Mean)}
	case "weibull":
		l.Lifetime = Weibull{float64(in.Shape), float64(in.Scale)}
	default:
		l.Lifetime = nil // a kind of distribution that this package has no type for
	}
	return err
}

func TestVectorsCondSurvival(t *testing.T) {
	runVectors(t, "cond_survival", func(t *testing.T, text []byte) (map[string]float64, error) {
		var in struct {
			Dist     lifetime
			Age, Tau number
		}
		decode(t, text, &in)
		if in.Dist.Lifetime == nil {
			return nil, ErrInvalidArgument
		}
		s, err := Survival(in.Dist.Lifetime, float64(in.Age), float64(in.Tau))
		return map[string]float64{"S": s}, err
	})
}

func TestVectorsJointSurvival(t *testing.T) {
	runVectors(t, "joint_survival", func(t *testing.T, text []byte) (map[string]float64, error) {
		var in struct {
			Nodes []struct {
				Dist lifetime
				Age  number
			}
			Tau number
		}
		decode(t, text, &in)
		var nodes []Node
		for _, n := range in.Nodes {
			nodes = append(nodes, Node{n.Dist.Lifetime, float64(n.Age)})
		}
		s, err := JointSurvival(nodes, float64(in.Tau))
		return map[string]float64{"S": s}, err
	})
}

func TestVectorsGammaRate(t *testing.T) {
	runVectors(t, "gamma_rate", func(t *testing.T, text []byte) (map[string]float64, error) {
		var in struct {
			A0, B0, Exposure, Tau number
			Failures              uint64
		}
		decode(t, text, &in)
		belief, err := Prior{float64(in.A0), float64(in.B0)}.Observe(in.Failures, float64(in.Exposure))
		if err != nil {
			return nil, err
		}
		s, err := belief.Survival(float64(in.Tau))
		return map[string]float64{"rate": belief.Rate(), "survival": s}, err
	})
}

func TestVectorsFailureSum(t *testing.T) {
	runVectors(t, "failure_sum", func(t *testing.T, text []byte) (map[string]float64, error) {
		var in struct {
			Lambda number `json:"lambda_per_step"`
			Steps  number
		}
		decode(t, text, &in)
		lambda, steps := float64(in.Lambda), int64(in.Steps)
		if number(steps) != in.Steps {
			return nil, ErrInvalidArgument // the type of the parameter rules it out
		}
		paper, e1 := FailureSum(lambda, steps)
		closed, e2 := FailureSumClosed(lambda, steps)
		erlang, e3 := Erlang2(lambda, steps)
		exponential, e4 := FailureProbability(lambda, steps)
		return map[string]float64{"paper": paper, "closed": closed, "erlang2": erlang, "exponential": exponential},
			errors.Join(e1, e2, e3, e4)
	})
}

func TestVectorsNodeUp(t *testing.T) {
	runVectors(t, "node_up", func(t *testing.T, text []byte) (map[string]float64, error) {
		var in struct {
			Lambda number `json:"lambda_per_step"`
			P      number
			TauUp  int64 `json:"tau_up"`
			Tau    int64
		}
		decode(t, text, &in)
		paper, fixed, err := NodeUp(float64(in.Lambda), float64(in.P), in.TauUp, in.Tau)
		return map[string]float64{"paper": paper, "fixed": fixed}, err
	})
}

func TestVectorsNodeRecover(t *testing.T) {
	runVectors(t, "node_recover", func(t *testing.T, text []byte) (map[string]float64, error) {
		var in struct {
			Lambda  number `json:"lambda_per_step"`
			Q       number
			TauDown int64 `json:"tau_down"`
			Tau     int64
		}
		decode(t, text, &in)
		paper, fixed, err := NodeRecover(float64(in.Lambda), float64(in.Q), in.TauDown, in.Tau)
		return map[string]float64{"paper": paper, "fixed": fixed}, err
	})
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
		if s, err := Survival(l, 1, 0); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%#v: %v, %v, want ErrInvalidArgument", l, s, err)
		}
		if _, err := JointSurvival([]Node{{l, 0}}, 1); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("joint, %#v: %v, want ErrInvalidArgument", l, err)
		}
	}
	for _, p := range []Prior{{}, {1, inf}, {inf, 1}, {nan, 1}, {1, -1}} {
		if _, err := p.Observe(0, 0); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("Observe of %v: error = %v", p, err)
		}
		if got := p.Up(0, 0); got != 0 {
			t.Errorf("%v.Up = %v, want 0: a senseless belief must not look good", p, got)
		}
	}
	if _, err := DefaultPrior().Observe(0, inf); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("infinite exposure: error = %v", err)
	}
	if _, err := DefaultPrior().Survival(nan); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("tau NaN: error = %v", err)
	}
	if _, err := FailureSum(1, MaxSteps+1); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("too many steps: error = %v", err)
	}
	if _, _, err := NodeUp(1, 0, MaxSteps, 1); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("too great an age: error = %v", err)
	}
}

func TestFailureSumsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lambda := rapid.OneOf(rapid.Float64Range(1e-4, 2), rapid.Float64Range(0, 1e300)).Draw(t, "lambda")
		steps := rapid.Int64Range(0, 3000).Draw(t, "steps")
		a, err1 := FailureSum(lambda, steps)
		b, err2 := FailureSumClosed(lambda, steps)
		if err1 != nil || err2 != nil || math.Abs(a-b) > 1e-7*max(a, b)+1e-12 {
			t.Errorf("direct %v (%v), closed %v (%v)", a, err1, b, err2)
		}
	})
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
