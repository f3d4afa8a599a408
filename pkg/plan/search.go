package plan

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// lines are timelines that must all have capacity, that of the site or a reservation
// first.
type lines []*capacity.Timeline

// free is the capacity that is free on all of them throughout [start, end).
func (l lines) free(start, end time.Time) grid.Resources {
	free := l[0].Free(start, end)
	for _, line := range l[1:] {
		free = free.Min(line.Free(start, end))
	}
	return free
}

// total is the capacity that can be free at most.
func (l lines) total() grid.Resources {
	total := l[0].Total()
	for _, line := range l[1:] {
		total = total.Min(line.Total())
	}
	return total
}

// nextChange is the first instant after another at which anything changes.
func (l lines) nextChange(after time.Time) (time.Time, bool) {
	var next time.Time
	for _, line := range l {
		if at, some := line.NextChange(after); some && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, !next.IsZero()
}

// earliest is the first instant from another on, up to latest, at which need is free
// on all of them for as long as it takes; the zero time as latest sets no limit. It
// counts the stretches that were skipped.
func (l lines) earliest(
	need grid.Resources, length time.Duration, from, latest time.Time,
) (start time.Time, skipped int, found bool) {
	length = max(length, 1)
	s := capacity.Search{Need: need, Duration: length, Window: grid.Window{NotBefore: from}}
	if !latest.IsZero() {
		s.Window.Deadline = latest.Add(length)
	}
	for {
		from = s.Window.NotBefore
		for _, line := range l {
			fit, fits := line.Earliest(s)
			if skipped += fit.Skipped; !fits {
				return time.Time{}, skipped, false
			}
			s.Window.NotBefore = later(s.Window.NotBefore, fit.Start)
		}
		if len(l) == 1 || s.Window.NotBefore.Equal(from) {
			return s.Window.NotBefore, skipped, true
		}
	}
}

// query is a search for the place in which a task would end first.
type query struct {
	lines   lines
	ask     Ask
	from    time.Time
	only    bool    // only the place at from
	spare   float64 // the part of a run that may reach beyond a promised deadline
	skipped int     // stretches that were skipped because something was short
}

// search looks at every instant from which more may be free than before. It leaves out
// those at which something hard is short within the shortest run there can be, and
// ends when a run as short as that would be too late.
func (q *query) search() (best Quote, found bool) {
	total := q.lines.total()
	if shortage(q.ask.Need, total) != grid.ReasonWindow {
		return Quote{}, false
	}
	_, quickest := q.ask.Rate(total)
	if quickest > longest || !q.ask.Need.Fits(grid.Resources{}) {
		return Quote{}, false
	}
	quickest = q.staging() + max(quickest, 1)
	need := q.ask.Need
	need.MFLOPS = min(need.MFLOPS, 1)
	for from, more := q.from, true; more; {
		start, skipped, fits := q.lines.earliest(need, quickest, from, q.latest(quickest))
		if q.skipped += skipped; !fits || found && !start.Add(quickest).Before(best.End) {
			break
		}
		if place, ok := q.place(start); ok && (!found || place.End.Before(best.End)) {
			best, found = place, true
		}
		from, more = q.lines.nextChange(start)
		more = more && !q.only
	}
	return best, found
}

// latest is the latest start of use, the zero time for no limit.
func (q *query) latest(quickest time.Duration) time.Time {
	deadline := q.ask.Window.Deadline
	switch {
	case q.only:
		return q.from
	case deadline.IsZero():
		return time.Time{}
	default:
		return deadline.Add(q.beyond(quickest) - quickest)
	}
}

// beyond is by how much a run may reach beyond the deadline.
func (q *query) beyond(run time.Duration) time.Duration {
	if q.ask.Class != ClassDeadline {
		return 0
	}
	return time.Duration(q.spare * float64(run))
}

// staging returns how long capacity is held before the run.
func (q *query) staging() time.Duration {
	if !q.ask.NowOnly {
		return 0
	}
	return min(max(q.ask.StageIn, 0), longest)
}

func (q *query) inTime(end time.Time, run time.Duration) bool {
	deadline := q.ask.Window.Deadline
	return deadline.IsZero() || !end.After(deadline.Add(q.beyond(run)))
}

// refusal is why there is no place: a share that is used up, if there is one in the
// site or the reservation itself; else what is short.
func (q *query) refusal() (Quote, grid.Reason) {
	if !q.ask.Need.Fits(grid.Resources{}) {
		return Quote{}, grid.ReasonInvalid
	}
	have := q.lines[0].Total() // what is not free now would be later
	if q.ask.NowOnly {
		have = q.lines[0].Free(q.from, q.from.Add(max(q.ask.StageIn, 1)))
	}
	if len(q.lines) > 1 {
		bare := *q
		bare.lines = q.lines[:1]
		if _, found := bare.search(); found {
			return Quote{Free: have}, grid.ReasonQuota
		}
	}
	return Quote{Free: have}, shortage(q.ask.Need, have)
}

// place tries one start. A longer window may leave less computation, and less
// computation takes a longer window: both are followed until they agree, which
// they do, for each round takes in at least one more step of a timeline.
func (q *query) place(start time.Time) (Quote, bool) {
	ask := &q.ask
	end := start.Add(max(q.staging(), 1))
	free := q.lines.free(start, end)
	for {
		if shortage(ask.Need, free) != grid.ReasonWindow {
			return Quote{}, false
		}
		mflops, run := ask.Rate(free)
		run = max(run, 1)
		if end = start.Add(q.staging() + min(run, longest)); run > longest || !q.inTime(end, run) ||
			!plannable(start, end) {
			return Quote{}, false
		}
		if longer := free.Min(q.lines.free(start, end)); longer != free {
			free = longer
			continue
		}
		give := ask.Need
		give.MFLOPS = min(max(mflops, 0), give.MFLOPS, max(free.MFLOPS, 0))
		return Quote{
			Start: start, End: end, Run: run, Give: give, Free: free, Tasks: tasks(give, free, ask.Count),
		}, true
	}
}

// tasks counts how often give fits into free, 1 to count.
func tasks(give, free grid.Resources, count uint32) uint32 {
	n := int64(max(count, 1))
	for _, d := range [...][2]int64{
		{give.MilliCPUs, free.MilliCPUs},
		{give.MemoryBytes, free.MemoryBytes},
		{give.DiskBytes, free.DiskBytes},
		{give.MFLOPS, free.MFLOPS},
		{give.NetBps, free.NetBps},
	} {
		if d[0] > 0 {
			n = min(n, d[1]/d[0])
		}
	}
	return uint32(max(n, 1)) // at most count
}

// shortage is the first resource of which there is too little, computation being
// short only where none is left; ReasonWindow if there is enough of everything, so
// that only time can be short.
func shortage(need, have grid.Resources) grid.Reason {
	switch {
	case need.MilliCPUs > max(have.MilliCPUs, 0):
		return grid.ReasonCPUs
	case need.MemoryBytes > max(have.MemoryBytes, 0):
		return grid.ReasonMemory
	case need.DiskBytes > max(have.DiskBytes, 0):
		return grid.ReasonDisk
	case need.NetBps > max(have.NetBps, 0):
		return grid.ReasonBandwidth
	case need.MFLOPS > 0 && have.MFLOPS <= 0:
		return grid.ReasonComputation
	default:
		return grid.ReasonWindow
	}
}
