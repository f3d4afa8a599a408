package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// near learns how near sites have to be that a sampled round should hear of, whatever is drawn:
// chance alone misses the best of many. There is a distance for each map, in the seconds map as a
// part of the run time; 0 is not known yet.
type near struct {
	theta   [grid.MapSeconds + 1]float64
	pioneer [grid.MapSeconds + 1]pioneer
	out     []outing // searches of jobs for which nobody was near
	tally   tally
}

// outing is a search that is over at some time, if not before.
type outing struct {
	job   grid.JobID
	until time.Time
}

// pioneer is the job that finds out what is near, one at a time in each map. The zero value is
// none.
type pioneer struct {
	job     grid.JobID
	until   time.Time    // its search is over by then
	waiting []grid.JobID // jobs that are announced when it is
}

// isOut reports whether another job than this one searches.
func (s *pioneer) isOut(but grid.JobID, now time.Time) bool {
	return s.job != "" && s.job != but && now.Before(s.until)
}

const (
	nearSites = 8  // so many should be near
	nearMany  = 12 // more are too many
	nearFew   = 4  // fewer are too few
)

// scale is the unit of a job's distances.
func scale(req *grid.Requirement) float64 {
	if req.Map == grid.MapSeconds {
		return max(req.Runtime.Seconds(), 1e-9)
	}
	return 1
}

// distance is up to where a sampled round of a job should hear of sites; 0: not known.
func (n *near) distance(req *grid.Requirement) float64 { return n.theta[req.Map] * scale(req) }

// draws counts the sites that chance is to draw of so many answers, so that there are so many on
// average: others come beside them. How many follows from what came, because about as many sites
// are near as should be, and not exactly; a third is drawn in any case, or nothing is learned.
// Before enough has come, near sites count as eight.
func (n *near) draws(answers int, theta float64) float64 {
	least, expected := float64(answers)/3, 1.0 // this site's own
	if theta > 0 {
		expected += nearSites
	}
	return min(max(float64(answers)-n.tally.beside(expected), least, 1), float64(answers))
}

// learn takes the distances of a sampled round's offers, as their sites said them, into account:
// chance was to draw so many sites, that part of all. A round may end before all have answered: how
// many are near follows from their part of those that have. Up to the nearest of those that were
// drawn there are about as many sites as one in that part stands for; so far it is gone, and no
// farther, because beyond it all may be.
func (n *near) learn(req *grid.Requirement, offers []float64, chosen, part float64) {
	if len(offers) < 2 {
		return
	}
	slices.Sort(offers)
	theta := n.distance(req)
	within, _ := slices.BinarySearch(offers, theta)
	all := chosen * float64(within) / float64(max(len(offers)-within, 1))
	switch {
	case theta == 0:
		// As far before the first as a later one is behind it: fewer than should be, to begin with.
		theta = max(2*offers[0]-offers[min(nearFew, len(offers)-1)], offers[0]/2)
	case all > nearMany:
		theta = offers[int(float64(within)*nearSites/all)]
	case all < nearFew && within < len(offers):
		theta += (offers[within] - theta) * min((nearSites-all)*part, 1)
	}
	n.theta[req.Map] = theta / scale(req)
}
