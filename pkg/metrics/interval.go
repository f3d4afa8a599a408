package metrics

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean over replications and what it may be off by.
type Interval struct {
	Mean float64 `json:"mean"`
	// CI95 is half of the 95 % confidence interval of the mean, by Student's t; 0 of less than
	// two replications, of which nothing is known.
	CI95 float64 `json:"ci95"`
}

// IntervalOf is the mean of independent replications, each from a seed of its own, which must be
// numbers.
func IntervalOf(replications []float64) Interval {
	n := float64(len(replications))
	if n == 0 {
		return Interval{}
	}
	mean, deviation := stat.MeanStdDev(replications, nil)
	if n < 2 {
		return Interval{Mean: mean}
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(.975)
	return Interval{Mean: mean, CI95: t * deviation / math.Sqrt(n)}
}
