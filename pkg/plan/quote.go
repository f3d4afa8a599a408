package plan

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Ask is what somebody wants to know about one task, or about one task of an array.
type Ask struct {
	Submitter grid.SiteID
	Job       grid.JobID
	Need      grid.Resources // of one task
	Class     Class          // what is promised: ClassFixTime a start at At, ClassDeadline an end before Window.Deadline
	At        time.Time      // of ClassFixTime: the only start of use
	Project   string         // limits are counted by it; empty = none
	Within    grid.AttemptID // the reservation in which it is to have its place; zero = anywhere on the site
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
	Tasks uint32         // how many tasks fit into this place at once, 1 to Ask.Count

	LatestStart time.Time // guaranteed to what is committed in this place; the zero time guarantees none
}

// Quote finds the place in which the task would end first, and among those the
// earliest start; with NowOnly, only the place at now is looked at. If there is
// none it tells the reason: the resource that is short, or the window.
func (p *Planner) Quote(now time.Time, ask Ask) (Quote, grid.Reason) {
	p.settle(now)
	line := p.timeline
	if at, known := p.findOffer(ask.Offer); known && p.offers[at].Holds > 0 {
		line = line.Clone()
		must(p.offers[at].release(line, p.offers[at].Holds))
	}
	start := now
	if ask.Window.NotBefore.After(now) {
		if start = ask.Window.NotBefore; ask.NowOnly {
			return Quote{}, grid.ReasonWindow
		}
	}
	best, found := search(line, ask, start)
	if found {
		return best, grid.ReasonNone
	}
	have := line.Free(start, start.Add(max(ask.StageIn, 1)))
	if !ask.NowOnly {
		have = line.Total() // what is not free now would be later
	}
	return Quote{Free: have}, shortage(ask.Need, have)
}

// search looks at every instant from start on at which more may be free than before.
func search(line *capacity.Timeline, ask Ask, start time.Time) (best Quote, found bool) {
	for {
		if found && !start.Add(ask.StageIn).Before(best.End) {
			return best, true // nothing that starts later can end earlier
		}
		if deadline := ask.Window.Deadline; !deadline.IsZero() && !start.Before(deadline) {
			return best, found
		}
		if q, ok := place(line, ask, start); ok && (!found || q.End.Before(best.End)) {
			best, found = q, true
		}
		next, more := line.NextChange(start)
		if ask.NowOnly || !more {
			return best, found
		}
		start = next
	}
}

// place tries one start. A longer window may leave less computation, and less
// computation takes a longer window: both are followed until they agree, which
// they do, for each round takes in at least one more step of the timeline.
func place(line *capacity.Timeline, ask Ask, start time.Time) (Quote, bool) {
	end := start.Add(max(ask.StageIn, 1))
	free := line.Free(start, end)
	for {
		if shortage(ask.Need, free) != grid.ReasonWindow {
			return Quote{}, false
		}
		mflops, run := ask.Rate(free)
		if end = start.Add(max(ask.StageIn, 0) + max(run, 1)); !inTime(end, ask.Window) {
			return Quote{}, false
		}
		if longer := free.Min(line.Free(start, end)); longer != free {
			free = longer
			continue
		}
		give := ask.Need
		give.MFLOPS = min(max(mflops, 0), give.MFLOPS, max(free.MFLOPS, 0))
		return Quote{Start: start, End: end, Run: max(run, 1), Give: give, Free: free, Tasks: tasks(give, free, ask.Count)}, true
	}
}

func inTime(end time.Time, w grid.Window) bool { return w.Deadline.IsZero() || !end.After(w.Deadline) }

// tasks is how often give fits into free, 1 to count.
func tasks(give, free grid.Resources, count uint32) uint32 {
	n := int64(max(count, 1))
	for _, d := range [...][2]int64{
		{give.MilliCPUs, free.MilliCPUs},
		{give.MemoryBytes, free.MemoryBytes},
		{give.DiskBytes, free.DiskBytes},
		{give.MFLOPS, free.MFLOPS},
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
	case need.MFLOPS > 0 && have.MFLOPS <= 0:
		return grid.ReasonComputation
	default:
		return grid.ReasonWindow
	}
}
