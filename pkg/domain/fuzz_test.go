package domain

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// script reads choices from bytes; it gives 0 when they are over.
type script []byte

func (s *script) n(below int) int {
	if len(*s) == 0 {
		return 0
	}
	v := int((*s)[0]) % below
	*s = (*s)[1:]
	return v
}

func (s *script) site() grid.SiteID {
	return []grid.SiteID{here, big, mid, "d", "mallory", ""}[s.n(6)]
}

func (s *script) booking(i int) protocol.Booking {
	b := places(s.n(5)+6*i, int64(s.n(9)), time.Duration(s.n(90))*time.Minute)
	b.Attempt.Token = grid.Token(1 + s.n(2))
	b.Need.MemoryBytes = int64(s.n(3)) << 30
	b.Lasts = time.Duration(1+s.n(200)) * time.Minute
	if s.n(20) == 0 {
		b.Lasts, b.StartsIn = grid.MaxRuntime, grid.MaxRuntime
	}
	b.Scales, b.DataBytes = s.n(2) == 0, int64(s.n(2))<<30
	if s.n(8) == 0 {
		b.Submitter = "mallory"
	}
	return b
}

func (s *script) bookings(r *rig, from grid.SiteID) protocol.Bookings {
	r.number[from] += uint64(s.n(3))
	m := protocol.Bookings{
		Term: r.term + uint64(s.n(2)), Number: max(r.number[from], 1), Whole: s.n(2) == 0,
		More: s.n(4) == 0,
		Capacity: grid.Resources{
			MilliCPUs: int64(s.n(16)) * 1000, MemoryBytes: int64(s.n(9)) << 30,
		},
	}
	m.Works = m.Capacity
	if s.n(3) == 0 {
		m.Works.MilliCPUs /= 2
	}
	if m.Priced = s.n(3) == 0; m.Priced {
		m.Price = float64(s.n(5))
	}
	for i := range s.n(4) {
		m.Held = append(m.Held, s.booking(i))
	}
	for range s.n(2) {
		m.Gone = append(m.Gone, s.booking(0).Attempt)
	}
	return m
}

func (s *script) input(r *rig) step.Input {
	from := s.site()
	switch s.n(9) {
	case 0, 1, 2:
		return step.MessageReceived{From: from, Message: s.bookings(r, from)}
	case 3:
		return step.PeerSeen{Site: from, Capability: grid.Capability{
			CoreMFLOPS: int64(s.n(4)), DownBps: int64(s.n(3)) * 1_000_000,
		}}
	case 4:
		return step.PeerGone{Site: from}
	case 5:
		return step.MessageReceived{From: user, Message: protocol.Remapped{
			Term: r.term, Number: 1, Elsewhere: []grid.TaskID{s.booking(0).Attempt.Task},
		}}
	case 6:
		return step.BansChanged{Banned: []grid.SiteID{from}}
	case 7:
		return step.ClockStepped{By: time.Duration(s.n(5)-2) * time.Hour}
	default:
		return []step.Input{
			step.Boot{Incarnation: 1},
			step.MessageReceived{From: from},
			step.Resume{},
			step.TimerFired{Key: step.TimerKey{Name: timerGrace, ID: string(from)}},
			step.TimerFired{Key: step.TimerKey{Name: timerJudge}},
			step.TimerFired{Key: step.TimerKey{Name: "moon"}},
			step.MessageReceived{From: from, Message: protocol.Booked{Term: 1, Number: 1}},
			step.MessageReceived{From: from, Message: protocol.Favours{
				Term:     r.term,
				Accounts: []protocol.Account{given(from, int64(s.n(9)), int64(s.n(9)))},
			}},
		}[s.n(8)]
	}
}

// FuzzStep feeds a controller whatever comes, in any order: it never panics, holds its bounds, its
// facts are its snapshot, and its successor takes them up.
func FuzzStep(f *testing.F) {
	f.Add([]byte("a domain of which a site fails"))
	f.Add([]byte{1, 0, 1, 2, 3, 40, 200, 1, 1, 1, 1, 4, 1, 1, 9, 9})
	f.Add([]byte{1, 3, 0, 0, 2, 3, 0, 0, 1, 0, 1, 1, 1, 0, 1, 9, 8, 1, 3, 4, 60, 0, 30, 1, 4})
	f.Fuzz(func(t *testing.T, text []byte) {
		s := script(text)
		r := newRig(t, func(c *Config) { c.MaxSites, c.MaxBookings, c.Slot = 4, 6, 10*time.Minute })
		for len(s) > 0 {
			switch s.n(8) {
			case 0:
				r.wait(time.Duration(s.n(60)) * time.Second)
			case 1:
				r.wait(time.Duration(s.n(200)) * time.Minute)
			case 2:
				if s.n(4) == 0 {
					r.takeOver()
				}
			default:
				r.do(s.input(r))
			}
		}
		r.wait(time.Hour)
	})
}
