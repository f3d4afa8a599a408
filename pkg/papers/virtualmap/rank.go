package virtualmap

import (
	"cmp"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// Point is a site's position in the virtual map of one job.
type Point struct {
	Site       grid.SiteID
	X, Y, Z    float64
	Infeasible bool // the site cannot run the task at all
}

// Ranked is a site with its distance.
type Ranked struct {
	Site     grid.SiteID
	Distance float64
}

// Rank orders sites by ascending (distance, z, y, x, site) and keeps the first
// limit of them; a limit of 0 or less keeps all. Points that are infeasible,
// infinitely far or malformed are dropped, silently, for a site that sends
// nonsense must not hurt the submitter. Thesis, section 4.1, step 3.
func Rank(points []Point, limit int) []Ranked {
	type placed struct {
		Point
		distance float64
	}
	kept := make([]placed, 0, len(points))
	for _, p := range points {
		d, err := index.Distance(p.X, p.Y, p.Z)
		if err == nil && !p.Infeasible && !math.IsInf(d, 1) {
			kept = append(kept, placed{p, d})
		}
	}
	slices.SortFunc(kept, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.Z, b.Z),
			cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X), cmp.Compare(a.Site, b.Site))
	})
	if limit > 0 && limit < len(kept) {
		kept = kept[:limit]
	}
	ranked := make([]Ranked, len(kept))
	for i, p := range kept {
		ranked[i] = Ranked{Site: p.Site, Distance: p.distance}
	}
	return ranked
}
