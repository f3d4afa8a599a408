package avail

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Cycle holds the mean times for which a node is up and down.
type Cycle struct {
	MTTFSeconds float64 // up, until it fails
	MTTRSeconds float64 // down, until it is back
}

// MeanAvailability is the expected share of nodes that are up: the mean of each
// node's MTTF/(MTTF+MTTR). weights, if there are any, say how much each node counts,
// for instance its capacity; nil counts all alike. It is argument.ErrUndefined without
// nodes, with weights of another number or that are all 0, or if it is for one of
// the nodes.
func MeanAvailability(cycles []Cycle, weights []float64) (float64, error) {
	if err := checkCycles(cycles); err != nil {
		return 0, err
	}
	heaviest := 0.0
	for _, w := range weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return 0, fmt.Errorf("%w: weight: want a finite number of at least 0, have %v",
				argument.ErrInvalid, w)
		}
		heaviest = max(heaviest, w)
	}
	if weights != nil && (len(weights) != len(cycles) || heaviest == 0) {
		return 0, fmt.Errorf("%w: %d weights for %d nodes, the greatest %v",
			argument.ErrUndefined, len(weights), len(cycles), heaviest)
	}
	var sum, all float64
	for i, c := range cycles {
		available, err := ratio(c.MTTFSeconds, c.MTTRSeconds)
		if err != nil {
			return 0, err
		}
		weight := 1.0
		if weights != nil {
			weight = weights[i] / heaviest
		}
		sum += weight * available
		all += weight
	}
	return min(sum/all, 1), nil
}

func checkCycles(cycles []Cycle) error {
	for _, c := range cycles {
		err := errors.Join(argument.Amount("MTTF", c.MTTFSeconds), argument.Amount("MTTR", c.MTTRSeconds))
		if err != nil {
			return err
		}
	}
	if len(cycles) == 0 {
		return fmt.Errorf("%w: the availability of no nodes", argument.ErrUndefined)
	}
	return nil
}

// ratio is up/(up+down), also where one of both is infinite.
func ratio(up, down float64) (float64, error) {
	switch {
	case up == 0 && down == 0, math.IsInf(up, 1) && math.IsInf(down, 1):
		return 0, fmt.Errorf("%w: availability of %v up and %v down", argument.ErrUndefined, up, down)
	case math.IsInf(up, 1):
		return 1, nil
	default:
		return share(up, down), nil
	}
}

// saaSlack is by what part a request may exceed the limit: 0.29 times 100 is
// 28.999999999999996 in float64.
const saaSlack = 1e-9

// SAA says whether the grid should accept a job at all: site availability based
// allocation. A job is rejected if it asks for more than the share alpha of all
// nodes that are up in the long run; total counts the nodes that are down now as
// well. alpha is the expected availability, see MeanAvailability; the thesis takes
// its GAE. A request for exactly that many is accepted. Thesis, section 3.3.1.
func SAA(request, total, alpha float64) (bool, error) {
	if err := errors.Join(argument.Amount("request", request), argument.Amount("all nodes", total),
		argument.Probability("availability alpha", alpha)); err != nil {
		return false, err
	}
	if alpha == 0 || total == 0 { // also of infinitely many
		return request == 0, nil
	}
	return request <= alpha*total*(1+saaSlack), nil
}

// Standing holds what a submitter knows of one node.
type Standing struct {
	Site grid.SiteID
	Up   bool    // it is up now
	PUp  float64 // probability that it stays up for the job's run time, 0 to 1
}

// NAA is the nodes to give a job to: node availability based allocation. It takes
// the need nodes that are up and likeliest to stay so; ties go by site. It reports
// false if fewer are up. Thesis, section 3.3.1, which cites its equation (10), of
// recovery, and means (9).
func NAA(nodes []Standing, need int) ([]grid.SiteID, bool, error) {
	if err := argument.AtLeast("need", 0, int64(need)); err != nil {
		return nil, false, err
	}
	var up []Standing
	for _, n := range nodes {
		if err := argument.Probability("probability of staying up", n.PUp); err != nil {
			return nil, false, fmt.Errorf("node %q: %w", n.Site, err)
		}
		if n.Up {
			up = append(up, n)
		}
	}
	if len(up) < need {
		return nil, false, nil
	}
	slices.SortStableFunc(up, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.PUp, a.PUp), cmp.Compare(a.Site, b.Site))
	})
	chosen := make([]grid.SiteID, need)
	for i := range chosen {
		chosen[i] = up[i].Site
	}
	return chosen, true, nil
}
