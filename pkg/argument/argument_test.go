package argument

import (
	"errors"
	"math"
	"testing"
)

func TestRanges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		check   func(string, float64) error
		valid   []float64
		invalid []float64
	}{
		"amount":      {Amount, []float64{0, math.Copysign(0, -1), 1, inf}, []float64{-1, -inf, nan}},
		"positive":    {Positive, []float64{5e-324, 1, inf}, []float64{0, -1, nan}},
		"probability": {Probability, []float64{0, .5, 1}, []float64{-.1, 1.1, inf, nan}},
	} {
		for _, v := range c.valid {
			if err := c.check("x", v); err != nil {
				t.Errorf("%s %v: %v", name, v, err)
			}
		}
		for _, v := range c.invalid {
			if err := c.check("x", v); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s %v: error = %v, want ErrInvalid", name, v, err)
			}
		}
	}
}

func TestAtLeast(t *testing.T) {
	if err := AtLeast("nodes", 2, 2); err != nil {
		t.Error(err)
	}
	err := AtLeast("nodes", 2, 1)
	want := "invalid argument: nodes: want at least 2, have 1"
	if !errors.Is(err, ErrInvalid) || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestProduct(t *testing.T) {
	for want, factors := range map[float64][]float64{
		1: nil, 0: {math.Inf(1), 0}, 6: {1, 2, 3}, math.Inf(1): {2, math.Inf(1)},
	} {
		if got := Product(factors...); got != want {
			t.Errorf("the product of %v is %v, want %v", factors, got, want)
		}
	}
}
