package avail

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

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

func anyOf(p []float64) float64 {
	logs := 0.0
	for _, v := range p {
		logs += math.Log1p(-v)
	}
	return -math.Expm1(logs)
}

// Quantile is the smallest number of events whose probability of that many or
// fewer is at least q, by the Poisson-binomial distribution: with a probability of
// 1-q or more, at least so many happen. Without events it is 0.
func Quantile(q float64, p []float64) (int, error) {
	if err := errors.Join(argument.Probability("quantile", q), probabilities(p)); err != nil {
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

func eachUp(nodes []UpNode, tau int64) (paper, fixed []float64, err error) {
	if err := argument.AtLeast("tau", 0, tau); err != nil {
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

func eachRecover(nodes []DownNode, tau int64) (paper, fixed []float64, err error) {
	if err := argument.AtLeast("tau", 0, tau); err != nil {
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
		if err := argument.Probability("probability", v); err != nil {
			return fmt.Errorf("number %d: %w", i, err)
		}
	}
	return nil
}
