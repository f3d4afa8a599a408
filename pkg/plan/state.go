package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// State is everything a planner knows, for a snapshot. Besides the list of
// commitments, which survives a crash, it also has the open offers.
type State struct {
	Config      Config
	Ceiling     grid.Resources // what the present commitments may take
	Commitments []Commitment   // ascending by attempt
	Offers      []Offer        // ascending by number
	Next        uint64         // number of the next offer
	Now         time.Time      // what was before is forgotten
	Outage      Outage
	Strained    bool      // more is taken than there is: by an outage, suspended or late entries
	Dirty       bool      // capacity came free and nobody has moved up yet
	Freed       time.Time // the earliest instant at which it did
	Changes     Changes   // not yet told
	// Stood says where those stood that were moved, as far as the move is not yet a change.
	Stood map[grid.AttemptID]time.Time
}

// State is a copy that shares nothing with the planner.
func (p *Planner) State() State {
	return State{
		Config: p.config, Ceiling: p.site.ceiling, Commitments: p.Commitments(),
		Offers: slices.Clone(p.offers), Next: p.next, Now: p.now, Outage: p.outage, Strained: p.strained,
		Dirty: p.dirty, Freed: p.freed, Changes: p.changes.clone(), Stood: p.stood(),
	}
}

func (p *Planner) stood() map[grid.AttemptID]time.Time {
	stood := make(map[grid.AttemptID]time.Time)
	for _, e := range p.touched {
		if !e.gone {
			stood[e.Attempt] = e.before
		}
	}
	return stood
}

// fromState is a planner that goes on exactly as the one whose state this is. It
// fails if the state breaks an invariant, and then names it.
func fromState(s State) (*Planner, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("read the plan's state: %w", err)
	}
	p := New(s.Config)
	p.site.ceiling, p.next, p.now = s.Ceiling, s.Next, s.Now
	p.outage, p.strained = s.Outage, s.Strained
	if !p.outage.Since.IsZero() {
		p.take(p.site.line, p.outage.span())
	}
	p.insertAll(s.Commitments)
	p.offers = slices.Clone(s.Offers)[:0]
	for _, o := range s.Offers {
		p.enterOffer(o)
	}
	p.dirty, p.freed, p.changes = s.Dirty, s.Freed, s.Changes.clone()
	for _, attempt := range slices.SortedFunc(maps.Keys(s.Stood), grid.AttemptID.Compare) {
		if e := p.entries[attempt]; e != nil {
			p.touch(e)
			e.before = s.Stood[attempt]
		}
	}
	if err := p.checkRoom(); err != nil {
		return nil, fmt.Errorf("read the plan's state: %w", err)
	}
	return p, nil
}

// insertAll enters commitments, reservations before what is bound to them.
func (p *Planner) insertAll(list []Commitment) {
	for _, bound := range []bool{false, true} {
		for _, c := range list {
			if bound == (c.Within != grid.AttemptID{}) {
				p.insert(c)
			}
		}
	}
}

func (c Changes) clone() Changes {
	return Changes{
		Started: slices.Clone(c.Started), Moved: slices.Clone(c.Moved),
		Suspended: slices.Clone(c.Suspended), Resumed: slices.Clone(c.Resumed),
		Stopped: slices.Clone(c.Stopped), Lost: slices.Clone(c.Lost), Over: slices.Clone(c.Over),
		Withdrawn: slices.Clone(c.Withdrawn),
	}
}

// validate checks a state without building a plan of it.
func (s *State) validate() error {
	if !s.Ceiling.Fits(s.Config.Total) {
		return fmt.Errorf("the ceiling %+v is below the total %+v", s.Ceiling, s.Config.Total)
	}
	if o := s.Outage; !o.Since.IsZero() &&
		(!o.Since.Before(o.Until) || !o.Missing.Fits(grid.Resources{})) {
		return fmt.Errorf("the outage %+v", o)
	}
	rooms := map[grid.AttemptID]bool{{}: true}
	for i, c := range s.Commitments {
		if i > 0 && s.Commitments[i-1].Attempt.Compare(c.Attempt) >= 0 {
			return fmt.Errorf("attempt %s is not in its place", c.Attempt)
		}
		if !c.valid() {
			return fmt.Errorf("attempt %s: %w", c.Attempt, capacity.ErrInvalid)
		}
		rooms[c.Attempt] = c.Holds
	}
	for _, c := range s.Commitments {
		if !rooms[c.Within] && !c.Stopped {
			return fmt.Errorf("attempt %s: %w", c.Attempt, errWithin)
		}
	}
	return s.validateOffers(rooms)
}

// validateOffers is about offers, in the rooms there are.
func (s *State) validateOffers(rooms map[grid.AttemptID]bool) error {
	for i, o := range s.Offers {
		if i > 0 && s.Offers[i-1].Number >= o.Number || o.Number >= s.Next {
			return fmt.Errorf("offer %d is not in its place", o.Number)
		}
		h, holds := o.span(o.Holds)
		impossible := holds && (!plannable(h.start, h.end) || !h.need.Fits(grid.Resources{}))
		if impossible || !rooms[o.Within] {
			return fmt.Errorf("offer %d: %w", o.Number, capacity.ErrInvalid)
		}
	}
	return nil
}

// valid reports whether a commitment is one.
func (c *Commitment) valid() bool {
	return plannable(c.Start, c.End) && c.Give.Fits(grid.Resources{}) && c.Left >= 0 &&
		(!c.Holds || c.Within == grid.AttemptID{} && c.Class == ClassFixTime) && c.Class <= ClassVarTime
}

// Check verifies the invariants: the timelines are what commitments and offers make
// of them, and these never take more than the owner gave when they were made, but in
// an outage.
func (p *Planner) Check() error {
	s := p.State()
	q, err := fromState(s)
	if err != nil {
		return fmt.Errorf("check plan: %w", err)
	}
	if have, want := p.counts(), q.counts(); have != want {
		return fmt.Errorf("check plan: rooms, limits, what is due, firm, reserved, with a priority, "+
			"late: have %v, want %v", have, want)
	}
	for i, r := range p.inOrder() {
		if err := r.line.Check(); err != nil {
			return fmt.Errorf("check plan: %w", err)
		}
		if !r.line.Equal(q.inOrder()[i].line) {
			return errors.New("check plan: a timeline is not what commitments and offers take")
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.limits), compareKeys) {
		if m := q.limits[key]; m == nil || !m.line.Equal(p.limits[key].line) {
			return fmt.Errorf("check plan: the timeline of limit %v is not what it should be", key)
		}
	}
	return nil
}

// counts returns the numbers that are counted as the plan changes.
func (p *Planner) counts() [7]int {
	return [...]int{
		len(p.rooms), len(p.limits), len(p.queue), p.firm, p.holding, p.prioritised, p.late,
	}
}

// checkRoom verifies that nothing takes more than there is.
func (p *Planner) checkRoom() error {
	if p.strained {
		return nil
	}
	for _, r := range p.inOrder() {
		from, to := p.now, endOfTime()
		if r != p.site {
			from, to = later(from, p.entries[r.holder].Start), p.entries[r.holder].End
		}
		free := r.line.Free(from, to)
		if !free.Add(r.slack()).Fits(grid.Resources{}) {
			return fmt.Errorf("%w: %+v is free where least is", ErrFull, free)
		}
	}
	return nil
}
