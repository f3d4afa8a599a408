package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// State is everything a planner knows, for a snapshot. Other than the list of
// commitments, which is what survives a crash, it also has the open offers.
type State struct {
	Config      Config
	Ceiling     grid.Resources // what the present commitments may take
	Commitments []Commitment   // ascending by attempt
	Offers      []Offer        // ascending by number
	Next        uint64         // number of the next offer
	Dirty       bool           // capacity came free and nobody has moved up yet
	Changes     Changes        // not yet told
}

// State is a copy that shares nothing with the planner.
func (p *Planner) State() State {
	return State{
		Config: p.config, Ceiling: p.ceiling, Commitments: slices.Clone(p.commitments),
		Offers: slices.Clone(p.offers), Next: p.next, Dirty: p.dirty, Changes: p.changes.clone(),
	}
}

// FromState is a planner that goes on exactly as the one whose state this is. It
// fails if the state breaks an invariant, and then names it.
func FromState(s State) (*Planner, error) {
	p := New(s.Config)
	p.ceiling, p.next, p.dirty, p.changes = s.Ceiling, s.Next, s.Dirty, s.Changes.clone()
	p.commitments, p.offers = slices.Clone(s.Commitments), slices.Clone(s.Offers)
	line, err := p.rebuild()
	if err != nil {
		return nil, fmt.Errorf("read the plan's state: %w", err)
	}
	p.timeline = line
	return p, nil
}

func (c Changes) clone() Changes {
	return Changes{
		Started: slices.Clone(c.Started), Moved: slices.Clone(c.Moved),
		Suspended: slices.Clone(c.Suspended), Resumed: slices.Clone(c.Resumed), Stopped: slices.Clone(c.Stopped),
		Lost: slices.Clone(c.Lost), Over: slices.Clone(c.Over), Withdrawn: slices.Clone(c.Withdrawn),
	}
}

// Check verifies the invariants: the lists are in order, the timeline is what
// commitments and offers make of it, and they never take more than the owner gave
// when they were made.
func (p *Planner) Check() error {
	if err := p.timeline.Check(); err != nil {
		return fmt.Errorf("check plan: %w", err)
	}
	line, err := p.rebuild()
	if err != nil {
		return fmt.Errorf("check plan: %w", err)
	}
	if !line.Equal(p.timeline) {
		return errors.New("check plan: the timeline is not what commitments and offers take")
	}
	return nil
}

// rebuild is the timeline that commitments and offers make.
func (p *Planner) rebuild() (*capacity.Timeline, error) {
	if !p.ceiling.Fits(p.config.Total) {
		return nil, fmt.Errorf("the ceiling %+v is below the total %+v", p.ceiling, p.config.Total)
	}
	line := capacity.New(p.ceiling)
	for i := range p.commitments {
		c := &p.commitments[i]
		if i > 0 && !p.commitments[i-1].Attempt.Less(c.Attempt) {
			return nil, fmt.Errorf("attempt %s is not in its place", c.Attempt)
		}
		if err := line.Reserve(c.Give, c.Start, c.End); err != nil {
			return nil, fmt.Errorf("attempt %s: %w", c.Attempt, err)
		}
	}
	for i := range p.offers {
		o := &p.offers[i]
		if i > 0 && p.offers[i-1].Number >= o.Number || o.Number >= p.next {
			return nil, fmt.Errorf("offer %d is not in its place", o.Number)
		}
		if err := o.reserve(line); err != nil {
			return nil, fmt.Errorf("offer %d: %w", o.Number, err)
		}
	}
	line.SetTotal(p.config.Total)
	return line, nil
}
