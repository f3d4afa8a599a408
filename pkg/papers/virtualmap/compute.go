package virtualmap

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// ProvisionRatio is R = max(0, 1 - f/g): the share of the required amount g that
// an offer f leaves open, 0 (all provided) to 1 (nothing provided). Nothing
// required is 0, whatever is offered; an unlimited offer meets every requirement;
// a finite offer meets nothing of an unlimited one. An amount that nobody
// reported counts as 0. Thesis, section 3.1.2.
func ProvisionRatio(offered, required float64) (float64, error) {
	err := errors.Join(argument.Amount("offered", offered), argument.Amount("required", required))
	if err != nil {
		return 0, err
	}
	return index.Ratio(offered, required), nil
}

// Mode says what the factors K of the computation index mean.
type Mode uint8

// The modes. They agree where every K is 1, as in all experiments of the thesis.
const (
	ModeWeight Mode = iota // K multiplies: below 1 matters less, as the thesis explains it
	ModePaper              // 1/K multiplies: equation (1) as printed, where K below 1 amplifies
)

// Dimension is one term of the computation index.
type Dimension struct {
	Offered  float64 // f, what the site would give; 0 if it does not report the dimension
	Required float64 // g, what the task asks for, in the same unit
	K        float64 // the factor; 1 is neutral
}

// weight returns the factor of the squared ratio.
func (d Dimension) weight(mode Mode) (float64, error) {
	switch {
	case mode == ModeWeight && d.K >= 0 && !math.IsInf(d.K, 1):
		return d.K, nil
	case mode == ModePaper && d.K > 0:
		return 1 / d.K, nil // K = Inf ignores the dimension
	default:
		return 0, fmt.Errorf("%w: factor K %v in mode %d", argument.ErrInvalid, d.K, mode)
	}
}

// ComputationIndex is x = sqrt(sum of w_d R_d^2) over the required dimensions,
// R_d being the provision ratio and w_d = K_d (ModeWeight) or 1/K_d (ModePaper).
// With neutral factors it runs from 0 (all provided) to the root of the number of
// dimensions; normalise divides by the root of the sum of the weights, so that
// it ends at 1. No dimension, or weights that are all 0, give 0. Thesis, section
// 3.1.2, equation (1).
func ComputationIndex(dims []Dimension, mode Mode, normalise bool) (float64, error) {
	largest := 0.0
	for _, d := range dims {
		w, err := d.weight(mode)
		if err != nil {
			return 0, err
		}
		if err := errors.Join(argument.Amount("offered", d.Offered),
			argument.Amount("required", d.Required)); err != nil {
			return 0, err
		}
		largest = max(largest, w)
	}
	if largest == 0 {
		return 0, nil
	}
	if math.IsInf(largest, 1) {
		return 0, fmt.Errorf("%w: a factor K is so small that its inverse overflows", argument.ErrInvalid)
	}
	sum, weights := 0.0, 0.0
	for _, d := range dims {
		w, _ := d.weight(mode) // checked above
		r := index.Ratio(d.Offered, d.Required)
		sum += w / largest * r * r // scaled, so that huge weights do not overflow
		weights += w / largest
	}
	if normalise {
		return math.Sqrt(sum / weights), nil
	}
	return math.Sqrt(sum) * math.Sqrt(largest), nil
}
