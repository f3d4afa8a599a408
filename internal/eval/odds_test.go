package eval

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// The curves are what counting all outcomes comes to. What the thesis takes for them is too little
// for copies and too much for tries.
func TestOddsAreThoseOfCounting(t *testing.T) {
	for _, resources := range []int{1, 2, 4} {
		r, err := Odds{Resources: int64(resources)}.WorkOut()
		if err != nil || len(r.Over) != oddsSteps+1 || r.Over[0] != 0 || r.Over[oddsSteps] != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		wantCounted(t, r.Over, r.Copies, []int{1, 2, 3, 4}, func(copies int, up float64) float64 {
			return outcomes(copies, up, func(up uint) bool { return up != 0 })
		})
		wantCounted(t, r.Over, r.Once, []int{2, 4, 8, 16}, func(n int, wrong float64) float64 {
			return outcomes(n, 1-wrong, func(right uint) bool { return right == 1<<n-1 })
		})
		wantCounted(t, r.Over, r.Tries, []int{1, 2, 4}, func(tries int, wrong float64) float64 {
			return outcomes(tries*resources, 1-wrong, func(right uint) bool {
				for ; right != 0; right >>= resources {
					if all := uint(1)<<resources - 1; right&all == all {
						return true
					}
				}
				return false
			})
		})
		for _, c := range r.Copies {
			wantBound(t, c, -1)
		}
		for _, c := range r.Tries {
			wantBound(t, c, 1)
		}
	}
}

// outcomes adds up the probabilities of all outcomes of n draws in which something is so: bit i of
// an outcome says that draw i succeeded.
func outcomes(n int, success float64, so func(outcome uint) bool) float64 {
	sum := 0.0
	for outcome := range uint(1) << n {
		if !so(outcome) {
			continue
		}
		p := 1.0
		for i := range n {
			if outcome>>i&1 == 1 {
				p *= success
			} else {
				p *= 1 - success
			}
		}
		sum += p
	}
	return sum
}

func wantCounted(
	t *testing.T, over []float64, curves []OddsCurve, many []int, want func(int, float64) float64,
) {
	t.Helper()
	if len(curves) != len(many) {
		t.Fatalf("%d curves, want %d", len(curves), len(many))
	}
	for i, c := range curves {
		for n, x := range over {
			if p := want(many[i], x); math.Abs(c.Success[n]-p) > 1e-12 {
				t.Errorf("%s at %v: %v, counted %v", c.Name, x, c.Success[n], p)
			}
		}
	}
}

// wantBound says that the thesis has no more than the curve (side -1) or no less (1), and a curve
// of its own exactly where there is more than one copy or try.
func wantBound(t *testing.T, c OddsCurve, side float64) {
	t.Helper()
	if one := strings.HasSuffix(c.Name, "=1"); one != (c.Paper == nil) {
		t.Errorf("%s: thesis %v", c.Name, c.Paper)
	}
	for n, paper := range c.Paper {
		if side*(paper-c.Success[n]) < -1e-12 {
			t.Errorf("%s, point %d: %v, thesis %v", c.Name, n, c.Success[n], paper)
		}
	}
}

// "the resubmission of j by R = 2 can result in a definite completion of j when Er is 0.15", of
// "0.25 when split over two resources", and R = 4 "with Er = 0.25" (thesis, 3.2.3): it cannot.
func TestPaperOddsAreNotCertain(t *testing.T) {
	for _, c := range []struct {
		resources   int64
		curve, at   int
		name        string
		error, want float64
	}{{4, 1, 3, "R=2", .15, .7715}, {2, 1, 5, "R=2", .25, .8086}, {4, 2, 5, "R=4", .25, .7816}} {
		r, err := Odds{Resources: c.resources}.WorkOut()
		if err != nil {
			t.Fatal(err)
		}
		line := r.Tries[c.curve]
		if line.Name != c.name || r.Over[c.at] != c.error || line.Paper[c.at] <= 1 ||
			math.Abs(line.Success[c.at]-c.want) > 5e-5 {
			t.Errorf("%+v: %s at %v: %v, thesis %v", c, line.Name, r.Over[c.at], line.Success[c.at],
				line.Paper[c.at])
		}
	}
}

func TestOddsRefuse(t *testing.T) {
	for _, resources := range []int64{0, -1} {
		_, err := Odds{Resources: resources}.WorkOut()
		const want = "--resources: want at least 1"
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d resources: %v", resources, err)
		}
	}
}
