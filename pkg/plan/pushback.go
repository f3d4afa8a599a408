package plan

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// pushBack lets a task that takes longer than estimated go on where those that were
// promised its place can begin later: deadline commitments that were not made before it
// and keep their bounds. It does nothing and reports false if there is not enough slack,
// or if others stand in the way. A promised task may use all of the slack, one of best
// effort the first half: a promise is kept with time to spare for what else goes wrong.
func (p *Planner) pushBack(e *entry, now, end time.Time) bool {
	list := e.pushable(end)
	if len(list) == 0 {
		return false
	}
	p.byStrength(list)
	starts := make([]time.Time, len(list))
	for i, v := range list {
		starts[i] = v.Start
		p.drop(v)
	}
	before, fits, placed := e.End, !p.shortFor(e, now, end), 0
	if fits {
		p.change(e, func() { e.End = end })
	}
	for fits && placed < len(list) {
		fits = p.pushed(list[placed], e, now)
		placed++
	}
	if !fits {
		p.change(e, func() { e.End = before })
		p.putBack(list, starts, placed-1) // the last one found no place and holds none
		return false
	}
	e.Overran = true
	for i, v := range list {
		p.noteMove(v, starts[i])
	}
	return true
}

// pushable returns the entries that may be pushed back for one that goes on until end.
func (e *entry) pushable(end time.Time) []*entry {
	var list []*entry
	for _, v := range e.room.movable {
		waits := v.promised() && v.Class == ClassDeadline && v.waits() && !v.Late
		if waits && v.Start.Before(end) && !v.Made.Before(e.Made) {
			list = append(list, v)
		}
	}
	return list
}

// putBack gives all their old places again, the first of them out of new ones.
func (p *Planner) putBack(list []*entry, starts []time.Time, placed int) {
	for i, v := range list {
		if i < placed {
			p.drop(v)
		}
		v.shift(starts[i])
	}
	for _, v := range list {
		p.hold(v)
	}
}

// pushed gives what holds no place one within its bounds, if there is one, for the sake
// of an entry that goes on.
func (p *Planner) pushed(v, sake *entry, now time.Time) bool {
	until := v.latest()
	if sake.Class == ClassVarTime {
		until = v.Made.Add(until.Sub(v.Made) / 2)
	}
	if until.Before(now) {
		return false
	}
	at := p.find(v, v.floor(now), until)
	if at.found {
		v.shift(at.start)
		p.hold(v)
	}
	return at.found
}

// noteMove takes note that what waits has another place than before.
func (p *Planner) noteMove(v *entry, before time.Time) {
	if v.Start.Equal(before) {
		return
	}
	after := v.Start
	v.shift(before)
	p.touch(v)
	v.shift(after)
	p.file(v)
}

// shortFor reports whether something that an entry needs is taken in a window, what
// was allowed before and what an outage takes now left out.
func (p *Planner) shortFor(e *entry, from, to time.Time) bool {
	_, short, _ := p.firstShort(e, from, to)
	return short
}

// firstShort is the first instant of a window at which something that an entry needs
// is taken, and what is free at the begin.
func (p *Planner) firstShort(e *entry, from, to time.Time) (time.Time, bool, grid.Resources) {
	line, total := e.room.line, e.room.line.Total()
	line.SetTotal(total.Add(e.room.slack()).Add(p.missing(e.room, from)))
	at, short := line.FirstShort(e.Give, from, to)
	free := line.Free(from, from.Add(1))
	line.SetTotal(total)
	return at, short, free
}
