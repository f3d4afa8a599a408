package plan

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// entry is a commitment in the plan.
type entry struct {
	Commitment
	room  *room
	due   time.Time // when something is to be done about it
	queue int       // its place in the queue of what is due, -1 if it is in none
	bag   *bag
	slot  int // its place in the bag

	// For the time of one settling:
	gone    bool      // it left the plan
	before  time.Time // where it stood, if touched
	touched bool      // it waits in another place than before
	insists bool      // it comes from a firm offer and begins right away
	ready   bool      // its inputs have come late: what was lent is taken back
}

// bag is a set of entries without an order. Callers that need one sort it.
type bag []*entry

// span is an amount that is taken for some time.
type span struct {
	need       grid.Resources
	start, end time.Time
}

// spans returns the capacity that a commitment takes and when. One that is suspended
// keeps its memory and disk until it goes on; one that was told to end takes nothing
// any longer.
func (c *Commitment) spans() [2]span {
	switch {
	case c.Stopped:
		return [2]span{}
	case c.Suspended:
		return [2]span{{still(c.Give), c.Start, c.resume()}, {c.Give, c.resume(), c.End}}
	default:
		return [2]span{{c.Give, c.Start, c.End}}
	}
}

// still is the part that a suspended task keeps. Its data does not move: it gives its bandwidth
// back with the cores.
func still(r grid.Resources) grid.Resources {
	return grid.Resources{MemoryBytes: r.MemoryBytes, DiskBytes: r.DiskBytes}
}

// moving is the part that a suspended task gives back.
func moving(r grid.Resources) grid.Resources {
	return grid.Resources{MilliCPUs: r.MilliCPUs, MFLOPS: r.MFLOPS, NetBps: r.NetBps}
}

// lent is the part that a task whose inputs are late leaves to others meanwhile. The inputs
// are on their way: it keeps its bandwidth.
func lent(r grid.Resources) grid.Resources {
	return grid.Resources{MilliCPUs: r.MilliCPUs, MFLOPS: r.MFLOPS}
}

// resume is when a suspended commitment is to go on.
func (c *Commitment) resume() time.Time { return c.End.Add(-c.Left) }

// length is the duration of the place that it wants.
func (c *Commitment) length() time.Duration {
	if c.Suspended || c.Late {
		return c.Left
	}
	return c.End.Sub(c.Start)
}

// next is the begin of the place that it waits for.
func (c *Commitment) next() time.Time {
	if c.Suspended {
		return c.resume()
	}
	return c.Start
}

// shift moves the place that it waits for.
func (c *Commitment) shift(start time.Time) {
	length := c.length()
	if c.End = start.Add(length); !c.Suspended {
		c.Start, c.Late, c.Left = start, false, 0
	}
}

// waits reports whether it has not begun.
func (c *Commitment) waits() bool { return !c.Running && !c.Stopped }

// runs reports whether it makes use of cores now.
func (c *Commitment) runs() bool { return c.Running && !c.Suspended && !c.Stopped }

// promised reports whether its place is a promise still to be kept: what has had
// all the time it was promised is best effort from then on.
func (c *Commitment) promised() bool { return c.Class != ClassVarTime && !c.Overran && !c.Stopped }

// latest is the latest instant at which the place that it waits for may begin, the
// zero time if it does not matter.
func (c *Commitment) latest() time.Time {
	switch {
	case !c.promised():
		return time.Time{}
	case c.Class == ClassFixTime:
		return c.Start
	case c.Suspended:
		return c.Deadline.Add(-c.Left)
	default:
		return c.LatestStart
	}
}

// wake is when something is to be done about it.
func (c *Commitment) wake() time.Time {
	switch {
	case c.Suspended:
		return c.resume()
	case c.Running || c.Late:
		return c.End
	default:
		return c.Start
	}
}

// file puts an entry where it belongs by what it is now.
func (p *Planner) file(e *entry) {
	p.unfile(e)
	if e.Stopped || e.gone {
		return
	}
	switch {
	case e.runs():
		e.bag = &e.room.running
	case e.Class == ClassFixTime && e.promised() && !e.Suspended:
		e.bag = &e.room.fixed
	default:
		e.bag = &e.room.movable
	}
	e.slot = len(*e.bag)
	*e.bag = append(*e.bag, e)
	e.due = e.wake()
	heap.Push(&p.queue, e)
}

func (p *Planner) unfile(e *entry) {
	if e.bag != nil {
		b := *e.bag
		last := len(b) - 1
		b[e.slot] = b[last]
		b[e.slot].slot = e.slot
		b[last] = nil
		*e.bag, e.bag = b[:last], nil
	}
	if e.queue >= 0 {
		heap.Remove(&p.queue, e.queue)
	}
}

// queue holds entries by the time at which they are due, the earliest first.
type queue []*entry

// Len is for container/heap.
func (q *queue) Len() int { return len(*q) }

// Less is for container/heap.
func (q *queue) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	return cmp.Or(a.due.Compare(b.due), a.Attempt.Compare(b.Attempt)) < 0
}

// Swap is for container/heap.
func (q *queue) Swap(i, j int) {
	list := *q
	list[i], list[j] = list[j], list[i]
	list[i].queue, list[j].queue = i, j
}

// Push is for container/heap.
func (q *queue) Push(x any) {
	e := x.(*entry) //nolint:forcetypeassert // the queue holds nothing else
	e.queue = len(*q)
	*q = append(*q, e)
}

// Pop is for container/heap.
func (q *queue) Pop() any {
	old := *q
	last := len(old) - 1
	e := old[last]
	old[last] = nil
	*q, e.queue = old[:last], -1
	return e
}
