package ckpt

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Against all numbers of segments that there are, by Daly's formula.
func TestSegmentsAreTheBestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Execution{
			WorkSeconds: rapid.Float64Range(1, 36_000).Draw(t, "work"),
			CostSeconds: rapid.Float64Range(10, 600).Draw(t, "cost"),
			MTBFSeconds: math.Exp(rapid.Float64Range(6, 14).Draw(t, "ln mtbf")),
		}
		got, err := e.Segments()
		if err != nil {
			t.Fatal(err)
		}
		best := int64(1)
		for n := int64(2); n < 2000; n++ {
			if e.cut(float64(n)) < e.cut(float64(best)) {
				best = n
			}
		}
		if have, want := e.cut(float64(got)), e.cut(float64(best)); have > want*(1+1e-12) {
			t.Errorf("%+v: %d segments take %v, %d take %v", e, got, have, best, want)
		}
	})
}

// "e^(R/M) M ((n-1) (e^((tau+C)/M) - 1) + (e^(last/M) - 1))" (Daly 2006): what is least is the
// expected completion, of intervals that end exactly with the work.
func TestSegmentsAreDalysExpectation(t *testing.T) {
	e := Execution{WorkSeconds: 4096, CostSeconds: 64, MTBFSeconds: 8192}
	n, err := e.Segments()
	if err != nil || n < 2 {
		t.Fatalf("%d, %v", n, err)
	}
	expected, _ := e.ExpectedCompletion(4096 / 4)
	if cut := e.cut(4); math.Abs(expected-cut) > 1e-9*cut {
		t.Errorf("in four segments %v, by Daly %v", cut, expected)
	}
	daly, _ := Daly(64, 8192)
	if by := 4096 / daly; math.Abs(float64(n)-by) > 1 {
		t.Errorf("%d segments, by Daly's interval %v", n, by)
	}
}

// What never fails needs no checkpoint, nor does what takes no time; more segments than there
// may be are as many as there may be.
func TestSegmentsAtTheEdges(t *testing.T) {
	for want, e := range map[int64]Execution{
		1:           {WorkSeconds: 1e6, CostSeconds: 1, MTBFSeconds: math.Inf(1)},
		maxSegments: {WorkSeconds: 1e12, CostSeconds: 1e-6, MTBFSeconds: 1e3},
	} {
		if got, err := e.Segments(); err != nil || got != want {
			t.Errorf("%+v: %d, %v, want %d", e, got, err, want)
		}
	}
	if got, err := (Execution{CostSeconds: 1, MTBFSeconds: 1}).Segments(); got != 1 || err != nil {
		t.Errorf("no work: %d, %v", got, err)
	}
	for _, e := range []Execution{
		{CostSeconds: 0, MTBFSeconds: 1},
		{CostSeconds: 1},
		{WorkSeconds: -1, CostSeconds: 1, MTBFSeconds: 1},
		{WorkSeconds: math.Inf(1), CostSeconds: 1, MTBFSeconds: 1},
	} {
		if got, err := e.Segments(); got != 0 || !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%+v: %d, %v", e, got, err)
		}
	}
}
