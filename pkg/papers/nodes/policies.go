package nodes

import (
	"errors"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// GeneralAvailability is the thesis' General Availability Equation (GAE): the sum
// of all MTTF over that of all MTTF and MTTR. Nodes with long cycles dominate it:
// for {1000 s up, 1000 s down} and {9 s up, 1 s down} it is .50, where .70 of the
// nodes are up on average, see MeanAvailability. It is 1 if only the sum of MTTF is
// infinite, 0 if only that of MTTR is, and argument.ErrUndefined without nodes, if both are
// infinite or if both are 0. Thesis, section 3.2.2, where it reads "MTF" and "MTR".
func GeneralAvailability(cycles []avail.Cycle) (float64, error) {
	_, err := avail.MeanAvailability(cycles, nil)
	if errors.Is(err, argument.ErrInvalid) || len(cycles) == 0 {
		return 0, err
	}
	largest := 0.0 // sums are scaled by it, so that they do not overflow
	for _, c := range cycles {
		for _, v := range []float64{c.MTTFSeconds, c.MTTRSeconds} {
			if !math.IsInf(v, 1) {
				largest = max(largest, v)
			}
		}
	}
	if largest == 0 {
		largest = 1
	}
	var sum avail.Cycle
	for _, c := range cycles {
		sum.MTTFSeconds += c.MTTFSeconds / largest
		sum.MTTRSeconds += c.MTTRSeconds / largest
	}
	return avail.MeanAvailability([]avail.Cycle{sum}, nil)
}

// NSA is SAA, then NAA: node and site based allocation. All nodes, also those that
// are down, count for the long run. It reports false if the job asks for more than
// SAA accepts or than there are nodes up. Thesis, section 3.3.1.
func NSA(nodes []avail.Standing, need int, alpha float64) ([]grid.SiteID, bool, error) {
	chosen, found, err := avail.NAA(nodes, need)
	if err != nil {
		return nil, false, err
	}
	accepted, err := avail.SAA(float64(need), float64(len(nodes)), alpha)
	if err != nil || !accepted || !found {
		return nil, false, err
	}
	return chosen, true, nil
}
