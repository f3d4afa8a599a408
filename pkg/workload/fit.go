package workload

import (
	"errors"
	"fmt"
	"math"
)

// errFit refuses durations to which no law can be fitted.
var errFit = errors.New("want at least two durations that differ, all positive")

// Fit returns the law with that name that makes the durations the most likely: a Weibull or
// a lognormal one.
func Fit(name string, durations []float64) (Law, error) {
	if !differ(durations) {
		return Law{}, fmt.Errorf("fit a %s law to %d durations: %w", name, len(durations), errFit)
	}
	switch name {
	case Weibull:
		return fitWeibull(durations), nil
	case LogNormal:
		return fitLogNormal(durations), nil
	}
	return Law{}, fmt.Errorf("fit: %w: want %s or %s, have %q", errLaw, Weibull, LogNormal, name)
}

// differ reports whether all are positive and not all the same.
func differ(durations []float64) bool {
	other := false
	for _, x := range durations {
		if !(x > 0) || math.IsInf(x, 1) {
			return false
		}
		other = other || x != durations[0]
	}
	return other
}

// fitLogNormal takes mean and standard deviation of the logarithms.
func fitLogNormal(durations []float64) Law {
	mean, variance := 0.0, 0.0
	for _, x := range durations {
		mean += math.Log(x) / float64(len(durations))
	}
	for _, x := range durations {
		off := math.Log(x) - mean
		variance += off * off / float64(len(durations))
	}
	return Law{Name: LogNormal, Scale: math.Exp(mean), Shape: math.Sqrt(variance)}
}

// fitWeibull finds the shape at which the likelihood has its one maximum, by halving: the
// derivative falls with the shape. Durations count as parts of the longest one, so that
// their powers stay within what a number can hold.
func fitWeibull(durations []float64) Law {
	longest, meanLn := 0.0, 0.0
	for _, x := range durations {
		longest = max(longest, x)
	}
	parts := make([]float64, len(durations))
	for i, x := range durations {
		parts[i] = math.Log(x / longest)
		meanLn += parts[i] / float64(len(durations))
	}
	from, to := 0.0, 1.0
	for slope(parts, meanLn, to) > 0 {
		from, to = to, 2*to
	}
	for middle := (from + to) / 2; from < middle && middle < to; middle = (from + to) / 2 {
		if slope(parts, meanLn, middle) > 0 {
			from = middle
		} else {
			to = middle
		}
	}
	powers := 0.0
	for _, ln := range parts {
		powers += math.Exp(to*ln) / float64(len(parts))
	}
	return Law{Name: Weibull, Scale: longest * math.Pow(powers, 1/to), Shape: to}
}

// slope is the derivative of the mean log-likelihood by the shape, with the scale that is
// best for it.
func slope(lns []float64, meanLn, shape float64) float64 {
	powers, weighted := 0.0, 0.0
	for _, ln := range lns {
		power := math.Exp(shape * ln)
		powers += power
		weighted += power * ln
	}
	return 1/shape + meanLn - weighted/powers
}

// LogLikelihood is ln of the density of the durations under the law, on average: of two laws
// the one with the greater number fits better.
func (l Law) LogLikelihood(durations []float64) float64 {
	sum := 0.0
	for _, x := range durations {
		sum += l.of(nil).LogProb(x)
	}
	return sum / float64(len(durations))
}
