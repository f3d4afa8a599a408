package nodes

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Lifetime is the distribution of the time from a node's coming up to its next
// failure.
type Lifetime interface {
	// LogSurvival is the natural logarithm of P(up for tau seconds more | up for
	// age seconds), 0 or less, minus infinity for certain failure.
	LogSurvival(age, tau float64) (float64, error)
}

// Survival is P(up for tau seconds more | up for age seconds), 0 to 1. It is 1 for
// tau = 0 at any age, and 0 for an infinite tau unless the lifetime has no end.
func Survival(l Lifetime, age, tau float64) (float64, error) {
	log, err := l.LogSurvival(age, tau)
	return math.Exp(log), err
}

// Node is one of the nodes that a parallel job needs.
type Node struct {
	Lifetime Lifetime
	Age      float64 // seconds since it came up
}

// JointSurvival is the probability, 0 to 1, that all nodes stay up for tau seconds
// more, failures being independent: the product of their survivals. It is summed as
// logarithms, so that many nodes do not underflow. No node gives 1. The thesis'
// equation (9) says "this set remains up" but prints the probability that at
// least one of the set does.
func JointSurvival(nodes []Node, tau float64) (float64, error) {
	sum := 0.0
	for _, n := range nodes {
		log, err := n.Lifetime.LogSurvival(n.Age, tau)
		if err != nil {
			return 0, err
		}
		sum += log
	}
	return math.Exp(sum), nil
}

// Exponential is a lifetime without memory: age does not matter.
type Exponential struct {
	Mean float64 // seconds; infinity means it never fails
}

// LogSurvival implements Lifetime.
func (e Exponential) LogSurvival(age, tau float64) (float64, error) {
	if err := errors.Join(checkTimes(age, tau), argument.Positive("mean", e.Mean)); err != nil {
		return 0, err
	}
	return -hazard(tau, e.Mean), nil
}

// hazard is tau/mean, where nothing is at risk without time or with an endless mean.
func hazard(tau, mean float64) float64 {
	if tau == 0 || math.IsInf(mean, 1) {
		return 0
	}
	return tau / mean
}

// Weibull is a lifetime whose failure rate falls with age (shape below 1, as traces of
// desktop grids show), stays (1) or rises (above 1).
type Weibull struct {
	Shape float64 // without unit, finite
	Scale float64 // seconds
}

// LogSurvival implements Lifetime: (t/s)^k - ((t+tau)/s)^k.
func (w Weibull) LogSurvival(age, tau float64) (float64, error) {
	if err := errors.Join(checkTimes(age, tau),
		argument.Positive("shape", w.Shape), argument.Positive("scale", w.Scale)); err != nil {
		return 0, err
	}
	switch {
	case math.IsInf(w.Shape, 1):
		return 0, fmt.Errorf("%w: shape: want a finite number", argument.ErrInvalid)
	case tau == 0 || math.IsInf(w.Scale, 1):
		return 0, nil
	case math.IsInf(tau, 1):
		return math.Inf(-1), nil
	case math.IsInf(age, 1):
		return w.limit(tau), nil
	case age == 0:
		return -w.power(tau), nil
	}
	// (t/s)^k (1 - (1+tau/t)^k), which does not cancel at a great age.
	growth := math.Expm1(w.Shape * math.Log1p(tau/age))
	if growth == 0 {
		return 0, nil
	}
	if past := w.power(age); past > 0 && !math.IsInf(growth, 1) {
		return -past * growth, nil
	}
	return -w.power(age + tau), nil // the past is nothing against what comes
}

// power is (t/s)^k. math.Pow is wrong by percents where t/s is below the smallest
// normal number.
func (w Weibull) power(t float64) float64 {
	const far, lift = 0x1p-1000, 500
	if t/w.Scale >= far {
		return math.Pow(t/w.Scale, w.Shape)
	}
	return math.Pow(math.Ldexp(t, lift)/w.Scale, w.Shape) * math.Exp2(-lift*w.Shape)
}

// limit returns the logarithm for a node that has been up forever.
func (w Weibull) limit(tau float64) float64 {
	switch {
	case w.Shape < 1:
		return 0
	case w.Shape > 1:
		return math.Inf(-1)
	default:
		return -tau / w.Scale
	}
}

// Phase is one of the kinds of node a HyperExponential mixes.
type Phase struct {
	P    float64 // share, 0 to 1
	Mean float64 // seconds; infinity means it never fails
}

// HyperExponential mixes exponential lifetimes: which of them a node has is
// unknown, and the older it gets, the likelier it is one of the long-lived. The
// shares sum to 1 within 1e-9.
type HyperExponential []Phase

// LogSurvival implements Lifetime. The phases are weighted with their survival to
// the present age, relative to the longest-lived one, so that no age makes 0/0 of
// it.
func (h HyperExponential) LogSurvival(age, tau float64) (float64, error) {
	if err := errors.Join(checkTimes(age, tau), h.validate()); err != nil {
		return 0, err
	}
	longest := 0.0
	for _, phase := range h {
		if phase.P > 0 {
			longest = max(longest, phase.Mean)
		}
	}
	weights, dead, alive := 0.0, 0.0, 0.0
	for _, phase := range h {
		w := phase.weight(age, longest)
		weights += w
		dead += w * math.Expm1(-hazard(tau, phase.Mean))
		if w > 0 {
			// Relative to the longest-lived phase, whose term is 1.
			alive += w * math.Exp(min(excess(tau, phase.Mean, longest), 0))
		}
	}
	if dead /= weights; dead > -0.5 {
		return math.Log1p(dead), nil // exact where survival is close to 1
	}
	return math.Log(alive/weights) - hazard(tau, longest), nil
}

// weight is P e^(-age/mean) e^(age/longest).
func (p Phase) weight(age, longest float64) float64 {
	if p.P == 0 {
		return 0
	}
	return p.P * math.Exp(excess(age, p.Mean, longest))
}

// excess is t/longest - t/mean, 0 or less for a mean up to the longest.
func excess(t, mean, longest float64) float64 {
	if mean == longest || t == 0 {
		return 0
	}
	return -t / mean * (1 - mean/longest)
}

func (h HyperExponential) validate() error {
	sum := 0.0
	for _, phase := range h {
		if err := errors.Join(argument.Probability("share of a phase", phase.P),
			argument.Positive("mean", phase.Mean)); err != nil {
			return err
		}
		sum += phase.P
	}
	if !(math.Abs(sum-1) <= 1e-9) {
		return fmt.Errorf("%w: shares: want a sum of 1, have %v", argument.ErrInvalid, sum)
	}
	return nil
}

func checkTimes(age, tau float64) error {
	return errors.Join(argument.Amount("age", age), argument.Amount("tau", tau))
}
