// Package fault remembers how reliable sites have been and chooses where to run a
// task again after its site failed: fault-index based rescheduling, FIBR.
//
// A site's fault index grows with every response window it misses and every lease it
// loses, and falls with every success. A task whose site failed moves, among those that can
// take it, to the site with the lowest Risk, which the index is a part of; with OrderIndex, to
// that with the lowest index, as the paper says.
//
// Source: Antony Lidya Therasa S., Sumathi G., Antony Dalya S., "Dynamic Adaptation
// of Checkpoints and Rescheduling in Grid Computing", section 3.4. The paper lets
// a busy site bank credit without end, so that 100 successes hide 99 failures;
// the default here has a floor of 0.
package fault

import (
	"cmp"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// entry holds what a ledger knows of one site.
type entry struct {
	Site  grid.SiteID
	Index int64 // never 0: a site that is not in the ledger has index 0
}

// Ledger holds the fault index of each site. The zero value is empty and ready.
// An index never falls below 0. A ledger has one owner; it holds an entry for each site that
// failed more than it succeeded, so its owner bounds it by counting only sites to
// which it gave work. Counting an attempt once, when its success arrives after
// its time ran out, is the owner's business too.
type Ledger struct {
	entries []entry // ascending by site
}

// Missed counts a missed response window, a lost lease, or a fault that somebody
// else vouches for: the site's index grows by weight. A weight below 1 counts
// nothing.
func (l *Ledger) Missed(site grid.SiteID, weight int64) {
	if weight < 1 {
		return
	}
	index := l.Index(site)
	l.set(site, index+min(weight, math.MaxInt64-index)) // saturates
}

// Succeeded counts a success: the site's index falls by 1, not below 0.
func (l *Ledger) Succeeded(site grid.SiteID) {
	l.set(site, l.Index(site)-1)
}

// Forget drops what is known of a site.
func (l *Ledger) Forget(site grid.SiteID) { l.set(site, 0) }

// Sites lists the sites that have an index, ascending.
func (l *Ledger) Sites() []grid.SiteID {
	sites := make([]grid.SiteID, 0, len(l.entries))
	for _, e := range l.entries {
		sites = append(sites, e.Site)
	}
	return sites
}

// Index is the site's fault index; 0 for a site never counted.
func (l *Ledger) Index(site grid.SiteID) int64 {
	if at, known := l.find(site); known {
		return l.entries[at].Index
	}
	return 0
}

func (l *Ledger) find(site grid.SiteID) (int, bool) {
	return slices.BinarySearchFunc(l.entries,
		site, func(e entry, s grid.SiteID) int { return cmp.Compare(e.Site, s) })
}

func (l *Ledger) set(site grid.SiteID, index int64) {
	index = max(index, 0)
	at, known := l.find(site)
	switch {
	case index == 0 && known:
		l.entries = slices.Delete(l.entries, at, at+1)
	case index == 0:
	case known:
		l.entries[at].Index = index
	default:
		l.entries = slices.Insert(l.entries, at, entry{site, index})
	}
}

// Order says which of several sites is taken first.
type Order uint8

// The orders.
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
func Risk(index int64, z float64) float64 {
	stays := 1 - min(max(orInf(z), 0), 1)
	return 1 - stays*halfTrust/(halfTrust+float64(max(index, 0)))
}

// Candidate is a site that could take a task again. A distance that is no number
// counts as infinite, and so does a z.
type Candidate struct {
	Site     grid.SiteID
	Distance float64 // from the job in the virtual map; infinity if unknown
	Z        float64 // availability index, 0 is best
}

// Rank orders candidates: the one to take first comes first.
func (l *Ledger) Rank(order Order, candidates []Candidate) {
	slices.SortFunc(candidates, func(a, b Candidate) int { return l.compare(order, a, b) })
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

func (l *Ledger) compare(order Order, a, b Candidate) int {
	p, q := l.Index(a.Site), l.Index(b.Site)
	byRisk, byZ := 0, 0
	switch order {
	case OrderRisk: // risks that differ by less are guesses: the nearer site is taken
		byRisk = cmp.Compare(math.Round(100*Risk(p, a.Z)), math.Round(100*Risk(q, b.Z)))
	case OrderIndex:
		byZ = cmp.Compare(orInf(a.Z), orInf(b.Z))
	case OrderPaper:
	}
	return cmp.Or(byRisk, cmp.Compare(p, q), byZ,
		cmp.Compare(orInf(a.Distance), orInf(b.Distance)), cmp.Compare(a.Site, b.Site))
}

func orInf(v float64) float64 {
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}
