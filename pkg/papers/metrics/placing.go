package metrics

import (
	"errors"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// PlacingTime bounds the time from a job's announcement until all sites have answered, if
// a message takes at most ttlSeconds and a site so long to work out its answer. paper is
// the thesis' 2 n TTL + max CT for n sites, section 4.1, which sends to one site after
// the other. A broadcast reaches all at the same time: parallel is 2 TTL + max CT for any
// number of sites.
func PlacingTime(
	sites int64, ttlSeconds float64, computeSeconds []float64,
) (paper, parallel float64, err error) {
	if err := errors.Join(argument.AtLeast("sites", 0, sites),
		argument.Amount("TTL", ttlSeconds)); err != nil {
		return 0, 0, err
	}
	slowest := 0.0
	for _, c := range computeSeconds {
		if err := argument.Amount("time to compute", c); err != nil {
			return 0, 0, err
		}
		slowest = max(slowest, c)
	}
	return argument.Product(2, float64(sites), ttlSeconds) + slowest, 2*ttlSeconds + slowest, nil
}
