package domain

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Status shows the domain at the time of the controller's last Step. Its times are those of the
// wall clock.
type Status struct {
	Term   uint64
	Before time.Duration // the remapping interval of the last judgement; 0: nothing has failed
	Sites  []SiteStatus  // ascending by ID
}

// SiteStatus shows one site.
type SiteStatus struct {
	Site     grid.SiteID
	Capacity grid.Resources // zero: it has not said
	Works    grid.Resources
	Here     bool
	Failed   time.Time // since when; zero: it has not
	Short    time.Time // since when it has less than it has promised; zero: it has not, or is gone
	Bookings int       // promised and not over
	Leaving  int       // of these, are to move
	Stuck    int       // of these, have no other place
}

// Status is a copy.
func (m *Machine) Status() Status {
	st := Status{Term: m.term, Before: m.before}
	for _, s := range m.sites.all() {
		v := SiteStatus{
			Site: s.id, Capacity: s.capacity, Works: s.works, Here: s.here,
			Bookings: len(s.bookings),
		}
		if s.isPartly() && !s.short.IsZero() {
			v.Short = s.short.Add(m.ahead)
		}
		if !s.failed.IsZero() {
			v.Failed, v.Works = s.failed.Add(m.ahead), grid.Resources{}
		}
		for _, b := range s.sorted() {
			if b.leaves {
				v.Leaving++
				if b.to == "" {
					v.Stuck++
				}
			}
		}
		st.Sites = append(st.Sites, v)
	}
	return st
}
