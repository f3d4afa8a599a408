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

// Apart compares two means of so many independent replications each. It is their difference as a
// part of the one that chance leaves in 95 % of all cases where both are of the same thing, by
// Welch's test: up to 1 they are as close as their intervals say. It is not known for less than
// two replications, and where nothing varies.
func (i Interval) Apart(o Interval, replications int) (part float64, known bool) {
	rest := float64(replications - 1)
	if rest < 1 || i.CI95 == 0 && o.CI95 == 0 {
		return 0, false
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: rest}.Quantile(.975)
	x, y := i.CI95*i.CI95/t/t, o.CI95*o.CI95/t/t // the variances of the means
	freedom := rest * (x + y) * (x + y) / (x*x + y*y)
	both := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(.975)
	return math.Abs(i.Mean-o.Mean) / (both * math.Sqrt(x+y)), true
}
