// Package capacity keeps what of a site is free at every instant to come: a step
// function of time with one value for each of cores, memory, disk and computation.
// It is what the planner plans in, and the same code answers "now", "at 14:00" and
// "before 18:00".
//
// Windows are half-open, [start, end): a reservation that ends at an instant leaves
// room for one that starts at it. Amounts are integers and instants are kept in
// nanoseconds, so that reserving and releasing never drifts. The idea is the
// advance reservation of L.-O. Burchard et al., "VRM: A Failure-Aware Grid Resource
// Management System", section 2, and of OpenCCS' planning (D. Battre et al.,
// "Planning-based Scheduling for SLA-awareness and Grid Integration").
package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var (
	// ErrFull refuses a reservation that would take more than is free.
	ErrFull = errors.New("not enough capacity free in the window")
	// ErrNotReserved refuses to release more than was reserved.
	ErrNotReserved = errors.New("more released than was reserved in the window")
	// ErrInvalid refuses a window that does not end after its start or an amount
	// below 0.
	ErrInvalid = errors.New("invalid window or amount")
)

// Timeline is the free capacity of one site over time. Reservations never take
// more than there is; only a smaller total can leave less than nothing free. It
// has one owner. Every operation takes time in proportion to the number of steps,
// which is at most twice the number of reservations.
type Timeline struct {
	total grid.Resources
	since int64  // what was before this instant is forgotten
	steps []step // ascending; the first reaches back for ever, the last ends never
}

// step holds from its own instant to that of the next.
type step struct {
	at   int64 // nanoseconds since 1970
	free grid.Resources
}

const (
	always = math.MinInt64
	never  = math.MaxInt64
)

// New is a timeline on which total is free for ever.
func New(total grid.Resources) *Timeline {
	return &Timeline{total: total, since: always, steps: []step{{always, total}}}
}

// Total is the capacity that can be reserved.
func (t *Timeline) Total() grid.Resources { return t.total }

// Clone is a timeline that shares nothing with this one.
func (t *Timeline) Clone() *Timeline {
	return &Timeline{total: t.total, since: t.since, steps: slices.Clone(t.steps)}
}

// SetTotal changes the capacity for all time. Reservations stay: where they take
// more than the new total, less than nothing is free, and no more can be reserved.
func (t *Timeline) SetTotal(total grid.Resources) {
	change := total.Sub(t.total)
	t.total = total
	for i := range t.steps {
		t.steps[i].free = t.steps[i].free.Add(change)
	}
}

// Free is what is free throughout [start, end): the least amount, field by field,
// and below 0 where a smaller total left less than nothing. An empty window is
// looked at as if it lasted one nanosecond.
func (t *Timeline) Free(start, end time.Time) grid.Resources {
	from, to := t.window(start, end)
	i := t.find(from)
	free := t.steps[i].free
	for i++; i < len(t.steps) && t.steps[i].at < to; i++ {
		free = free.Min(t.steps[i].free)
	}
	return free
}

// Reserve takes need out of [start, end), or nothing at all and ErrFull.
func (t *Timeline) Reserve(need grid.Resources, start, end time.Time) error {
	if err := check(need, start, end); err != nil {
		return err
	}
	if free := t.Free(start, end); !fits(need, free) {
		return fmt.Errorf("reserve %+v: %w: %+v is free", need, ErrFull, free)
	}
	t.add(grid.Resources{}.Sub(need), start, end)
	return nil
}

// Release gives back what was reserved in [start, end), or nothing at all and
// ErrNotReserved. What lies before a Forget is gone already and not an error.
func (t *Timeline) Release(need grid.Resources, start, end time.Time) error {
	if err := check(need, start, end); err != nil {
		return err
	}
	from, to := t.window(start, end)
	if to <= t.since {
		return nil
	}
	for i := t.find(from); i < len(t.steps) && t.steps[i].at < to; i++ {
		if used := t.total.Sub(t.steps[i].free); !used.Fits(need) {
			return fmt.Errorf("release %+v: %w: %+v is reserved", need, ErrNotReserved, used)
		}
	}
	t.add(need, start, end)
	return nil
}

// Resize moves the end of a reservation that began before both ends. A later end
// needs free capacity like a reservation of its own.
func (t *Timeline) Resize(need grid.Resources, end, newEnd time.Time) error {
	switch c := newEnd.Compare(end); {
	case c > 0:
		return t.Reserve(need, end, newEnd)
	case c < 0:
		return t.Release(need, newEnd, end)
	default:
		return nil
	}
}

// EarliestFit is the first instant (UTC) from notBefore on at which need is free
// for the whole duration, and false if there is none up to latest. The zero time
// as latest sets no limit. A duration below a nanosecond counts as one.
func (t *Timeline) EarliestFit(need grid.Resources, duration time.Duration, notBefore, latest time.Time) (time.Time, bool) {
	start, limit := max(nanos(notBefore), t.since), int64(never)
	if !latest.IsZero() {
		limit = nanos(latest)
	}
	for i := t.find(start); start <= limit; i++ {
		end := int64(never)
		if i+1 < len(t.steps) {
			end = t.steps[i+1].at
		}
		switch {
		case !fits(need, t.steps[i].free):
			if end == never {
				return time.Time{}, false
			}
			start = end
		case end == never || end-start >= int64(max(duration, 1)):
			return instant(start), true
		}
	}
	return time.Time{}, false
}

// NextChange is the first instant (UTC) after another at which the free capacity changes,
// and false if it stays as it is for ever.
func (t *Timeline) NextChange(after time.Time) (time.Time, bool) {
	if i := t.find(nanos(after)) + 1; i < len(t.steps) {
		return instant(t.steps[i].at), true
	}
	return time.Time{}, false
}

// Forget drops what was before an instant, so that the timeline does not grow with
// the past.
func (t *Timeline) Forget(before time.Time) {
	at := nanos(before)
	if at <= t.since {
		return
	}
	t.since = at
	t.steps = slices.Delete(t.steps, 0, t.find(at))
	t.steps[0].at = always
}

// Equal reports whether both have the same total and the same free capacity at
// every instant from the later of their Forgets on.
func (t *Timeline) Equal(u *Timeline) bool {
	a, b := t.Clone(), u.Clone()
	since := max(a.since, b.since)
	if since != always {
		a.Forget(instant(since))
		b.Forget(instant(since))
	}
	return a.total == b.total && slices.Equal(a.steps, b.steps)
}

// Check verifies the invariants: steps in order without repetition, and never more
// free than there is.
func (t *Timeline) Check() error {
	if len(t.steps) == 0 || t.steps[0].at != always {
		return errors.New("timeline: the first step does not reach back for ever")
	}
	for i, s := range t.steps {
		if i > 0 && (s.at <= t.steps[i-1].at || s.free == t.steps[i-1].free) {
			return fmt.Errorf("timeline: step %d does not follow from the one before it", i)
		}
		if !t.total.Fits(s.free) {
			return fmt.Errorf("timeline: step %d: %+v is free of %+v", i, s.free, t.total)
		}
	}
	return nil
}

// add changes the free capacity of a window.
func (t *Timeline) add(change grid.Resources, start, end time.Time) {
	from, to := t.window(start, end)
	if to <= t.since { // wholly forgotten
		return
	}
	first := t.split(from)
	last := len(t.steps)
	if to != never {
		last = t.split(to)
	}
	for i := first; i < last; i++ {
		t.steps[i].free = t.steps[i].free.Add(change)
	}
	t.join(last)
	t.join(first)
}

// find is the step that holds at an instant.
func (t *Timeline) find(at int64) int {
	i, exact := slices.BinarySearchFunc(t.steps, at, func(s step, at int64) int { return cmp.Compare(s.at, at) })
	if exact {
		return i
	}
	return i - 1
}

// split makes a step begin at an instant and returns its place.
func (t *Timeline) split(at int64) int {
	i := t.find(at)
	if t.steps[i].at == at {
		return i
	}
	t.steps = slices.Insert(t.steps, i+1, step{at, t.steps[i].free})
	return i + 1
}

// join removes a step that changes nothing.
func (t *Timeline) join(i int) {
	if i > 0 && i < len(t.steps) && t.steps[i].free == t.steps[i-1].free {
		t.steps = slices.Delete(t.steps, i, i+1)
	}
}

// window is [start, end), where a start in what is forgotten reaches back for
// ever: the past is one with the instant of the Forget.
func (t *Timeline) window(start, end time.Time) (from, to int64) {
	if from = nanos(start); from <= t.since {
		from = always
	}
	return from, nanos(end)
}

// fits reports whether need can be taken. Where nothing is needed it does not
// matter that there is less than nothing.
func fits(need, free grid.Resources) bool {
	return need.MilliCPUs <= max(free.MilliCPUs, 0) && need.MemoryBytes <= max(free.MemoryBytes, 0) &&
		need.DiskBytes <= max(free.DiskBytes, 0) && need.MFLOPS <= max(free.MFLOPS, 0)
}

func check(need grid.Resources, start, end time.Time) error {
	if !start.Before(end) || !need.Fits(grid.Resources{}) {
		return fmt.Errorf("%w: %+v from %s to %s", ErrInvalid, need, start.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	return nil
}

// nanos is an instant in nanoseconds since 1970, within the years 1678 to 2261 that
// an int64 can hold; what lies outside moves to the edge.
func nanos(t time.Time) int64 {
	const edge = math.MaxInt64 / int64(time.Second)
	switch s := t.Unix(); {
	case s < -edge:
		return always + 1
	case s >= edge:
		return never
	default:
		return t.UnixNano()
	}
}

func instant(at int64) time.Time { return time.Unix(0, at).UTC() }
