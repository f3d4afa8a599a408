package plan

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Ask is a question about one task, or about one task of an array.
type Ask struct {
	Submitter grid.SiteID
	Job       grid.JobID
	Need      grid.Resources // of one task
	Class     Class          // ClassFixTime: start at At; ClassDeadline: end by Window.Deadline
	At        time.Time      // of ClassFixTime: the only start of use
	Project   string         // limits are counted by it; empty = none
	Within    grid.AttemptID // the reservation it is to have its place in; zero = anywhere here
	Window    grid.Window    // when it may run
	NowOnly   bool           // only a start at now is of use: the thesis map

	// StageIn is spent on data before the task runs. With NowOnly that is part of its
	// place, and capacity is held meanwhile. Else data are moved ahead of time: the
	// task's place begins that much after now at the earliest.
	StageIn time.Duration

	Count uint32 // tasks of the array that want a place, at least 1
	Offer uint64 // an open offer whose hold counts as free, because it is the asker's; 0 = none

	// Rate says how much computation (MFLOP/s) one task gets where that much is
	// free, and how long it then runs. Less free must never give a shorter run.
	Rate func(free grid.Resources) (mflops int64, run time.Duration)
}

// Quote is the answer: one place in the plan.
type Quote struct {
	Start time.Time      // earliest start
	End   time.Time      // expected end
	Run   time.Duration  // of it, behind the staging of data
	Give  grid.Resources // what one task gets: its need, but perhaps less computation
	Free  grid.Resources // what is free throughout, this task's share included
	Tasks uint32         // how many tasks fit into this place at the same time, 1 to Ask.Count

	LatestStart time.Time // guaranteed to a commitment in this place; the zero time = none
}

// Quote finds the place in which the task would end first, and among those the
// earliest start; with NowOnly, only the place at now is looked at, and for
// ClassFixTime only the one at At. If there is none it tells the reason: the resource
// that is short, the window, the share that is used up, or a reservation that is not
// there.
func (p *Planner) Quote(now time.Time, ask Ask) (Quote, grid.Reason) {
	p.settle(now)
	from := ask.begin(now)
	switch {
	case ask.NowOnly && from.After(now), ask.Class == ClassDeadline && ask.Window.Deadline.IsZero():
		return Quote{}, grid.ReasonWindow
	case ask.Class == ClassFixTime:
		if ask.At.Before(from) || p.config.Fairshare && ask.At.Before(p.queuedEnd(ask.Within)) {
			return Quote{}, grid.ReasonWindow
		}
		return p.answer(now, ask, ask.At)
	default:
		return p.answer(now, ask, from)
	}
}

// EarliestStart is the first place that could be promised, whatever the deadline or
// the fixed start that is asked for. OpenCCS, section "Local Job Submission": "In this
// situation, the user can query the system for the earliest possible time to start the
// job request"; Migol, section 4.
func (p *Planner) EarliestStart(now time.Time, ask Ask) (Quote, grid.Reason) {
	p.settle(now)
	ask.Window.Deadline, ask.NowOnly = time.Time{}, false
	from := ask.begin(now)
	if ask.Class == ClassFixTime {
		ask.At = time.Time{}
		if p.config.Fairshare {
			from = later(from, p.queuedEnd(ask.Within))
		}
	}
	return p.answer(now, ask, from)
}

// begin is the first instant at which the task's place may begin.
func (a *Ask) begin(now time.Time) time.Time {
	if !a.NowOnly {
		now = now.Add(min(max(a.StageIn, 0), longest))
	}
	return later(now, a.Window.NotBefore)
}

// queuedEnd is the expected end of all that is queued. Migol, section 4: "New
// reservations are only accepted if the start time is greater than the expected end
// time of all queued jobs."
func (p *Planner) queuedEnd(within grid.AttemptID) time.Time {
	var end time.Time
	if within == (grid.AttemptID{}) {
		for _, e := range p.site.movable {
			end = later(end, e.End)
		}
	}
	return end
}

// answer looks for a place from an instant on, in all lines that the ask must keep
// within.
func (p *Planner) answer(now time.Time, ask Ask, from time.Time) (Quote, grid.Reason) {
	if ask.Within != (grid.AttemptID{}) && !p.mayUse(ask.Within, ask.Submitter) {
		return Quote{}, grid.ReasonUnknownOffer
	}
	if p.config.Backfill == grid.BackfillNone && ask.Class == ClassVarTime &&
		p.roomOf(ask.Within) == p.site {
		from = later(from, p.lastStart())
	}
	q := query{lines: p.linesFor(&ask), ask: ask, from: from, spare: p.config.Overestimate}
	q.only = ask.NowOnly || ask.Class == ClassFixTime && !ask.At.IsZero()
	if ask.NowOnly && from.After(now) {
		return Quote{Free: q.lines[0].Free(now, now.Add(1))}, grid.ReasonWindow
	}
	best, found := q.search()
	p.skipped = q.skipped
	if found {
		best.LatestStart = p.guaranteed(&ask, best)
		return best, grid.ReasonNone
	}
	return q.refusal()
}

// guaranteed is the latest start that a quote guarantees.
func (p *Planner) guaranteed(ask *Ask, q Quote) time.Time {
	switch {
	case ask.Class == ClassDeadline && !ask.Window.Deadline.IsZero():
		return later(p.latestStart(ask.Window.Deadline, q.Run), q.Start)
	case ask.Class != ClassVarTime, p.config.Backfill == grid.BackfillConservative:
		return q.Start
	default:
		return time.Time{}
	}
}

// lastStart is the last start of those that wait for no promised time.
func (p *Planner) lastStart() time.Time {
	var last time.Time
	for _, e := range p.site.movable {
		if e.waits() && !e.promised() {
			last = later(last, e.Start)
		}
	}
	return last
}

// linesFor returns the timelines that must all have capacity for an ask. What its own
// offer holds is free on them.
func (p *Planner) linesFor(ask *Ask) lines {
	c := claim{ask.Submitter, ask.Project, ask.Within, ask.Class != ClassVarTime}
	at, known := p.findOffer(ask.Offer)
	if !known || p.offers[at].Holds == 0 {
		return p.lines(c)
	}
	o := &p.offers[at]
	s, _ := o.span(o.Holds)
	list := lines{p.roomOf(c.within).line}
	if o.Within == c.within {
		list[0] = list[0].Clone()
		must(list[0].Release(s.need, s.start, s.end))
	}
	held := p.keys(o.claim())
	for _, key := range p.keys(c) {
		line := p.limitLine(key)
		if slices.Contains(held, key) {
			line = line.Clone()
			must(line.Release(s.need, s.start, s.end))
		}
		list = append(list, line)
	}
	return list
}

// lines returns the timelines that must all have capacity for a claim, its room's first.
func (p *Planner) lines(c claim) lines {
	list := lines{p.roomOf(c.within).line}
	for _, key := range p.keys(c) {
		list = append(list, p.limitLine(key))
	}
	return list
}
