package avail

import (
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// lowQuantile is the q of Forecast.Low.
const lowQuantile = 0.05

// Forecast is the number of nodes that will be up.
type Forecast struct {
	// Paper is the thesis' equation (11) as printed: the number of nodes up times
	// the probability of the *set*, plus the same for those down, plus the error
	// term. With the set probabilities of (9) and (10) it is little else than the
	// number of nodes up now.
	Paper float64

	Mean     float64 // sum of the nodes' own probabilities, plus the error term, 0 to all nodes
	Variance float64 // of the number of nodes, without the error term
	Low      int     // at least so many with a probability of 95 %, without the error term
}

// CapacityForecast returns the number of nodes that will be up tau steps from now. The
// error term e_T, which may be negative, is the mean error of past forecasts, see
// ForecastError. A node counts with one change of state at most, as in the thesis; CTMCUp
// counts several. Thesis, section 3.2.2, equation (11), whose text speaks of "the
// probabilities of a node" and whose formula of sets.
func CapacityForecast(
	up []UpNode, down []DownNode, tau int64, errorTerm float64,
) (Forecast, error) {
	if math.IsNaN(errorTerm) {
		return Forecast{}, fmt.Errorf("%w: error term: want a number", argument.ErrInvalid)
	}
	paperUp, fixed, err := eachUp(up, tau)
	if err != nil {
		return Forecast{}, err
	}
	paperDown, recovering, err := eachRecover(down, tau)
	if err != nil {
		return Forecast{}, err
	}
	fixed = append(fixed, recovering...)
	low, err := Quantile(lowQuantile, fixed)
	if err != nil {
		return Forecast{}, err
	}
	recovered, err := AllOf(paperDown)
	if err != nil {
		return Forecast{}, err
	}
	variance := 0.0
	for _, p := range fixed {
		variance += p * (1 - p)
	}
	return Forecast{
		Paper:    float64(len(up))*anyOf(paperUp) + float64(len(down))*recovered + errorTerm,
		Mean:     min(max(total(fixed)+errorTerm, 0), float64(len(fixed))),
		Variance: variance,
		Low:      low,
	}, nil
}

// ForecastPair is a past forecast with what came of it, in nodes.
type ForecastPair struct {
	Predicted, Actual float64
}

// ForecastError is e_T, the mean of actual - predicted, to be added to the next
// forecast. Without history it is 0. Forecasts that were infinitely wrong in both
// directions have no mean: argument.ErrUndefined. Thesis, section 3.2.2.
func ForecastError(history []ForecastPair) (float64, error) {
	if len(history) == 0 {
		return 0, nil
	}
	differences := make([]float64, 0, len(history))
	for _, h := range history {
		if math.IsNaN(h.Predicted) || math.IsNaN(h.Actual) {
			return 0, fmt.Errorf("%w: history: want numbers, have %v", argument.ErrInvalid, h)
		}
		differences = append(differences, h.Actual-h.Predicted)
	}
	mean := total(differences) / float64(len(history))
	if math.IsNaN(mean) {
		return 0, fmt.Errorf("%w: the mean of infinities of both signs", argument.ErrUndefined)
	}
	return mean, nil
}

// share is a/(a+b), of which at least one is above 0 and a is finite.
func share(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return 1 / (1 + b/a)
}

// total adds up so that the order does not matter, not even where numbers cancel:
// Neumaier's variant of Kahan's sum, twice.
func total(values []float64) float64 {
	sum, low, lower := 0.0, 0.0, 0.0
	for _, v := range values {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return naive(values)
		}
		var rest float64
		sum, rest = twoSum(sum, v)
		low, rest = twoSum(low, rest)
		lower += rest
	}
	if exact := sum + (low + lower); !math.IsNaN(exact) {
		return exact
	}
	return naive(values) // it overflowed
}

// twoSum is a + b and what rounding took from it.
func twoSum(a, b float64) (sum, rest float64) {
	sum = a + b
	if math.Abs(a) >= math.Abs(b) {
		return sum, a - sum + b
	}
	return sum, b - sum + a
}

func naive(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}
