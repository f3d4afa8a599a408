package index

import (
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Ratio is R = max(0, 1 - f/g) of two amounts that are valid: the share of the required
// amount g that an offer f leaves open, 0 (all provided) to 1 (nothing provided). Nothing
// required is 0, whatever is offered; a finite offer meets nothing of an unlimited
// requirement. Thesis, section 3.1.2.
func Ratio(offered, required float64) float64 {
	switch {
	case required == 0 || offered >= required:
		return 0
	case math.IsInf(required, 1):
		return 1
	default:
		// The same as 1 - f/g without its cancellation where f is close to g.
		return (required - offered) / required
	}
}

// Upload is a site's upload rate towards one peer.
type Upload struct {
	Peer grid.SiteID
	Bps  float64 // B_ij, bit/s
}

// Potential is P_i, the sum of a site's upload rates to all its peers, bit/s:
// how well connected the site is. An entry for the site itself is ignored,
// whatever it holds; without peers the potential is 0. Thesis, section 3.1.1.
func Potential(self grid.SiteID, uploads []Upload) (float64, error) {
	sum := 0.0
	for _, up := range uploads {
		if up.Peer == self {
			continue
		}
		if err := argument.Amount("upload rate", up.Bps); err != nil {
			return 0, err
		}
		sum += up.Bps
	}
	return sum, nil
}
