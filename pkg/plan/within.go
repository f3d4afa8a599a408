package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A reservation is a room of its own: a timeline on which what it holds is free from
// its start to its end and nothing is before or after.

// roomOf returns the room that something takes its share of: the site, or the reservation
// that it is bound to, which must be there.
func (p *Planner) roomOf(within grid.AttemptID) *room {
	if within == (grid.AttemptID{}) {
		return p.site
	}
	if r := p.rooms[within]; r != nil {
		return r
	}
	return newRoom(&p.entries[within].Commitment)
}

// enter is roomOf for something that goes in.
func (p *Planner) enter(within grid.AttemptID) *room {
	r := p.roomOf(within)
	if r != p.site {
		p.rooms[within] = r
	}
	return r
}

// leave forgets a room in which nothing is left.
func (p *Planner) leave(r *room) {
	inside := len(r.running) + len(r.movable) + len(r.fixed)
	if inside == 0 &&
		!slices.ContainsFunc(p.offers, func(o Offer) bool { return o.Within == r.holder }) {
		delete(p.rooms, r.holder)
	}
}

func newRoom(c *Commitment) *room {
	line := capacity.New(c.Give)
	must(line.Force(c.Give, time.Time{}, c.Start))
	must(line.Force(c.Give, c.End, endOfTime()))
	return &room{holder: c.Attempt, line: line, ceiling: c.Give}
}

// endOfTime is after everything that can be planned.
func endOfTime() time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }

// mayUse reports whether there is such a reservation and it is the submitter's.
func (p *Planner) mayUse(reservation grid.AttemptID, submitter grid.SiteID) bool {
	e := p.entries[reservation]
	return e != nil && e.Holds && e.Submitter == submitter
}

// inOrder is the site and then the rooms of reservations, by attempt.
func (p *Planner) inOrder() []*room {
	list := []*room{p.site}
	for _, key := range slices.SortedFunc(maps.Keys(p.rooms), grid.AttemptID.Compare) {
		list = append(list, p.rooms[key])
	}
	return list
}

// slack is by how much the present commitments may exceed the owner's ceilings.
func (r *room) slack() grid.Resources { return r.ceiling.Sub(r.line.Total()) }

// dissolve ends everything bound to a reservation that is gone: running attempts are to be
// stopped, waiting ones are lost, and its offers are withdrawn.
func (p *Planner) dissolve(e *entry) {
	r := p.rooms[e.Attempt]
	if !e.Holds || r == nil {
		return
	}
	inside := slices.Concat(r.running, r.movable, r.fixed)
	slices.SortFunc(inside, func(a, b *entry) int { return a.Attempt.Compare(b.Attempt) })
	for _, m := range inside {
		if m.Running {
			p.stop(m)
		} else {
			p.lose(m)
		}
	}
	for i, o := range slices.Backward(p.offers) {
		if o.Within == e.Attempt {
			p.changes.Withdrawn = append(p.changes.Withdrawn, p.close(i))
		}
	}
	delete(p.rooms, e.Attempt)
}
