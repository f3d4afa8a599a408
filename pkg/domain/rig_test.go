package domain

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const (
	here = grid.SiteID("a")
	big  = grid.SiteID("b")
	mid  = grid.SiteID("c")
	user = grid.SiteID("u")
)

// rig drives a controller, and checks after each step what must always hold.
type rig struct {
	t      interface{ Fatalf(string, ...any) }
	cfg    Config
	m      *Machine
	now    time.Time
	term   uint64
	facts  *step.Facts
	timers map[step.TimerKey]time.Time
	out    []step.Effect
	number map[grid.SiteID]uint64
}

func newRig(t interface{ Fatalf(string, ...any) }, tune func(*Config)) *rig {
	r := &rig{
		t: t, cfg: Default(here), facts: step.NewFacts(), number: make(map[grid.SiteID]uint64),
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	if tune != nil {
		tune(&r.cfg)
	}
	r.takeOver()
	return r
}

// takeOver makes the next controller of the facts alone.
func (r *rig) takeOver() {
	m, err := New(r.cfg)
	if err != nil {
		r.t.Fatalf("new: %v", err)
	}
	if err := m.Restore(r.facts.Encode()); err != nil {
		r.t.Fatalf("restore: %v", err)
	}
	r.m, r.timers = m, make(map[step.TimerKey]time.Time)
	r.term++
	r.do(step.Boot{Incarnation: r.term})
}

func (r *rig) do(in step.Input) []step.Effect {
	r.out = r.m.Step(r.now, in)
	for _, e := range r.out {
		switch e := e.(type) {
		case step.Persist:
			r.facts.Apply(e.Fact)
		case step.SetTimer:
			r.timers[e.Key] = e.At
		case step.StopTimer:
			delete(r.timers, e.Key)
		case step.Send:
			if err := e.Message.Validate(); err != nil {
				r.t.Fatalf("%T: %v", e.Message, err)
			}
		default:
		}
	}
	if err := r.m.Check(); err != nil {
		r.t.Fatalf("after %T: %v", in, err)
	}
	if !bytes.Equal(r.m.Snapshot(), r.facts.Encode()) {
		r.t.Fatalf("after %T: the snapshot is not the facts", in)
	}
	return r.out
}

// wait lets time go by, and fires what is due; it returns all effects.
func (r *rig) wait(d time.Duration) (all []step.Effect) {
	until := r.now.Add(d)
	for {
		var next step.TimerKey
		at := until
		for _, key := range r.keys() {
			if due := r.timers[key]; due.Before(at) {
				next, at = key, due
			}
		}
		if next == (step.TimerKey{}) {
			r.now = until
			return all
		}
		delete(r.timers, next)
		r.now = at
		all = append(all, r.do(step.TimerFired{Key: next})...)
	}
}

func (r *rig) keys() (keys []step.TimerKey) {
	for key := range r.timers {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b step.TimerKey) int {
		return slices.Compare([]string{a.Name, a.ID}, []string{b.Name, b.ID})
	})
	return keys
}

// says lets a site say all that it has promised.
func (r *rig) says(site grid.SiteID, cores int64, held ...protocol.Booking) []step.Effect {
	return r.saysPartly(site, cores, cores, held...)
}

func (r *rig) saysPartly(
	site grid.SiteID, cores, works int64, held ...protocol.Booking,
) []step.Effect {
	r.number[site]++
	slices.SortFunc(held, func(a, b protocol.Booking) int { return a.Attempt.Compare(b.Attempt) })
	return r.do(step.MessageReceived{From: site, Message: protocol.Bookings{
		Term: r.term, Number: r.number[site], Whole: true, Held: held,
		Capacity: grid.Resources{MilliCPUs: cores * 1000},
		Works:    grid.Resources{MilliCPUs: works * 1000},
	}})
}

func (r *rig) comes(sites ...grid.SiteID) {
	for _, s := range sites {
		r.do(step.PeerSeen{Site: s})
	}
}

func attempt(i int) grid.AttemptID {
	return grid.AttemptID{
		Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: uint32(200 + i)}, Token: 1,
	}
}

// places is a reservation of some cores for an hour that was booked before those of higher numbers.
func places(i int, cores int64, in time.Duration) protocol.Booking {
	return protocol.Booking{
		Attempt: attempt(i), Submitter: user, StartsIn: in, Lasts: time.Hour,
		Need:      grid.Resources{MilliCPUs: cores * 1000},
		BookedAgo: time.Hour - time.Duration(i)*time.Second,
	}
}

// told are the moves that a submitter was told of last for a site, as text, and whether any was.
func told(effects []step.Effect, to, site grid.SiteID) (moves []string, heard bool) {
	for _, e := range effects {
		s, is := e.(step.Send)
		if !is || s.To != to {
			continue
		}
		if m, is := s.Message.(protocol.Remap); is && m.Site == site {
			moves, heard = nil, true
			for _, v := range m.Moves {
				moves = append(moves, fmt.Sprintf("%d>%s", v.Task.Index, v.To))
			}
		}
	}
	return moves, heard
}

func wantMoves(t *testing.T, effects []step.Effect, want ...string) {
	t.Helper()
	got, is := told(effects, user, big)
	if !is || !slices.Equal(got, want) {
		t.Fatalf("told %v, %v, want %v", got, is, want)
	}
}
