package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// Names of laws. What scale and shape are:
//
//	normal       mean, and standard deviation as a multiple of it, before it is cut at 0
//	exponential  mean, and no shape
//	weibull      scale and shape; below 1 the rate of ends falls with age
//	lognormal    median, and standard deviation of ln
const (
	Normal      = "normal" // the thesis'
	Exponential = "exponential"
	Weibull     = "weibull"
	LogNormal   = "lognormal"
)

// Laws lists the names of laws.
func Laws() []string { return []string{Normal, Exponential, Weibull, LogNormal} }

// Law is a law of positive numbers: durations, speeds or rates, in the unit of its scale. A
// normal law is cut at 0: a number that is not positive is drawn again, so that its mean is
// a little above its scale.
type Law struct {
	Name  string  // see Laws
	Scale float64 // positive
	Shape float64 // positive; of an exponential law 0
}

// errLaw refuses a law.
var errLaw = errors.New("invalid law")

// shapes are the bounds of shapes: within them the mean is a number that can be used.
func shapes(name string) (least, most float64) {
	switch name {
	case Normal:
		return 1e-6, 10
	case Weibull:
		return 0.1, 100
	case LogNormal:
		return 1e-6, 6
	}
	return 0, 0
}

// Validate says what is wrong; the message begins with the field, in small letters: law,
// scale or shape.
func (l Law) Validate() error {
	least, most := shapes(l.Name)
	switch {
	case !slices.Contains(Laws(), l.Name):
		return fmt.Errorf("law: %w: want one of %s, have %q", errLaw, strings.Join(Laws(), ", "), l.Name)
	case !(l.Scale > 0) || math.IsInf(l.Scale, 1):
		return fmt.Errorf("scale: %w: want a positive number, have %v", errLaw, l.Scale)
	case l.Name == Exponential && l.Shape != 0:
		return fmt.Errorf("shape: %w: an exponential law has none, have %v", errLaw, l.Shape)
	case !(l.Shape >= least && l.Shape <= most):
		return fmt.Errorf("shape: %w: want %v to %v for a %s law, have %v",
			errLaw, least, most, l.Name, l.Shape)
	}
	return nil
}

// continuous holds the common methods of the laws of the library.
type continuous interface {
	Rand() float64
	Mean() float64
	Quantile(p float64) float64
	LogProb(x float64) float64
	Survival(x float64) float64
}

// of is the law with its chance, before it is cut at 0.
func (l Law) of(source rand.Source) continuous {
	switch l.Name {
	case Normal:
		return distuv.Normal{Mu: l.Scale, Sigma: l.Shape * l.Scale, Src: source}
	case Weibull:
		return distuv.Weibull{K: l.Shape, Lambda: l.Scale, Src: source}
	case LogNormal:
		return distuv.LogNormal{Mu: math.Log(l.Scale), Sigma: l.Shape, Src: source}
	}
	return distuv.Exponential{Rate: 1 / l.Scale, Src: source}
}

// Mean is the mean of the numbers that are drawn.
func (l Law) Mean() float64 {
	mean := l.of(nil).Mean()
	if l.Name == Normal {
		at := 1 / l.Shape // 0 is so many standard deviations below the scale
		mean += l.Scale * l.Shape * distuv.UnitNormal.Prob(at) / distuv.UnitNormal.CDF(at)
	}
	return mean
}

// Median is the median of the numbers that are drawn.
func (l Law) Median() float64 {
	cut := 0.0
	if l.Name == Normal {
		cut = distuv.UnitNormal.CDF(-1 / l.Shape)
	}
	return l.of(nil).Quantile(cut + (1-cut)/2)
}

// Survival is the probability that a number is above x; of one below 0 it is 1.
func (l Law) Survival(x float64) float64 {
	if x <= 0 {
		return 1
	}
	law := l.of(nil)
	return law.Survival(x) / law.Survival(0) // of a normal law, which is cut at 0, less than 1
}

// WithMean is the law of the same shape with another mean.
func (l Law) WithMean(mean float64) Law {
	l.Scale *= mean / l.Mean()
	return l
}

// Draw draws a number.
func (l Law) Draw(source rand.Source) float64 {
	law := l.of(source)
	x := law.Rand()
	for l.Name == Normal && x <= 0 {
		x = law.Rand()
	}
	return x
}

// remaining draws how much is left of a duration at an instant that has nothing to do with
// it. Such an instant falls into long durations more often, in proportion to their length,
// and anywhere within them.
func (l Law) remaining(rng *rand.Rand) float64 { return rng.Float64() * l.met(rng) }

// met draws a duration with a probability in proportion to its length as well.
func (l Law) met(rng *rand.Rand) float64 {
	switch l.Name {
	case Normal:
		return l.metNormal(rng)
	case Weibull:
		power := distuv.Gamma{Alpha: 1 + 1/l.Shape, Beta: 1, Src: rng}.Rand()
		return l.Scale * math.Pow(power, 1/l.Shape)
	case LogNormal:
		return Law{LogNormal, l.Scale * math.Exp(l.Shape*l.Shape), l.Shape}.Draw(rng)
	}
	return distuv.Gamma{Alpha: 2, Beta: 1 / l.Scale, Src: rng}.Rand()
}

// metNormal keeps a number with a probability in proportion to it. Nothing is ever drawn
// that is farther from the mean than nine standard deviations.
func (l Law) metNormal(rng *rand.Rand) float64 {
	longest := l.Scale * (1 + 9*l.Shape)
	for {
		if x := l.Draw(rng); rng.Float64()*longest < x {
			return x
		}
	}
}
