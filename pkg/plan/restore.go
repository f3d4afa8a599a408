package plan

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Restore is a planner with the commitments that a crash left behind. They all
// stay, even if they take more than the owner's ceilings today; what has begun
// and overran while nobody looked goes on, and what should have begun has. Only
// promises whose time is over are Lost, and reservations Over. Of two for one
// attempt the first counts. Those that do not end after their start, give less than
// nothing, or are bound to a reservation that is not there are dropped.
func Restore(config Config, now time.Time, commitments []Commitment) *Planner {
	p := New(config)
	var kept []Commitment
	known, rooms := map[grid.AttemptID]bool{}, map[grid.AttemptID]bool{{}: true}
	for _, c := range commitments {
		if known[c.Attempt] || !c.valid() {
			continue
		}
		known[c.Attempt], rooms[c.Attempt] = true, c.Holds
		past := c.Class != ClassVarTime && !c.End.After(now) // and was not begun
		c.Running = c.Running || !c.Start.After(now) && !c.AwaitsData && !past
		kept = append(kept, c)
	}
	kept = slices.DeleteFunc(kept, func(c Commitment) bool { return !rooms[c.Within] && !c.Stopped })
	p.insertAll(kept)
	p.site.ceiling = p.site.ceiling.Add(p.overshoot(now))
	p.strained = true
	p.free(time.Time{})
	p.settle(now)
	p.changes.Started, p.changes.Moved = nil, nil
	return p
}

// overshoot is by how much commitments exceed the owner's ceilings from now on, without
// suspended entries and borrowers, which do so at any time.
func (p *Planner) overshoot(now time.Time) grid.Resources {
	line := p.site.line.Clone()
	for _, e := range slices.Concat(p.site.running, p.site.movable) {
		if !e.Suspended && !e.Borrows {
			continue
		}
		for _, s := range e.spans() {
			if s.start.Before(s.end) {
				must(line.Release(s.need, s.start, s.end))
			}
		}
	}
	return larger(grid.Resources{}.Sub(line.Free(now, endOfTime())), grid.Resources{})
}
