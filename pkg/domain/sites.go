package domain

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// site holds all that is known of a site.
type site struct {
	id       grid.SiteID
	capacity grid.Resources // of all of it
	works    grid.Resources // the part that works
	said     bool           // it has said so: others are never asked to take anything

	priced bool    // its owner names a price
	price  float64 // of a core for an hour

	coreMFLOPS, downBps int64 // 0: not known; no facts, as every run is told anew

	here   bool
	gone   time.Time // since when it is not; zero: it is here
	failed time.Time // since when it has failed; zero: it has not
	short  time.Time // since when it has less than it has promised, as this term has heard

	bookings map[grid.AttemptID]*booking
	number   uint64 // of the last of its messages that was taken; 0: none of this term
}

// booking is a place that a site has promised.
type booking struct {
	attempt    grid.AttemptID
	submitter  grid.SiteID
	start, end time.Time
	need       grid.Resources
	booked     time.Time
	scales     bool
	data       int64

	// While its site has failed: whether it is to leave, and where to. No facts: they are worked
	// out anew.
	leaves bool
	to     grid.SiteID
}

// isAhead reports whether it has not begun.
func (b *booking) isAhead(now time.Time) bool { return b.start.After(now) }

// sites are all sites that have bookings, or are there.
type sites map[grid.SiteID]*site

// all lists the sites, ascending.
func (s sites) all() []*site {
	list := make([]*site, 0, len(s))
	for _, id := range slices.Sorted(maps.Keys(s)) {
		list = append(list, s[id])
	}
	return list
}

// sorted lists the bookings of a site by their attempts.
func (s *site) sorted() []*booking {
	return slices.SortedFunc(maps.Values(s.bookings), func(a, b *booking) int {
		return a.attempt.Compare(b.attempt)
	})
}

// lost is the part of the site that does not work.
func (s *site) lost() grid.Resources {
	if !s.failed.IsZero() {
		return s.capacity
	}
	return s.capacity.Sub(s.works)
}

// isImpaired reports whether any of it does not work.
func (s *site) isImpaired() bool {
	l := amount(s.lost())
	return l != amount(grid.Resources{})
}

// isPartly reports whether it is there, and a part of it does not work.
func (s *site) isPartly() bool { return s.failed.IsZero() && s.isImpaired() }

// settle forgets what was to leave a site.
func (s *site) settle() {
	for _, b := range s.sorted() {
		b.leaves, b.to = false, ""
	}
}

// know returns a site, which it adds to the table; nil if that is full.
func (m *Machine) know(id grid.SiteID) *site {
	s := m.sites[id]
	if s == nil && len(m.sites) < m.cfg.MaxSites {
		s = &site{id: id, gone: m.now, bookings: make(map[grid.AttemptID]*booking)}
		m.sites[id] = s
	}
	return s
}

// onPeerSeen takes that a site is there. One that had failed has returned: what was not moved stays
// there, and it says what it holds.
func (m *Machine) onPeerSeen(in step.PeerSeen) {
	if in.Site.Validate() != nil || in.Capability.Validate() != nil || m.banned.Has(in.Site) {
		return
	}
	s := m.know(in.Site)
	if s == nil {
		m.refuse(in.Site, "more sites than the controller keeps bookings of")
		return
	}
	s.coreMFLOPS, s.downBps = in.Capability.CoreMFLOPS, in.Capability.DownBps
	m.isHere(s)
}

// isHere notes that a site is there.
func (m *Machine) isHere(s *site) {
	if s.here {
		return
	}
	s.here, s.gone = true, time.Time{}
	m.out.StopTimer(timerGrace, string(s.id))
	if s.failed.IsZero() {
		return
	}
	s.failed = time.Time{}
	m.saveSite(s)
	s.settle()
	m.out.Report(step.LevelInfo, eventReturned, step.Report{
		Site: s.id, Value: float64(len(s.bookings)),
	})
	m.judgeSoon()
}

// onPeerGone takes that a site cannot be reached. It has failed if it is not back in time.
func (m *Machine) onPeerGone(id grid.SiteID) {
	s := m.sites[id]
	if s == nil || !s.here || id == m.cfg.Here {
		return
	}
	s.here, s.gone = false, m.now
	m.await(s, m.cfg.Grace)
}

// await gives a site the time to come back.
func (m *Machine) await(s *site, grace time.Duration) {
	m.out.SetTimer(timerGrace, string(s.id), m.now.Add(grace))
}

// onGraceTimer takes a site for failed that is not back.
func (m *Machine) onGraceTimer(id grid.SiteID) {
	s := m.sites[id]
	if s == nil || s.here || !s.failed.IsZero() {
		return
	}
	if len(s.bookings) == 0 {
		m.forget(s)
		return
	}
	s.failed = m.now
	m.saveSite(s)
	m.out.Report(step.LevelWarn, eventFailed, step.Report{
		Site: s.id, Value: float64(len(s.bookings)),
	})
	m.judgeNow()
}

// onBans forgets sites that are banned.
func (m *Machine) onBans(in step.BansChanged) {
	for _, id := range m.banned.Change(in, m.cfg.Here) {
		if s := m.sites[id]; s != nil {
			m.forget(s)
			m.judgeSoon()
		}
	}
}

// forget drops a site.
func (m *Machine) forget(s *site) {
	for _, b := range s.sorted() {
		m.drop(s, b)
	}
	delete(m.sites, s.id)
	if s.said {
		m.out.Persist(step.Fact{Kind: factSite, Key: string(s.id)})
	}
}

// drop forgets a booking.
func (m *Machine) drop(s *site, b *booking) {
	delete(s.bookings, b.attempt)
	m.out.Persist(step.Fact{Kind: factBooking, Key: bookingKey(s.id, b.attempt)})
}

// prune forgets what is over, and sites that are gone and have promised nothing.
func (m *Machine) prune() {
	for _, s := range m.sites.all() {
		for _, b := range s.sorted() {
			if !b.end.After(m.now) {
				m.drop(s, b)
			}
		}
		if !s.here && !s.failed.IsZero() && len(s.bookings) == 0 {
			m.forget(s)
		}
	}
}
