package plan

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Outage is capacity that is missing for some time.
type Outage struct {
	Missing grid.Resources
	Told    time.Time // until when, as it was said; zero = unknown
	Since   time.Time // when it entered the plan; zero = it has not yet
	Until   time.Time // until when the plan counts with it: Told, or the failure horizon
}

// SetOutage says how much of Total is not there until an instant, in place of what
// was said before; the zero time says that nobody knows until when, and nothing
// missing that it is over. It is felt until then, but not beyond the failure horizon.
// OpenCCS, section "Resource Failures and Fault Tolerance": "The RMS only moves those
// jobs to the D-list which are planned on the defect resources within the failure
// horizon, assuming that the resource is available again at allocation time of all
// other jobs." Running entries stay. The next Advance finds places for displaced ones.
func (p *Planner) SetOutage(missing grid.Resources, until time.Time) {
	missing = larger(missing, grid.Resources{}).Min(larger(p.config.Total, grid.Resources{}))
	if missing == p.outage.Missing && until.Equal(p.outage.Told) {
		return
	}
	if !p.outage.Since.IsZero() {
		p.put(p.site.line, p.outage.span())
	}
	p.outage = Outage{Missing: missing, Told: until}
	p.free(time.Time{})
}

func (o *Outage) span() span { return span{o.Missing, o.Since, o.Until} }

// cut is the end of a window, or of the outage if that comes first.
func (o *Outage) cut(now, end time.Time) time.Time {
	if o.Until.After(now) && o.Until.Before(end) {
		return o.Until
	}
	return end
}

// missing is the capacity that an outage takes of a room now.
func (p *Planner) missing(r *room, now time.Time) grid.Resources {
	if r != p.site || p.outage.Since.IsZero() || !p.outage.Until.After(now) {
		return grid.Resources{}
	}
	return p.outage.Missing
}

// beginOutage brings an outage into the plan.
func (p *Planner) beginOutage(now time.Time) {
	o := &p.outage
	if o.Missing.IsZero() || !o.Since.IsZero() {
		return
	}
	o.Since, o.Until = now, now.Add(p.config.Horizon)
	if !o.Told.IsZero() && o.Told.Before(o.Until) {
		o.Until = o.Told
	}
	if !o.Until.After(now) {
		p.outage = Outage{}
		return
	}
	p.take(p.site.line, o.span())
	p.strained = true
	if free := p.site.line.Free(now, o.Until).Add(p.site.slack()); !free.Fits(grid.Resources{}) {
		p.displace(now)
	}
}

// displaced holds the entries that lose their places to an outage.
type displaced struct {
	lifted *lifted
	kept   []*entry // promises that begin before the outage is over, in the order of strength
	defect []*entry // those of them that have no place: OpenCCS' D-list
	offers []uint64 // firm offers that begin before the outage is over
}

// displace finds new places for what no longer fits. P-list before D-list before
// O-list before N-list: promises that still fit keep their places; those that do not
// get what is free, and what best effort and firm offers have; then offers; then suspended
// entries and waiting ones. Entries that begin when the outage is over, or later, stay
// in place.
func (p *Planner) displace(now time.Time) {
	d := &displaced{lifted: p.lift(p.site, now)}
	p.collect(d)
	for _, e := range d.kept {
		if p.placeFits(&e.Commitment, now) {
			p.hold(e)
		} else {
			d.defect = append(d.defect, e)
		}
	}
	for _, e := range d.defect {
		p.replace(e, d.lifted)
	}
	for _, number := range d.offers {
		at, _ := p.findOffer(number)
		o := &p.offers[at]
		s, _ := o.span(o.Holds)
		fits := enough(p.site.line.Free(later(s.start, now), s.end).Add(p.site.slack()), s.need)
		if p.takeAgain(o, o.Holds); !fits {
			p.changes.Withdrawn = append(p.changes.Withdrawn, p.close(at))
		}
	}
	p.lower(d.lifted)
	p.free(now)
}

// collect takes the promises and firm offers out of the plan that begin before the
// outage is over.
func (p *Planner) collect(d *displaced) {
	until := p.outage.Until
	for _, e := range slices.Concat(p.site.fixed, p.site.movable) {
		if e.promised() && e.next().Before(until) {
			d.kept = append(d.kept, e)
		}
	}
	p.byStrength(d.kept)
	for _, e := range d.kept {
		p.drop(e)
	}
	for i := range p.offers {
		o := &p.offers[i]
		if o.Firm && o.Holds > 0 && p.roomOf(o.Within) == p.site && o.Quote.Start.Before(until) {
			p.giveBack(o, o.Holds)
			d.offers = append(d.offers, o.Number)
		}
	}
}

// placeFits reports whether a commitment that holds nothing at the moment fits into
// its place.
func (p *Planner) placeFits(c *Commitment, now time.Time) bool {
	start := later(c.next(), now)
	return !start.Before(c.End) || enough(p.site.line.Free(start, c.End).Add(p.site.slack()), c.Give)
}

// replace finds a place for a promise of the D-list: inside its bounds, or where best
// effort and others that can wait yield to it. Else it is lost.
func (p *Planner) replace(e *entry, l *lifted) {
	if e.Class == ClassDeadline {
		if at := p.find(e, e.floor(l.now), e.latest()); at.found {
			p.settleIn(e, at, l.now)
			return
		}
	}
	switch {
	case p.fitsByForce(e, l):
		p.hold(e)
	case e.Suspended: // it goes on when it can
		e.Overran = true
		p.unfile(e)
		l.standStill(p, e)
		l.entries = append(l.entries, e)
	default:
		p.hold(e)
		p.lose(e)
	}
}

// fitsByForce reports whether the entry's place would have capacity if all that can be
// suspended were. When its time has come, makeRoom suspends them.
func (p *Planner) fitsByForce(e *entry, l *lifted) bool {
	line := p.site.line.Clone()
	for _, v := range p.site.running {
		switch {
		case !v.promised():
			must(line.Release(v.Give, v.Start, v.End))
		case v.Class == ClassDeadline && v.Overrun == grid.OverrunSuspend &&
			v.Deadline.Sub(v.End) >= e.length():
			must(line.Release(moving(v.Give), v.Start, v.End))
		}
	}
	for _, v := range l.entries {
		if v.Suspended {
			must(line.Release(still(v.Give), l.now, endOfTime()))
		}
	}
	start := later(e.next(), l.now)
	return !start.Before(e.End) || enough(line.Free(start, e.End).Add(p.site.slack()), e.Give)
}
