package domain

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// onBookings takes what a site says that it has promised. What it says is its own word: it counts
// for that site alone, and only what the submitters confirm is acted on.
func (m *Machine) onBookings(from grid.SiteID, msg protocol.Bookings) {
	if msg.Term != m.term {
		return // for another controller: the site is told who this one is
	}
	s := m.know(from)
	if s == nil {
		m.refuse(from, "more sites than the controller keeps bookings of")
		return
	}
	if from == m.cfg.Here { // no connection says so; another's word may be late, and it gone
		m.isHere(s)
	}
	switch {
	case msg.Number <= s.number: // it comes again, or late
		m.out.Send(from, protocol.Booked{Term: m.term, Number: msg.Number})
		return
	case !msg.Whole && msg.Number != s.number+1:
		m.out.Report(step.LevelDebug, eventIncomplete, step.Report{Site: from})
		m.out.Send(from, protocol.Booked{Term: m.term, Number: msg.Number, Again: true})
		return
	}
	s.number = msg.Number
	m.take(s, msg)
	m.out.Send(from, protocol.Booked{Term: m.term, Number: msg.Number})
	m.out.Report(step.LevelDebug, eventBookings, step.Report{
		Site: from, Value: float64(len(s.bookings)),
	})
	if !msg.More && slices.ContainsFunc(m.sites.all(), (*site).isImpaired) {
		m.judgeSoon()
	}
}

// take changes the table as a site says.
func (m *Machine) take(s *site, msg protocol.Bookings) {
	m.stands(s, msg)
	if msg.Whole {
		for _, b := range s.sorted() {
			_, held := slices.BinarySearchFunc(msg.Held, b.attempt,
				func(h protocol.Booking, id grid.AttemptID) int { return h.Attempt.Compare(id) })
			if !held {
				m.drop(s, b)
			}
		}
	}
	for _, id := range msg.Gone {
		if b := s.bookings[id]; b != nil {
			m.drop(s, b)
		}
	}
	for i, h := range msg.Held {
		if s.bookings[h.Attempt] == nil && len(s.bookings) >= m.cfg.MaxBookings {
			m.refuse(s.id, fmt.Sprintf("%d bookings more than the %d that are kept of a site",
				len(msg.Held)-i, m.cfg.MaxBookings))
			return
		}
		m.note(s, h)
	}
}

// stands takes what a site says of itself: its capacity, the part of it that works, its price.
func (m *Machine) stands(s *site, msg protocol.Bookings) {
	was := s.isPartly()
	if !s.said || s.capacity != msg.Capacity || s.works != msg.Works ||
		s.priced != msg.Priced || s.price != msg.Price {
		s.said, s.capacity, s.works = true, msg.Capacity, msg.Works
		s.priced, s.price = msg.Priced, msg.Price
		m.saveSite(s)
	}
	switch is := s.isPartly(); {
	case is && s.short.IsZero():
		s.short = m.now
		m.out.Report(step.LevelWarn, eventShort, step.Report{
			Site: s.id, Value: float64(len(s.bookings)),
		})
	case was && !is:
		s.short = time.Time{}
		m.isWhole(s)
	}
}

// jitter is the difference between two statements of a time that is put down to the way.
const jitter = 2 * time.Second

// note takes one booking. What is known of it already and has not changed is not written again.
func (m *Machine) note(s *site, h protocol.Booking) {
	b := booking{
		attempt: h.Attempt, submitter: h.Submitter, start: m.now.Add(h.StartsIn), need: h.Need,
		booked: m.now.Add(-h.BookedAgo), scales: h.Scales, data: h.DataBytes,
	}
	b.end = b.start.Add(h.Lasts)
	if old := s.bookings[h.Attempt]; old != nil {
		b.booked = old.booked
		if old.isAhead(m.now) == b.isAhead(m.now) && b.start.Sub(old.start).Abs() < jitter {
			b.start = old.start
		}
		if b.end.Sub(old.end).Abs() < jitter {
			b.end = old.end
		}
		b.leaves, b.to = old.leaves, old.to
		if b == *old {
			return
		}
	}
	s.bookings[h.Attempt] = &b
	m.saveBooking(s.id, &b)
}

// refuse says that a site has told more than is kept.
func (m *Machine) refuse(from grid.SiteID, why string) {
	m.out.Report(step.LevelWarn, eventTooMany, step.Report{
		Site: from, Reason: grid.ReasonQuota, Text: why,
	})
}
