// Package fibr has the fault index of FIBR as it is printed, without a floor or with any:
// pkg/fault, which the machines use, never lets it fall below 0, because 100 successes
// would hide 99 failures.
//
// No program calls it. It is the oracle for the vectors with other floors, which
// internal/vectors compares with a second implementation.
//
// Source: Antony Lidya Therasa S., Sumathi G., Antony Dalya S., "Dynamic Adaptation of
// Checkpoints and Rescheduling in Grid Computing", section 3.4.
package fibr

import (
	"cmp"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Ledger holds the fault index of each site.
type Ledger struct {
	floor int64
	index map[grid.SiteID]int64
}

// New is an empty ledger: no index falls below the floor, math.MinInt64 for none.
func New(floor int64) Ledger { return Ledger{floor: floor, index: map[grid.SiteID]int64{}} }

// Missed adds 1 to a site's index: no answer came in time.
func (l Ledger) Missed(site grid.SiteID) { l.set(site, l.index[site]+1) }

// Succeeded takes 1 from a site's index.
func (l Ledger) Succeeded(site grid.SiteID) { l.set(site, l.index[site]-1) }

func (l Ledger) set(site grid.SiteID, index int64) { l.index[site] = max(index, l.floor) }

// Index is a site's fault index; 0 for a site never counted.
func (l Ledger) Index(site grid.SiteID) int64 { return l.index[site] }

// Least returns the candidate with the lowest index, then the lowest distance, then the
// first by name, without those that are excluded. It reports false if none is left.
func (l Ledger) Least(candidates []fault.Candidate, excluded []grid.SiteID) (grid.SiteID, bool) {
	left := slices.DeleteFunc(slices.Clone(candidates), func(c fault.Candidate) bool {
		return slices.Contains(excluded, c.Site)
	})
	if len(left) == 0 {
		return "", false
	}
	return slices.MinFunc(left, func(a, b fault.Candidate) int {
		return cmp.Or(cmp.Compare(l.index[a.Site], l.index[b.Site]),
			cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Site, b.Site))
	}).Site, true
}
