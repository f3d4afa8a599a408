package nodes

import (
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// Erlang2 is the probability of at least two failures, 1 - (1+u) e^-u with u = lambda
// steps: the limit of avail.FailureSum as the steps shrink to nothing.
func Erlang2(lambda float64, steps int64) (float64, error) {
	one, err := avail.FailureProbability(lambda, steps) // of at least one
	if err != nil {
		return 0, err
	}
	u := lambda * float64(steps)
	switch {
	case u < 1e-2: // the series, where the difference cancels
		return u * u * (1.0/2 - u*(1.0/3-u*(1.0/8-u*(1.0/30-u/144)))), nil
	case u > 800: // also where u overflowed
		return 1, nil
	default:
		return one - u*math.Exp(-u), nil
	}
}
