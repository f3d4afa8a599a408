package plan

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Commit promises to run an attempt in its place. If the number is that of an open
// offer that holds capacity, one task's share of the hold turns into the
// commitment; 0 is no offer. An attempt whose start is not after now has begun,
// unless it awaits data; the start may be past, as that of a firm offer which was
// awarded a little later. It fails with ErrFull if the place is taken, with ErrFirm or
// errShare if a limit is reached, with errDeadline if it would end too late and with
// errWithin if there is no such reservation, and then changes nothing; what keeps
// within the share of a firm offer always fits.
func (p *Planner) Commit(now time.Time, c Commitment, number uint64) error {
	p.settle(now)
	if err := p.admit(now, &c); err != nil {
		return fmt.Errorf("commit %s: %w", c.Attempt, err)
	}
	held, holds := p.findOffer(number)
	holds = holds && p.offers[held].Holds > 0 && p.offers[held].Within == c.Within
	covered := holds && p.offers[held].covers(c)
	if covered && p.offers[held].Firm && c.LatestStart.IsZero() {
		c.LatestStart = c.Start // a firm offer is kept whatever the policy
	}
	if holds {
		p.resize(&p.offers[held], p.offers[held].Holds-1)
	}
	if err := p.fits(&c, covered); err != nil {
		if holds {
			p.resize(&p.offers[held], p.offers[held].Holds+1)
		}
		return fmt.Errorf("commit %s: %w", c.Attempt, err)
	}
	p.settleNew(p.insert(c), now, covered)
	return nil
}

// settleNew makes capacity free for a commitment that begins right away, and looks again
// at those that wait if one more of them changes something.
func (p *Planner) settleNew(e *entry, now time.Time, covered bool) {
	if e.Running && p.strained && p.short(e, now) { // what is in the way was there on sufferance
		e.insists = covered
		l := p.lift(e.room, now)
		p.makeRoom(e, l)
		p.lower(l)
		p.free(now)
	}
	if e.Class == ClassVarTime && e.waits() &&
		(p.config.Backfill != grid.BackfillConservative || p.prioritised > 0 || p.late > 0) {
		p.free(now)
	}
}

// admit checks a commitment and fills in what Commit is to set.
func (p *Planner) admit(now time.Time, c *Commitment) error {
	if c.Holds {
		c.Class = ClassFixTime
	}
	switch {
	case p.entries[c.Attempt] != nil:
		return errAttempt
	case !c.End.After(now):
		return errPast
	case !c.valid():
		return capacity.ErrInvalid
	case c.Within != (grid.AttemptID{}) && !p.mayUse(c.Within, c.Submitter):
		return errWithin
	}
	c.Made, c.Suspended, c.Overran, c.Stopped = now, false, false, false
	c.Late, c.Borrows, c.Left = false, false, 0
	c.AwaitsData = c.AwaitsData && !c.Holds
	c.Running = !c.Start.After(now) && !c.AwaitsData
	return p.bound(c)
}

// bound works out until when a promise may begin.
func (p *Planner) bound(c *Commitment) error {
	switch c.Class {
	case ClassFixTime:
		c.LatestStart = c.Start
	case ClassDeadline:
		if latest := p.latestStart(c.Deadline, c.End.Sub(c.Start)); c.LatestStart.IsZero() ||
			c.LatestStart.After(latest) {
			c.LatestStart = latest
		}
		if c.Deadline.IsZero() || c.Start.After(c.LatestStart) {
			return errDeadline
		}
	case ClassVarTime:
	}
	return nil
}

// latestStart is when a run must begin to end before its deadline: OpenCCS, section
// "Deadline bound Jobs"; later by as much as runs are known to be over-estimated.
func (p *Planner) latestStart(deadline time.Time, run time.Duration) time.Time {
	return deadline.Add(p.spare(run) - run)
}

// spare is the part of a run by which it is known to end early.
func (p *Planner) spare(run time.Duration) time.Duration {
	return time.Duration(p.config.Overestimate * float64(run))
}

// fits reports whether there is capacity for a commitment: a promise made before by a
// firm offer fits although ceilings fell or limits are reached since.
func (p *Planner) fits(c *Commitment, covered bool) error {
	if covered {
		return nil
	}
	if free := p.roomOf(c.Within).line.Free(c.Start, c.End); !enough(free, c.Give) {
		return fmt.Errorf("%w: %+v is free of %+v", ErrFull, free, c.Give)
	}
	return p.withinLimits(claimOf(c), span{c.Give, c.Start, c.End})
}

// insert enters a commitment.
func (p *Planner) insert(c Commitment) *entry {
	e := &entry{Commitment: c, room: p.site, queue: -1}
	if !c.Stopped {
		e.room = p.enter(c.Within)
	}
	p.entries[c.Attempt] = e
	p.holding += sign(c.Holds)
	p.prioritised += sign(c.Priority != 0)
	p.late += sign(c.Late)
	p.hold(e)
	p.file(e)
	return e
}

// Release ends a commitment, begun or not, and gives its capacity back. It reports
// what it was. What was bound to a reservation ends with it.
func (p *Planner) Release(attempt grid.AttemptID) (Commitment, bool) {
	e := p.entries[attempt]
	if e == nil {
		return Commitment{}, false
	}
	p.remove(e)
	return e.Commitment, true
}

// remove takes an entry out of the plan.
func (p *Planner) remove(e *entry) {
	p.drop(e)
	e.gone = true
	p.unfile(e)
	delete(p.entries, e.Attempt)
	p.holding -= sign(e.Holds)
	p.prioritised -= sign(e.Priority != 0)
	p.late -= sign(e.Late)
	if e.room != p.site && p.rooms[e.Within] == e.room {
		p.leave(e.room)
	}
	p.dissolve(e)
	p.free(e.Start)
}
