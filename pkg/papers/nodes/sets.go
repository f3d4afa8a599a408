package nodes

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// atLeast is the probability that at least k of several independent events
// happen, by the Poisson-binomial distribution. A job that bears some failures
// needs this. k = 0 is 1, more events than there are is 0.
func atLeast(k int, p []float64) (float64, error) {
	if err := errors.Join(argument.AtLeast("k", 0, int64(k)), validate(p)); err != nil {
		return 0, err
	}
	if k == 0 {
		return 1, nil
	}
	sum := 0.0
	for n, v := range exactly(p) {
		if n >= k {
			sum += v
		}
	}
	return min(sum, 1), nil
}

// UpSet is the forecast for a set of nodes that are up.
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
func SetUp(nodes []avail.UpNode, tau int64, quorum int) (UpSet, error) {
	if err := argument.AtLeast("tau", 0, tau); err != nil {
		return UpSet{}, err
	}
	paper, fixed := make([]float64, len(nodes)), make([]float64, len(nodes))
	for i, n := range nodes {
		var err error
		paper[i], fixed[i], err = avail.NodeUp(n.FailuresPerStep, n.Reliability, n.UpSteps, tau)
		if err != nil {
			return UpSet{}, err
		}
	}
	enough, err := atLeast(quorum, fixed)
	if err != nil {
		return UpSet{}, err
	}
	all, err := avail.AllOf(fixed)
	return UpSet{Paper: anyOf(paper), All: all, Any: anyOf(fixed), Quorum: enough}, err
}

// RecoveringSet is the forecast for a set of nodes that are down.
type RecoveringSet struct {
	Paper    float64 // the thesis' equations (8) and (10): the product of the printed sums
	All      float64 // all recover
	Any      float64 // at least one does
	Expected float64 // how many do on average
}

// SetRecover is the probability that nodes that are down recover within tau steps
// more. Without nodes Paper and All are 1, Any and Expected are 0.
func SetRecover(nodes []avail.DownNode, tau int64) (RecoveringSet, error) {
	if err := argument.AtLeast("tau", 0, tau); err != nil {
		return RecoveringSet{}, err
	}
	paper, fixed, sum := make([]float64, len(nodes)), make([]float64, len(nodes)), 0.0
	for i, n := range nodes {
		var err error
		paper[i], fixed[i], err = avail.NodeRecover(n.RecoveriesPerStep,
			n.Unrecoverable, n.DownSteps, tau)
		if err != nil {
			return RecoveringSet{}, err
		}
		sum += fixed[i]
	}
	printed, errPrinted := avail.AllOf(paper)
	all, errAll := avail.AllOf(fixed)
	return RecoveringSet{Paper: printed, All: all, Any: anyOf(fixed), Expected: sum},
		errors.Join(errPrinted, errAll)
}

// anyOf is the probability that at least one of several independent events happens. None
// at all is 0.
func anyOf(p []float64) float64 {
	logs := 0.0
	for _, v := range p {
		logs += math.Log1p(-v)
	}
	return -math.Expm1(logs)
}

// exactly is the probability of n of the events and no more, for n = 0 to all: after
// each event, what had n stays there without it and has n + 1 with it.
func exactly(p []float64) []float64 {
	of := []float64{1}
	for _, v := range p {
		next := make([]float64, len(of)+1)
		for n, w := range of {
			next[n] += w * (1 - v)
			next[n+1] += w * v
		}
		of = next
	}
	return of
}

func validate(p []float64) error {
	for i, v := range p {
		if err := argument.Probability("probability", v); err != nil {
			return fmt.Errorf("number %d: %w", i, err)
		}
	}
	return nil
}
