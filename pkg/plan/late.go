package plan

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What is done about inputs that are late, OpenCCS, section "Data Staging of Grid
// Jobs", option 2: "assigning other waiting jobs to the pending job's resources,
// executing the pending job as soon as stage-in is completed".

// Ready says that the inputs of an attempt are here. If its place has come already, it
// begins, with the end of DelayedEnd as far as nothing is in the way, and tasks that run
// in its place are suspended; if not, it moves up where there is capacity. The next
// Advance tells both.
func (p *Planner) Ready(now time.Time, attempt grid.AttemptID) {
	p.settle(now)
	e := p.entries[attempt]
	if e == nil || !e.AwaitsData {
		return
	}
	e.AwaitsData = false
	if e.Late {
		p.arrived(e, now)
	}
	p.free(now)
	p.settle(now)
}

// arrived gives the place of one that was late its new end. OpenCCS: "setting the end
// of node allocation to the minimum of specified deadline and current time plus
// estimated job runtime".
func (p *Planner) arrived(e *entry, now time.Time) {
	end := now.Add(e.Left)
	if !e.Deadline.IsZero() && e.Class == ClassDeadline && e.Deadline.Before(end) {
		end = e.Deadline
	}
	if e.End.After(now) && end.After(e.End) {
		if at, short := e.room.line.FirstShort(e.Give, e.End, end); short {
			end = at // the rest is an overrun
		}
	}
	p.touch(e)
	p.change(e, func() { e.Start, e.End, e.Late, e.Left, e.ready = now, end, false, 0, true })
}

// awaitData keeps the place of one whose start has come and whose inputs have not. It
// reports false if its place is over and taken.
func (p *Planner) awaitData(e *entry, now time.Time) bool {
	if !e.Late {
		p.change(e, func() { e.Left, e.Late = e.length(), true })
		p.free(now)
	}
	if e.End.After(now) {
		return true
	}
	end, fits := now.Add(e.overrun(now)), true
	if e.promised() {
		if !e.Deadline.IsZero() && e.Deadline.Before(end) {
			end = e.Deadline
		}
		fits = !e.Deadline.IsZero() && end.After(now)
	}
	if fits && enough(e.room.line.Free(now, end), e.Give) {
		p.change(e, func() { e.End = end })
		return true
	}
	if e.promised() {
		p.lose(e)
	}
	return e.gone
}

// lend starts, in the places of those that are late, others that would start later and
// can be suspended as soon as the inputs are here. Memory, disk and bandwidth are not lent.
func (p *Planner) lend(r *room, now time.Time) {
	if p.late == 0 {
		return
	}
	line := r.line.Clone()
	lenders := slices.Concat(r.movable, r.fixed)
	for _, e := range lenders {
		if e.Late && e.AwaitsData && e.End.After(now) {
			must(line.Release(lent(e.Give), now, e.End))
		}
	}
	for _, e := range slices.Concat(r.standing(), p.waiting(r)) {
		end, without := now.Add(e.length()), withoutPlace(line, e)
		if e.mayBorrow(now) && enough(without.Free(now, end), e.Give) &&
			p.withinLimits(claimOf(&e.Commitment), span{e.Give, now, end}) == nil {
			line = without
			must(line.Force(e.Give, now, end))
			p.change(e, func() { e.shift(now); e.Borrows = true })
			p.start(e)
			p.strained = true
		} else if r == p.site && p.config.Backfill == grid.BackfillNone && !e.Suspended {
			return // nobody overtakes
		}
	}
}

// mayBorrow reports whether it could begin or go on now in the place of another.
func (c *Commitment) mayBorrow(now time.Time) bool {
	return c.Overrun == grid.OverrunSuspend && !c.AwaitsData && c.next().After(now) &&
		!c.NotBefore.After(now)
}

// withoutPlace is the timeline without the place that an entry waits for.
func withoutPlace(line *capacity.Timeline, e *entry) *capacity.Timeline {
	line = line.Clone()
	for _, s := range e.spans() {
		if s.start.Before(s.end) {
			must(line.Release(s.need, s.start, s.end))
		}
	}
	return line
}

// settleLoans forgets which entries borrow where nothing is missing any longer.
func (p *Planner) settleLoans(r *room, now time.Time) {
	if !p.strained {
		return
	}
	for _, e := range r.running {
		if e.Borrows && e.End.After(now) && r.line.Free(now, e.End).Fits(grid.Resources{}) {
			e.Borrows = false
		}
	}
}
