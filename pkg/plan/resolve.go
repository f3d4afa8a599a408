package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// lifted holds what is taken out of a room while it is settled which entries are stronger:
// all without a promise, and offers that are not firm.
type lifted struct {
	room    *room
	now     time.Time
	entries []*entry
	offers  []uint64
}

// resolve settles conflicts of entries that are due, by strength: running ones; the
// promises whose time has come; then suspended ones; then waiting ones.
func (p *Planner) resolve(b *batch) {
	l := p.lift(b.room, b.now)
	p.overruns(b, l)
	p.claim(b, l)
	p.lower(l)
	p.free(b.now)
}

// lift takes best effort out of a room. Suspended entries keep their memory and disk.
func (p *Planner) lift(r *room, now time.Time) *lifted {
	l := &lifted{room: r, now: now}
	for _, e := range r.movable {
		if !e.promised() && !e.ready && (!e.Late || !e.End.After(now)) {
			l.entries = append(l.entries, e)
		}
	}
	for _, e := range l.entries {
		p.drop(e)
		p.unfile(e)
		if e.Suspended {
			l.standStill(p, e)
		}
	}
	for i := range p.offers {
		if o := &p.offers[i]; !o.Firm && o.Holds > 0 && p.roomOf(o.Within) == r {
			p.giveBack(o, o.Holds)
			l.offers = append(l.offers, o.Number)
		}
	}
	return l
}

// standStill keeps the memory and disk of an entry that is lifted and suspended.
func (l *lifted) standStill(p *Planner, e *entry) {
	p.take(l.room.line, span{still(e.Give), l.now, endOfTime()})
}

// goOn is the opposite of it.
func (l *lifted) goOn(p *Planner, e *entry) {
	p.put(l.room.line, span{still(e.Give), l.now, endOfTime()})
}

// lower puts back what was lifted: suspended entries first, then waiting ones in the
// order of the old places, then the offers.
func (p *Planner) lower(l *lifted) {
	slices.SortFunc(l.entries, func(a, b *entry) int {
		return cmp.Or(sign(b.Suspended)-sign(a.Suspended), a.next().Compare(b.next()),
			a.Attempt.Compare(b.Attempt))
	})
	for _, e := range l.entries {
		if e.Suspended {
			l.goOn(p, e)
			p.settleIn(e, p.find(e, l.now, time.Time{}), l.now)
			p.strained = true
		} else {
			p.keepOrMove(e, l.now)
		}
	}
	for _, number := range l.offers {
		at, known := p.findOffer(number)
		if !known {
			continue
		}
		o := &p.offers[at]
		fits := p.offerFits(o) == nil
		p.takeAgain(o, o.Holds)
		if !fits {
			p.changes.Withdrawn = append(p.changes.Withdrawn, p.close(at))
		}
	}
}

// keepOrMove gives what was lifted its old place, or if that is taken the first one
// that is not. A place that is wholly past begins now instead.
func (p *Planner) keepOrMove(e *entry, now time.Time) {
	start := e.Start
	if !e.End.After(now) {
		start = now
	}
	free := e.room.line.Free(later(start, now), start.Add(e.length())).Add(e.room.slack())
	if enough(free, e.Give) {
		p.settleIn(e, place{start, true}, now)
		return
	}
	p.settleIn(e, p.find(e, e.floor(now), time.Time{}), now)
}

// place is a time at which something may begin, if there is one.
type place struct {
	start time.Time
	found bool
}

// settleIn gives what was lifted a place, and begins there if its time has come. What
// finds none in its reservation is lost.
func (p *Planner) settleIn(e *entry, at place, now time.Time) {
	if !at.found {
		p.hold(e)
		p.file(e)
		p.lose(e)
		return
	}
	if !at.start.Equal(e.next()) {
		p.touch(e)
		p.late -= sign(e.Late)
		e.shift(at.start)
		p.late += sign(e.Late)
	}
	p.hold(e)
	p.file(e)
	if !at.start.After(now) && !e.AwaitsData {
		p.start(e)
	}
}

// find looks for the first place for what holds none at the moment, from an instant on
// up to latest; the zero time as latest sets no limit, and then there is a place on
// the site in any case: limits that were lowered and ceilings that fell do not count
// if there is none within them.
func (p *Planner) find(e *entry, from, latest time.Time) place {
	start, _, found := p.lines(claimOf(&e.Commitment)).earliest(e.Give, e.length(), from, latest)
	if found || !latest.IsZero() || e.room != p.site {
		return place{start, found}
	}
	line := e.room.line
	line.SetTotal(p.site.ceiling)
	start, _, found = lines{line}.earliest(e.Give, e.length(), from, latest)
	line.SetTotal(p.config.Total)
	if !found {
		start = later(from, e.next())
	}
	return place{start, true}
}

// floor is the first instant at which what waits may begin. One whose inputs are not
// here does not move up.
func (c *Commitment) floor(now time.Time) time.Time {
	from := later(now, c.NotBefore)
	if c.AwaitsData {
		from = later(from, c.Start)
	}
	return from
}

// overruns lets an overrun entry go on until the first instant at which what it holds is
// promised to another. If that is now, it yields as it allows: it is suspended,
// keeping memory and disk, or ends.
func (p *Planner) overruns(b *batch, l *lifted) {
	slices.SortFunc(b.overdue, func(x, y *entry) int {
		return cmp.Or(cmp.Compare(x.Class, y.Class), x.Made.Compare(y.Made), x.Attempt.Compare(y.Attempt))
	})
	for _, e := range b.overdue {
		end := p.outage.cut(b.now, b.now.Add(e.overrun(b.now)))
		p.strained = p.strained || !p.missing(e.room, b.now).IsZero()
		at, short, free := p.firstShort(e, b.now, end)
		switch {
		case !short:
			p.change(e, func() { e.End, e.Overran = end, true })
		case at.After(b.now):
			p.change(e, func() { e.End, e.Overran = at, true })
		case p.pushBack(e, b.now, end):
		case e.Overrun == grid.OverrunStop || !enough(free, still(e.Give)):
			p.stop(e)
		default:
			p.suspend(e, l, e.overrun(b.now))
			e.Overran = true
		}
	}
}

// suspend suspends a task. Until it is lowered it has no place.
func (p *Planner) suspend(e *entry, l *lifted, left time.Duration) {
	p.drop(e)
	p.unfile(e)
	e.Suspended, e.Borrows, e.Left = true, false, max(left, 1)
	l.standStill(p, e)
	l.entries = append(l.entries, e)
	p.strained = true
	p.changes.Suspended = append(p.changes.Suspended, e.Commitment)
}

// claim lets the promises begin whose time has come, Fix-Time first, and late entries that
// take back what they lent. Others yield to them. If that is not enough, a deadline
// commitment moves to where it can still be met, and one that cannot move is lost.
func (p *Planner) claim(b *batch, l *lifted) {
	var list []*entry
	for _, e := range b.starters {
		if (e.promised() || e.ready) && !e.next().After(b.now) { // some were pushed back
			list = append(list, e)
		}
	}
	p.byStrength(list)
	for _, e := range list {
		p.drop(e)
	}
	for _, e := range list {
		p.hold(e)
		switch {
		case !p.short(e, b.now) || p.makeRoom(e, l):
			p.start(e)
		default:
			p.giveWay(e, l)
		}
	}
}

// giveWay deals with what cannot begin although its time has come.
func (p *Planner) giveWay(e *entry, l *lifted) {
	p.drop(e)
	if e.promised() && e.Class == ClassDeadline {
		if at := p.find(e, e.floor(l.now), e.latest()); at.found {
			p.settleIn(e, at, l.now)
			return
		}
	}
	if e.promised() && !e.Suspended {
		p.hold(e)
		p.lose(e)
		return
	}
	e.Overran = e.Overran || e.Suspended // its time cannot be kept: it goes on when it can
	e.ready = false
	p.unfile(e)
	if e.Suspended {
		l.standStill(p, e)
	}
	l.entries = append(l.entries, e)
}
