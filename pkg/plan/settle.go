package plan

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// An attempt that overruns its expected end is expected to need an eighth of the
// time it has had, but at least minOverrun, so that the plan is not made again at
// every instant.
const (
	minOverrun   = time.Second
	overrunShare = 8
)

// forever is far enough for every plan, 146 years. No run and no staging takes longer
// than half of it, and nothing is planned before firstYear or into lastYear, because a
// timeline counts nanoseconds in 64 bits.
const (
	forever   = time.Duration(1 << 62)
	longest   = forever / 2
	firstYear = 1700
	lastYear  = 2250
)

// plannable reports whether a window can be planned.
func plannable(start, end time.Time) bool {
	return start.Before(end) && start.Year() >= firstYear && end.Year() < lastYear
}

// Advance brings the plan up to now and tells what has changed since the last
// call: offers expire, reservations end, waiting entries start, move on or move up, and
// overrun ones go on or yield. It is to be called at Next, and after Release,
// Withdraw, SetCapacity, SetOutage, SetPolicy and Ready, which free capacity immediately but
// leave it to Advance to move entries up.
func (p *Planner) Advance(now time.Time) Changes {
	p.settle(now)
	changes := p.changes
	p.changes = Changes{}
	return changes
}

// settle does the work of Advance; what changes is kept for the next call of it. Where
// nothing is due it costs nothing, and where nothing waits or stands in each other's
// way what is due costs O(log n) each.
func (p *Planner) settle(now time.Time) {
	if next, some := p.Next(); !p.dirty && (!some || next.After(now)) {
		return
	}
	p.now = now
	for i, o := range slices.Backward(p.offers) { // closing one moves those behind it
		if !now.Before(o.Expires) {
			p.changes.Withdrawn = append(p.changes.Withdrawn, p.close(i))
		}
	}
	p.beginOutage(now)
	for more := true; more; more = p.dirty || len(p.queue) > 0 && !p.queue[0].due.After(now) {
		p.meet(now)
		p.moveUp(now)
	}
	p.relax(now)
	p.report()
}

// relax forgets the past, and what was allowed because of it.
func (p *Planner) relax(now time.Time) {
	p.site.line.Forget(now)
	if !p.strained && p.site.ceiling == p.config.Total {
		return
	}
	if p.site.line.Free(now, now.Add(forever)).Fits(grid.Resources{}) {
		p.site.ceiling = p.config.Total // nothing takes more than there is any longer
		p.strained = slices.ContainsFunc(p.inOrder()[1:], func(r *room) bool {
			return !r.line.Free(now, now.Add(forever)).Fits(grid.Resources{}.Sub(r.line.Total()))
		})
	}
}

// meet does what is due, room by room.
func (p *Planner) meet(now time.Time) {
	var due []*entry
	for len(p.queue) > 0 && !p.queue[0].due.After(now) {
		e := p.queue[0]
		p.unfile(e)
		due = append(due, e)
	}
	var rooms []*room
	byRoom := map[*room]*batch{}
	for _, e := range due {
		if e.bag == nil {
			p.file(e)
		}
	}
	for _, e := range due {
		if e.gone || e.Stopped || p.isOver(e, now) {
			continue
		}
		b := byRoom[e.room]
		if b == nil {
			b = &batch{room: e.room, now: now}
			byRoom[e.room], rooms = b, append(rooms, e.room)
		}
		if e.runs() {
			b.overdue = append(b.overdue, e)
		} else {
			b.starters = append(b.starters, e)
		}
	}
	slices.SortStableFunc(rooms, func(a, b *room) int { return a.holder.Compare(b.holder) })
	for _, r := range rooms {
		p.meetRoom(byRoom[r])
	}
}

// isOver ends a reservation whose time is over.
func (p *Planner) isOver(e *entry, now time.Time) bool {
	if !e.Holds || e.End.After(now) {
		return false
	}
	p.remove(e)
	p.changes.Over = append(p.changes.Over, e.Commitment)
	return true
}

// batch holds what is due in one room.
type batch struct {
	room     *room
	now      time.Time
	overdue  []*entry
	starters []*entry // what is to start or to go on
}

// meetRoom first does what disturbs nobody, and settles the rest by strength.
func (p *Planner) meetRoom(b *batch) {
	trouble := &batch{room: b.room, now: b.now}
	for _, e := range b.overdue {
		if !e.gone && !e.Stopped && !p.extend(e, b.now) {
			trouble.overdue = append(trouble.overdue, e)
		}
	}
	// A running entry is stronger than a waiting one without a promise.
	crowded := len(trouble.overdue) > 0
	for _, e := range b.starters {
		later := crowded && (!e.promised() && !e.ready || e.Class == ClassDeadline && !e.AwaitsData)
		if !e.gone && !e.Stopped && (later || !p.begin(e, b.now)) {
			trouble.starters = append(trouble.starters, e)
		}
	}
	if len(trouble.overdue)+len(trouble.starters) > 0 {
		p.resolve(trouble)
	}
}

// extend lets an attempt run on beyond its expected end, if that disturbs nobody.
func (p *Planner) extend(e *entry, now time.Time) bool {
	end := now.Add(e.overrun(now))
	if !enough(e.room.line.Free(now, end), e.Give) {
		return false
	}
	p.change(e, func() { e.End, e.Overran = end, true })
	return true
}

// overrun is for how long an attempt that has overrun is expected to go on.
func (c *Commitment) overrun(now time.Time) time.Duration {
	return max(now.Sub(c.Start)/overrunShare, minOverrun)
}

// begin starts what is due to start or to go on, if nobody stands in its way.
func (p *Planner) begin(e *entry, now time.Time) bool {
	switch {
	case e.AwaitsData:
		return p.awaitData(e, now)
	case !e.End.After(now): // nobody called for long
		return p.missed(e, now)
	case p.short(e, now):
		return false
	default:
		p.start(e)
		return true
	}
}

// missed deals with a place that is wholly past. A promise that can still be kept, and
// what was promised no time, is to begin now.
func (p *Planner) missed(e *entry, now time.Time) bool {
	if e.promised() && now.After(e.latest()) {
		if !e.Suspended {
			p.lose(e)
			return true
		}
		e.Overran = true // it goes on when it can
	}
	p.touch(e)
	p.change(e, func() { e.shift(now) }) // it begins now, or is placed again
	return false
}

// short reports whether more is in use now than there is, of something that the
// entry, whose place is among it, needs.
func (p *Planner) short(e *entry, now time.Time) bool { return !p.lack(e, now).IsZero() }

// lack is the capacity missing now for an entry whose place is among what is taken.
// Capacity kept for others whose inputs are late is not in use.
func (p *Planner) lack(e *entry, now time.Time) grid.Resources {
	free := e.room.line.Free(now, now.Add(1)).Add(e.room.slack())
	if p.late > 0 {
		for _, v := range slices.Concat(e.room.movable, e.room.fixed) {
			if v.Late && v.AwaitsData {
				free = free.Add(lent(v.Give))
			}
		}
	}
	lack := larger(grid.Resources{}.Sub(free), grid.Resources{})
	return lack.Min(e.Give)
}

// start begins an attempt in its place, or lets it go on.
func (p *Planner) start(e *entry) {
	if e.Suspended {
		p.change(e, func() { e.Suspended, e.Left = false, 0 })
		p.changes.Resumed = append(p.changes.Resumed, e.Commitment)
		return
	}
	p.change(e, func() { e.Running, e.ready = true, false })
	p.changes.Started = append(p.changes.Started, e.Commitment)
}

// change changes an entry and what it takes.
func (p *Planner) change(e *entry, how func()) {
	p.drop(e)
	p.late -= sign(e.Late)
	how()
	p.late += sign(e.Late)
	p.hold(e)
	p.file(e)
}

// touch notes where an entry stood before this settling.
func (p *Planner) touch(e *entry) {
	if !e.touched {
		e.before, e.touched = e.Start, true
		p.touched = append(p.touched, e)
	}
}

// report tells which entries wait in another place than before.
func (p *Planner) report() {
	slices.SortFunc(p.touched, func(a, b *entry) int { return a.Attempt.Compare(b.Attempt) })
	for _, e := range p.touched {
		if e.touched = false; !e.gone && e.waits() && !e.Start.Equal(e.before) {
			p.changes.Moved = append(p.changes.Moved, e.Commitment)
		}
	}
	clear(p.touched)
	p.touched = p.touched[:0]
}

// stop tells an attempt to end. What it held is given to others right away.
func (p *Planner) stop(e *entry) {
	if e.Stopped {
		return
	}
	p.change(e, func() { e.Stopped, e.Suspended, e.Borrows, e.Left = true, false, false, 0 })
	p.changes.Stopped = append(p.changes.Stopped, e.Commitment)
	p.free(p.now)
}

// lose gives up a promise that can no longer be kept.
func (p *Planner) lose(e *entry) {
	p.remove(e)
	p.changes.Lost = append(p.changes.Lost, e.Commitment)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
