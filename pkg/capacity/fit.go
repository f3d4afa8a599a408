package capacity

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Search asks for a place: an amount, free for a whole duration.
type Search struct {
	Need     grid.Resources
	Duration time.Duration // below a nanosecond counts as one
	Window   grid.Window   // the place starts no earlier and ends no later
}

// Fit is a place that was found.
type Fit struct {
	Start   time.Time // UTC
	Skipped int       // stretches that were skipped, in each of which one thing was short throughout
}

// EarliestFit is the first instant (UTC) from notBefore on at which need is free
// for the whole duration, and false if there is none up to latest. The zero time
// as latest sets no limit. A duration below a nanosecond counts as one.
func (t *Timeline) EarliestFit(
	need grid.Resources, duration time.Duration, notBefore, latest time.Time,
) (time.Time, bool) {
	limit := int64(never)
	if !latest.IsZero() {
		limit = nanos(latest)
	}
	fit, found := t.earliest(need, int64(max(duration, 1)), nanos(notBefore), limit)
	return fit.Start, found
}

// Earliest is the place in the window that starts first, and false if there is none.
func (t *Timeline) Earliest(s Search) (Fit, bool) {
	duration, limit := int64(max(s.Duration, 1)), int64(never)
	if !s.Window.Deadline.IsZero() {
		deadline := nanos(s.Window.Deadline)
		if deadline < always+duration {
			return Fit{}, false
		}
		limit = deadline - duration
	}
	return t.earliest(s.Need, duration, nanos(s.Window.NotBefore), limit)
}

// FirstShort is the first instant of [start, end) at which less than need is free,
// and false if there is none.
func (t *Timeline) FirstShort(need grid.Resources, start, end time.Time) (time.Time, bool) {
	from, to := max(nanos(start), t.since), nanos(end)
	at, found := t.firstFrom(from, query{need: need, short: true})
	if !found || at >= to {
		return time.Time{}, false
	}
	if at == nanos(start) {
		return start, true
	}
	return instant(at), true
}

// earliest looks for the first start up to limit.
func (t *Timeline) earliest(need grid.Resources, duration, start, limit int64) (Fit, bool) {
	start = max(start, t.since)
	for skipped := 0; start <= limit; skipped++ {
		at, found := t.firstFrom(start, query{need: need, short: true})
		if !found || lasts(start, at, duration) {
			return Fit{instant(start), skipped}, true
		}
		if start, found = t.firstFrom(at, query{need: shortOf(need, t.free(at))}); !found {
			break
		}
	}
	return Fit{}, false
}

// lasts reports whether a window is long enough. The difference may be more than an
// int64 can hold.
func lasts(from, to, duration int64) bool {
	return from <= to && uint64(to)-uint64(from) >= uint64(duration)
}

// query describes the search: an instant at which need is short, or one at which it is
// not.
type query struct {
	need  grid.Resources
	short bool
}

func (q query) answers(free grid.Resources) bool { return fits(q.need, free) != q.short }

// firstFrom is the first instant from another on that answers.
func (t *Timeline) firstFrom(at int64, q query) (int64, bool) {
	if q.answers(t.free(at)) {
		return at, true
	}
	return t.tree.root.first(at, t.first, q)
}

// fits reports whether need can be taken. Where nothing is needed it does not
// matter that there is less than nothing.
func fits(need, free grid.Resources) bool {
	return need.MilliCPUs <= max(free.MilliCPUs, 0) && need.MemoryBytes <= max(free.MemoryBytes, 0) &&
		need.DiskBytes <= max(free.DiskBytes, 0) && need.MFLOPS <= max(free.MFLOPS, 0) &&
		need.NetBps <= max(free.NetBps, 0)
}

// shortOf reduces a need to one resource that is short. A search for enough of one
// resource, rather than of all together, never descends into a subtree for nothing.
func shortOf(need, free grid.Resources) grid.Resources {
	switch {
	case need.MilliCPUs > max(free.MilliCPUs, 0):
		return grid.Resources{MilliCPUs: need.MilliCPUs}
	case need.MemoryBytes > max(free.MemoryBytes, 0):
		return grid.Resources{MemoryBytes: need.MemoryBytes}
	case need.DiskBytes > max(free.DiskBytes, 0):
		return grid.Resources{DiskBytes: need.DiskBytes}
	case need.NetBps > max(free.NetBps, 0):
		return grid.Resources{NetBps: need.NetBps}
	default:
		return grid.Resources{MFLOPS: need.MFLOPS}
	}
}
