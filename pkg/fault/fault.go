// Package fault remembers how reliable sites have been and chooses where to run a
// task again after its site failed: fault-index based rescheduling, FIBR.
//
// A site's fault index grows with every response window it misses, every lease it loses and
// every wrong result, falls with every success, and halves by itself in a week. A task whose site
// failed moves, among those that can take it, to the site with the lowest Risk, which the index
// is a part of; with OrderIndex, to that with the lowest index, as the paper says.
//
// Submitters tell each other what they have counted. What others say is weighed by who says it,
// and is never more than a reason for doubt (Weigh).
//
//	cause.go   the ways in which sites fail
//	ledger.go  what one submitter has counted, and how that fades
//	weigh.go   what others say of sites, and what that is worth
//	fault.go   the order in which sites take a task again
//
// Source: Antony Lidya Therasa S., Sumathi G., Antony Dalya S., "Dynamic Adaptation
// of Checkpoints and Rescheduling in Grid Computing", section 3.4. The paper lets
// a busy site bank credit without end, so that 100 successes hide 99 failures;
// the default here has a floor of 0. Decay, sharing and weights are not in the paper.
package fault

import (
	"cmp"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Order says which of several sites is taken first.
type Order uint8

// The orders. Indices are compared in whole faults: how long ago a fault was is no reason to prefer
// a site that is farther away.
const (
	OrderRisk  Order = iota // (Risk in hundredths, index, distance, site); the default
	OrderIndex              // FIBR: (index, z, distance, site): what has failed least, then z
	OrderPaper              // (index, distance, site)
)

// halfTrust is the fault index of a site that is trusted half as much as one without.
const halfTrust = 8

// Risk is the chance, 0 to 1, that a site does not bring a task to its end: it leaves with
// probability z, and fails for other reasons as its fault index lets fear:
// 1 - (1 - z) 8/(8 + index). A z that is no number counts as 1.
func Risk(index, z float64) float64 {
	stays := 1 - min(max(orInf(z), 0), 1)
	return 1 - stays*(1-doubt(index))
}

// doubt is the part of the trust in a site that a fault index takes away, 0 to 1.
func doubt(index float64) float64 {
	if !(index > 0) {
		return 0
	}
	return 1 - halfTrust/(halfTrust+index)
}

// Candidate is a site that could take a task again. A distance that is no number
// counts as infinite, and so does a z.
type Candidate struct {
	Site     grid.SiteID
	Index    float64 // its fault index, with what others say of it
	Distance float64 // from the job in the virtual map; infinity if unknown
	Z        float64 // availability index, 0 is best
}

// Rank orders candidates: the one to take first comes first.
func Rank(order Order, candidates []Candidate) {
	slices.SortFunc(candidates, func(a, b Candidate) int { return compare(order, a, b) })
}

// Least is the candidate to take of those that Rank has ordered, without those that are
// excluded: the one that has just failed is never taken first. It reports false if none is
// left.
func Least(ranked []Candidate, excluded func(grid.SiteID) bool) (grid.SiteID, bool) {
	at := slices.IndexFunc(ranked, func(c Candidate) bool { return !excluded(c.Site) })
	if at < 0 {
		return "", false
	}
	return ranked[at].Site, true
}

func compare(order Order, a, b Candidate) int {
	p, q := math.Round(a.Index), math.Round(b.Index)
	byRisk, byZ := 0, 0
	switch order {
	case OrderRisk: // risks that differ by less are guesses: the nearer site is taken
		byRisk = cmp.Compare(hundredths(a), hundredths(b))
	case OrderIndex:
		byZ = cmp.Compare(orInf(a.Z), orInf(b.Z))
	case OrderPaper:
	}
	return cmp.Or(byRisk, cmp.Compare(p, q), byZ,
		cmp.Compare(orInf(a.Distance), orInf(b.Distance)), cmp.Compare(a.Site, b.Site))
}

func hundredths(c Candidate) float64 { return math.Round(100 * Risk(c.Index, c.Z)) }

func orInf(v float64) float64 {
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}
