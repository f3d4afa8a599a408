package fault

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// DefaultHalfLife is the time in which a fault index falls to a half by itself: in a week most
// machines have been repaired, replaced or restarted.
const DefaultHalfLife = 7 * 24 * time.Hour

// maxIndex is the highest index.
const maxIndex = 1e6

// Record holds what a ledger knows of one site. It is all that has to be kept of it.
type Record struct {
	Index  float64   // the fault index at At, 0 to maxIndex
	At     time.Time // of the last count
	First  time.Time // of the first count
	Last   time.Time // of the last fault; zero: none is known
	Counts Counts    // of all faults, those included for which successes have made up
	Tried  uint64    // attempts that were counted, with a fault or without
}

// Ledger holds the fault index of each site. The zero value is empty and ready.
//
// An index grows by 1 with a fault, falls by 1 with a success, and never falls below 0. By itself
// it halves in each half-life: what is read is worked out from the last count, and reading changes
// nothing, so that no rounding adds up and a restart changes nothing.
//
// A ledger has one owner, who gives it times that do not decrease. It holds an entry for each
// site that was counted, so its owner bounds it by counting only sites to which it gave work.
// To count an attempt once, however often it is heard of, is the owner's business, too.
type Ledger struct {
	HalfLife time.Duration // 0: indices do not fall by themselves
	entries  []entry       // ascending by site
}

// entry holds what a ledger knows of one site.
type entry struct {
	Site grid.SiteID
	Record
}

// Missed counts a fault.
func (l *Ledger) Missed(site grid.SiteID, cause Cause, now time.Time) {
	r := l.Record(site)
	r.Index = min(l.now(r, now)+1, maxIndex)
	r.At, r.Last = now, now
	r.Counts.add(cause)
	l.count(site, r)
}

// Succeeded counts a success.
func (l *Ledger) Succeeded(site grid.SiteID, now time.Time) {
	r := l.Record(site)
	r.Index = max(l.now(r, now)-1, 0)
	r.At = now
	l.count(site, r)
}

func (l *Ledger) count(site grid.SiteID, r Record) {
	if r.Tried == 0 {
		r.First = r.At
	}
	r.Tried++
	l.Put(site, r)
}

// Pardon takes a fault back that was counted at a time: it was not the site's. What is left of it
// leaves the index.
func (l *Ledger) Pardon(site grid.SiteID, cause Cause, counted, now time.Time) {
	at, known := l.find(site)
	if !known {
		return
	}
	r := &l.entries[at].Record
	left := l.now(Record{Index: 1, At: counted}, now)
	r.Index, r.At = max(l.now(*r, now)-left, 0), now
	r.Counts.takeBack(cause)
	r.Tried -= min(r.Tried, 1)
	if r.Counts == (Counts{}) {
		r.Last = time.Time{}
	}
}

// Index is the site's fault index at a time that is not before its last count; 0 for a site never
// counted.
func (l *Ledger) Index(site grid.SiteID, now time.Time) float64 {
	return l.now(l.Record(site), now)
}

// now is the index of a record at a time.
func (l *Ledger) now(r Record, now time.Time) float64 {
	return Decayed(r.Index, now.Sub(r.At), l.HalfLife)
}

// Decayed holds what is left of an index after some time: index 2^-(passed/halfLife), to the 2^40th
// part of a half-life. It is worked out by square roots and products alone, which are the same on
// every machine, and never rises with time.
func Decayed(index float64, passed, halfLife time.Duration) float64 {
	if passed <= 0 || halfLife <= 0 {
		return index
	}
	part, root := float64(passed%halfLife)/float64(halfLife), .5
	for range decayBits {
		part, root = 2*part, math.Sqrt(root)
		if part >= 1 {
			part, index = part-1, index*root
		}
	}
	index = math.Ldexp(index, -int(min(passed/halfLife, maxHalvings)))
	if index < negligible {
		return 0
	}
	return index
}

const (
	decayBits   = 40
	maxHalvings = 1024
	negligible  = 1. / 64 // an index below it is none: no risk in hundredths differs by it
)

// Record returns what is known of a site; zero for one never counted.
func (l *Ledger) Record(site grid.SiteID) Record {
	if at, known := l.find(site); known {
		return l.entries[at].Record
	}
	return Record{}
}

// Put sets what is known of a site, as Record has returned it before. An index out of range is
// cut; one that is no number counts as 0.
func (l *Ledger) Put(site grid.SiteID, r Record) {
	if !(r.Index > 0) {
		r.Index = 0
	}
	r.Index = min(r.Index, maxIndex)
	if at, known := l.find(site); known {
		l.entries[at].Record = r
	} else {
		l.entries = slices.Insert(l.entries, at, entry{site, r})
	}
}

// Begin takes it that the time is now: a count that was made later than that, by a clock that was
// set back since, was made now.
func (l *Ledger) Begin(now time.Time) {
	for i := range l.entries {
		r := &l.entries[i].Record
		if r.At.IsZero() || r.At.After(now) {
			r.At = now
		}
		if r.Last.After(now) {
			r.Last = now
		}
		if r.First.IsZero() || r.First.After(now) {
			r.First = now
		}
	}
}

// Forget drops what is known of a site.
func (l *Ledger) Forget(site grid.SiteID) {
	if at, known := l.find(site); known {
		l.entries = slices.Delete(l.entries, at, at+1)
	}
}

// Sites lists the sites that were counted, ascending.
func (l *Ledger) Sites() []grid.SiteID {
	sites := make([]grid.SiteID, 0, len(l.entries))
	for _, e := range l.entries {
		sites = append(sites, e.Site)
	}
	return sites
}

func (l *Ledger) find(site grid.SiteID) (int, bool) {
	return slices.BinarySearchFunc(l.entries,
		site, func(e entry, s grid.SiteID) int { return cmp.Compare(e.Site, s) })
}
