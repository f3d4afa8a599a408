package batch

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// profile tells how many processors are free from now on: a step function, kept as a
// sorted list. With one resource and as many steps as jobs are in the machine and its
// queue, a list that lies together in memory is faster than the tree of pkg/capacity.
type profile struct {
	steps []step // ascending; the first holds now, the last forever
}

// step holds from its own instant to that of the next.
type step struct {
	at   workload.Seconds
	free int
}

// advance forgets what was before now.
func (p *profile) advance(now workload.Seconds) {
	i := 0
	for i+1 < len(p.steps) && p.steps[i+1].at <= now {
		i++
	}
	p.steps = p.steps[i:]
	p.steps[0].at = now
}

// earliest is the first instant at which procs are free for a duration. A job that has
// a place already looks only for an earlier one: until is the begin of that place, and the
// processors taken from there on may be its own. Without a place until is never.
func (p *profile) earliest(procs int, duration, until workload.Seconds) workload.Seconds {
	start, open := never, false
	for _, s := range p.steps {
		switch {
		case open && (s.at-start >= duration || s.at >= until):
			return start
		case s.at >= until:
			return until
		case s.free < procs:
			open = false
		case !open:
			start, open = s.at, true
		}
	}
	return start // the last step holds forever
}

// add changes what is free in [from, to), and tells the most that is free there then.
func (p *profile) add(from, to workload.Seconds, change int) (most int) {
	i := p.split(from)
	k := p.split(to)
	for n := i; n < k; n++ {
		p.steps[n].free += change
		most = max(most, p.steps[n].free)
	}
	p.join(k)
	p.join(i)
	return most
}

// split makes a step begin at an instant, which is not past, and returns its place.
func (p *profile) split(at workload.Seconds) int {
	i, exact := p.find(at)
	if !exact {
		p.steps = slices.Insert(p.steps, i, step{at, p.steps[i-1].free})
	}
	return i
}

// find is the place of the first step at an instant or later, and whether it is there.
func (p *profile) find(at workload.Seconds) (place int, exact bool) {
	low, high := 0, len(p.steps)
	for low < high {
		if middle := int(uint(low+high) / 2); p.steps[middle].at < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(p.steps) && p.steps[low].at == at
}

// join removes a step that changes nothing.
func (p *profile) join(i int) {
	if i > 0 && p.steps[i].free == p.steps[i-1].free {
		p.steps = slices.Delete(p.steps, i, i+1)
	}
}
