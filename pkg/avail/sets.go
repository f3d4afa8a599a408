package avail

import (
	"errors"
	"fmt"
	"math"
)

// ErrUndefined is the cause of an error about arguments that are valid and have no
// answer, such as the mean of nothing.
var ErrUndefined = errors.New("undefined")

// AllOf is the probability that all of several independent events happen, of
// which each has its own: the product. A job that needs every node needs this.
// None at all is 1.
func AllOf(p []float64) (float64, error) {
	if err := probabilities(p); err != nil {
		return 0, err
	}
	logs := 0.0
	for _, v := range p {
		logs += math.Log(v)
	}
	return math.Exp(logs), nil
}

// AnyOf is the probability that at least one of several independent events
// happens. None at all is 0.
func AnyOf(p []float64) (float64, error) {
	if err := probabilities(p); err != nil {
		return 0, err
	}
	return anyOf(p), nil
}

func anyOf(p []float64) float64 {
	logs := 0.0
	for _, v := range p {
		logs += math.Log1p(-v)
	}
	return -math.Expm1(logs)
}

// AtLeast is the probability that at least k of several independent events
// happen, by the Poisson-binomial distribution. A job that bears some failures
// needs this. k = 0 is 1, more events than there are is 0.
func AtLeast(k int, p []float64) (float64, error) {
	if err := errors.Join(steps("k", int64(k)), probabilities(p)); err != nil {
		return 0, err
	}
	if k == 0 {
		return 1, nil
	}
	sum := 0.0
	for n, v := range poissonBinomial(p) {
		if n >= k {
			sum += v
		}
	}
	return min(sum, 1), nil
}

// Quantile is the smallest number of events whose probability of that many or
// fewer is at least q, by the Poisson-binomial distribution: with a probability of
// 1-q or more, at least so many happen. Without events it is 0.
func Quantile(q float64, p []float64) (int, error) {
	if err := errors.Join(probability("quantile", q), probabilities(p)); err != nil {
		return 0, err
	}
	sum := 0.0
	for n, v := range poissonBinomial(p) {
		if sum += v; sum >= q {
			return n, nil
		}
	}
	return len(p), nil // rounding left a rest
}

// poissonBinomial is the probability of exactly n of the events, for n = 0 to all.
func poissonBinomial(p []float64) []float64 {
	exactly := make([]float64, 1, len(p)+1)
	exactly[0] = 1
	for _, v := range p {
		exactly = append(exactly, 0)
		for n := len(exactly) - 1; n > 0; n-- {
			exactly[n] = exactly[n]*(1-v) + exactly[n-1]*v
		}
		exactly[0] *= 1 - v
	}
	return exactly
}

// UpNode is a node that is up, as NodeUp takes it.
type UpNode struct {
	FailuresPerStep float64 // lambda_F, finite
	Reliability     float64 // P, chance of staying up regardless
	UpSteps         int64   // tau_U, how long it has been up
}

// DownNode is a node that is down, as NodeRecover takes it.
type DownNode struct {
	RecoveriesPerStep float64 // lambda_R, finite
	Unrecoverable     float64 // Q, chance of never recovering
	DownSteps         int64   // tau_D, how long it has been down
}

// UpSet is what becomes of a set of nodes that are up.
type UpSet struct {
	// Paper is the thesis' equation (9), and (7) for tau = 1: 1 minus the product of
	// the printed failure sums. The text calls it the probability that "this set"
	// stays up; it is that of at least one node, and for 50 nodes almost 1 where
	// that of all is almost 0.
	Paper float64

	All    float64 // all stay up
	Any    float64 // at least one does
	Quorum float64 // at least as many as asked for do
}

// SetUp is the probability that nodes that are up stay up for tau steps more; Quorum
// asks for at least quorum of them. Without nodes Paper and Any are 0, All is 1.
func SetUp(nodes []UpNode, tau int64, quorum int) (UpSet, error) {
	paper, fixed, err := eachUp(nodes, tau)
	if err != nil {
		return UpSet{}, err
	}
	enough, err := AtLeast(quorum, fixed)
	if err != nil {
		return UpSet{}, err
	}
	all, _ := AllOf(fixed) // probabilities, as AtLeast found
	return UpSet{Paper: anyOf(paper), All: all, Any: anyOf(fixed), Quorum: enough}, nil
}

func eachUp(nodes []UpNode, tau int64) (paper, fixed []float64, err error) {
	if err := steps("tau", tau); err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		p, f, err := NodeUp(n.FailuresPerStep, n.Reliability, n.UpSteps, tau)
		if err != nil {
			return nil, nil, err
		}
		paper, fixed = append(paper, p), append(fixed, f)
	}
	return paper, fixed, nil
}

// RecoveringSet is what becomes of a set of nodes that are down.
type RecoveringSet struct {
	Paper    float64 // the thesis' equations (8) and (10): the product of the printed sums
	All      float64 // all recover
	Any      float64 // at least one does
	Expected float64 // how many do on average
}

// SetRecover is the probability that nodes that are down recover within tau steps
// more. Without nodes Paper and All are 1, Any and Expected are 0.
func SetRecover(nodes []DownNode, tau int64) (RecoveringSet, error) {
	paper, fixed, err := eachRecover(nodes, tau)
	if err != nil {
		return RecoveringSet{}, err
	}
	printed, err := AllOf(paper)
	if err != nil {
		return RecoveringSet{}, err
	}
	all, _ := AllOf(fixed) // probabilities, like those of the paper
	return RecoveringSet{Paper: printed, All: all, Any: anyOf(fixed), Expected: total(fixed)}, nil
}

func eachRecover(nodes []DownNode, tau int64) (paper, fixed []float64, err error) {
	if err := steps("tau", tau); err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		p, f, err := NodeRecover(n.RecoveriesPerStep, n.Unrecoverable, n.DownSteps, tau)
		if err != nil {
			return nil, nil, err
		}
		paper, fixed = append(paper, p), append(fixed, f)
	}
	return paper, fixed, nil
}

func probabilities(p []float64) error {
	for i, v := range p {
		if err := probability("probability", v); err != nil {
			return fmt.Errorf("number %d: %w", i, err)
		}
	}
	return nil
}

func steps(name string, n int64) error {
	if n < 0 {
		return fmt.Errorf("%w: %s: want at least 0, have %d", ErrInvalidArgument, name, n)
	}
	return nil
}
