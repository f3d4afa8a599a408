package sim

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// clock is a host's knowledge of time. Its continuous clock counts from the beginning of
// the world, suspend included, at a rate of its own. Its wall clock is that one plus what
// it was set by. A machine's now begins with the wall clock at its agent's start and goes
// on with the continuous one: it never steps.
type clock struct {
	fast    int64         // millionths that it runs fast; below 0: slow
	since   time.Duration // true time of the last change of that
	counted time.Duration // by the continuous clock up to then
	wall    time.Duration // the wall clock minus the continuous one
	begun   time.Duration // the same at the agent's start
	sets    []clockSet    // in their order
}

// clockSet is that a wall clock was set.
type clockSet struct{ at, by time.Duration }

// movedBetween says by how much a site's wall clock was set after the first so many times that
// it was: until a time, and then after each time that it was set until the end.
func (w *World) movedBetween(id grid.SiteID, before int, at, end time.Duration) []time.Duration {
	var all []time.Duration
	var sets []clockSet
	if h, known := w.hosts[id]; known {
		sets = h.clock.sets[before:]
	}
	sum := time.Duration(0)
	for _, s := range sets {
		if s.at > end {
			continue
		}
		if s.at > at {
			all = append(all, sum)
		}
		sum += s.by
	}
	return append(all, sum)
}

// million is the number of parts that clock.fast counts in.
const million = 1_000_000

// continuous is the continuous clock at a true time.
func (c *clock) continuous(at time.Duration) time.Duration {
	d := at - c.since
	return c.counted + d + d/million*time.Duration(c.fast) + d%million*time.Duration(c.fast)/million
}

// truly is the true length of what the host counts as d, never less.
func (c *clock) truly(d time.Duration) time.Duration {
	if c.fast == 0 || d <= 0 {
		return d
	}
	rate := time.Duration(million + c.fast)
	return d/rate*million + d%rate*million/rate + 2
}

// now is the host's time as its machines see it.
func (h *host) now() time.Time {
	return Epoch().Add(h.clock.continuous(h.world.elapsed) + h.clock.begun)
}

// trueTime is the true time at which the host's machines see a time.
func (h *host) trueTime(at time.Time) time.Duration {
	return h.world.elapsed + h.clock.truly(at.Sub(h.now()))
}

// Clock reads a site's wall clock.
func (w *World) Clock(id grid.SiteID) time.Time {
	return w.wallOf(w.hosts[id])
}

func (w *World) wallOf(h *host) time.Time {
	return Epoch().Add(h.clock.continuous(w.elapsed) + h.clock.wall)
}

// lasting is the host's continuous clock, which goes on until its power is gone.
func (h *host) lasting() step.Clock {
	of := fmt.Sprintf("%s.%d", h.spec.ID, h.disk.boots)
	if h.machine > 0 {
		of += fmt.Sprintf(".%d", h.machine)
	}
	return step.Clock{Of: of, Zero: Epoch().Add(h.clock.begun)}
}

// StepClock sets a site's wall clock forward, or back by less than 0. An agent that runs
// is told, and its machines' now goes on as it did; one that is down finds it so when it
// starts.
func (w *World) StepClock(id grid.SiteID, by time.Duration) {
	h := w.hosts[id]
	h.clock.wall += by
	h.clock.sets = append(h.clock.sets, clockSet{at: w.elapsed, by: by})
	for _, r := range []role{roleSite, roleBroker} {
		h.step(r, step.ClockStepped{By: by})
	}
}

// Drift lets a site's clocks run fast from now on, or slow below 0, by so many millionths.
// Only the host itself measures with them: timers, leases; the work takes as long as before.
func (w *World) Drift(id grid.SiteID, millionths int64) {
	h := w.hosts[id]
	before := h.clock
	h.clock.counted, h.clock.since = before.continuous(w.elapsed), w.elapsed
	h.clock.fast = millionths
	w.fastest = max(w.fastest, millionths, -millionths)
	if !h.up {
		return
	}
	for _, id := range sortedTimers(h.timers) {
		h.setTimer(id, h.timers[id].at)
	}
	for _, id := range sortedAttempts(h.attempts) {
		a := h.attempts[id]
		left := max(0, a.leaseUntil-w.elapsed)
		a.leaseUntil = w.elapsed + h.clock.truly(left+left/million*time.Duration(before.fast)+
			left%million*time.Duration(before.fast)/million)
		if a.running {
			h.pauseAttempt(a)
			h.resume(a)
		}
	}
}
