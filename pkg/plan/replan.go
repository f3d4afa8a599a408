package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// An attempt that overruns its expected end is expected to need an eighth of the
// time it has had, but at least minOverrun, so that the plan is not made again at
// every instant.
const (
	minOverrun   = time.Second
	overrunShare = 8
)

// Advance brings the plan up to now and tells what has changed since the last
// call: offers expire, attempts that overran keep their capacity for longer,
// those that wait start, move on because of the former, or move up because others
// ended early. It is to be called at Next, and after Release, Withdraw and
// SetCapacity, which make room at once but leave it to Advance who moves up.
func (p *Planner) Advance(now time.Time) Changes {
	p.settle(now)
	changes := p.changes
	p.changes = Changes{}
	return changes
}

// settle does the work of Advance; what changes is kept for the next call of it.
func (p *Planner) settle(now time.Time) {
	if next, some := p.Next(); !p.dirty && (!some || next.After(now)) {
		return
	}
	for i, o := range slices.Backward(p.offers) { // closing one moves those behind it
		if !now.Before(o.Expires) {
			p.changes.Withdrawn = append(p.changes.Withdrawn, p.close(i))
		}
	}
	p.replan(now)
}

// replan places everything anew: first what has begun, then what waits, then what
// offers hold; and at last, in the order of their starts, those that wait move up
// into what is free. Without an overrun everybody fits into his old place, and
// since nobody moves up past the end of one before him, nobody moves back.
func (p *Planner) replan(now time.Time) {
	p.dirty = false
	line := capacity.New(p.ceiling)
	p.placeRunning(line, now)
	waiting := p.waiting()
	before := make([]time.Time, len(waiting))
	for i, at := range waiting {
		before[i] = p.commitments[at].Start
		p.keepOrMove(line, &p.commitments[at], now)
	}
	p.placeOffers(line)
	line.SetTotal(p.config.Total)
	for i, at := range waiting {
		c := &p.commitments[at]
		p.moveUp(line, c, now)
		if c.Running = !c.Start.After(now); c.Running {
			p.changes.Started = append(p.changes.Started, *c)
		} else if !c.Start.Equal(before[i]) {
			p.changes.Moved = append(p.changes.Moved, *c)
		}
	}
	line.Forget(now)
	p.timeline = line
	if line.Free(now, now.Add(forever)).Fits(grid.Resources{}) {
		p.ceiling = p.config.Total // nothing takes more than there is any longer
	}
}

// forever is far enough for every plan, 146 years.
const forever = time.Duration(1 << 62)

// placeRunning reserves what runs, longer if it overran.
func (p *Planner) placeRunning(line *capacity.Timeline, now time.Time) {
	for i := range p.commitments {
		c := &p.commitments[i]
		if !c.Running {
			continue
		}
		if !c.End.After(now) {
			c.End = now.Add(max(now.Sub(c.Start)/overrunShare, minOverrun))
		}
		must(line.Reserve(c.Give, c.Start, c.End))
	}
}

// waiting is the places in the list of those that wait, in the order of their
// starts.
func (p *Planner) waiting() []int {
	var list []int
	for i := range p.commitments {
		if !p.commitments[i].Running {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return p.commitments[a].Start.Compare(p.commitments[b].Start) })
	return list
}

// keepOrMove reserves the old place, or if that is taken the first one that is not.
// A place that is wholly past, because nobody called for long, begins now instead.
func (p *Planner) keepOrMove(line *capacity.Timeline, c *Commitment, now time.Time) {
	if !c.End.After(now) {
		c.shift(now)
	}
	if line.Reserve(c.Give, c.Start, c.End) == nil {
		return
	}
	start, found := line.EarliestFit(c.Give, c.End.Sub(c.Start), later(now, c.NotBefore), time.Time{})
	if !found {
		must(fmt.Errorf("%s fits nowhere", c.Attempt))
	}
	c.shift(start)
	must(line.Reserve(c.Give, c.Start, c.End))
}

// placeOffers reserves what offers hold. An offer whose place is taken is
// withdrawn: an attempt that runs is stronger than an offer.
func (p *Planner) placeOffers(line *capacity.Timeline) {
	kept := p.offers[:0]
	for _, o := range p.offers {
		if err := o.reserve(line); err != nil {
			p.changes.Withdrawn = append(p.changes.Withdrawn, o)
		} else {
			kept = append(kept, o)
		}
	}
	clear(p.offers[len(kept):])
	p.offers = kept
}

// moveUp gives the commitment an earlier place if there is one.
func (p *Planner) moveUp(line *capacity.Timeline, c *Commitment, now time.Time) {
	must(line.Release(c.Give, c.Start, c.End))
	start, found := line.EarliestFit(c.Give, c.End.Sub(c.Start), later(now, c.NotBefore), c.Start)
	if found && start.Before(c.Start) {
		c.shift(start)
	}
	line.SetTotal(p.ceiling) // its old place may be beyond what the owner gives now
	must(line.Reserve(c.Give, c.Start, c.End))
	line.SetTotal(p.config.Total)
}

func (c *Commitment) shift(start time.Time) {
	c.Start, c.End = start, start.Add(c.End.Sub(c.Start))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
