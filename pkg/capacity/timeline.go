// Package capacity keeps what of a site is free at every instant to come: a step function
// of time with one value for each of cores, memory, disk, computation and bandwidth. The
// planner plans in it, and the same code answers "now", "at 14:00" and "before 18:00".
//
// Windows are half-open, [start, end): a reservation that ends at an instant leaves space
// for one that starts at it. Amounts are integers and instants are kept in nanoseconds,
// so that reserving and releasing never drifts. The idea is the advance reservation of
// L.-O. Burchard et al., "VRM: A Failure-Aware Grid Resource Management System", section
// 2, and of OpenCCS' planning (D. Battre et al., "Planning-based Scheduling for
// SLA-awareness and Grid Integration").
//
// The steps stand in a balanced tree (tree.go). With n reservations each of Force,
// Release, Free, FirstShort, NextChange and Forget takes O(log n), a search for a place
// O((k+1) log n), where k is the number of stretches that it skipped because something
// was short there, and Clone and SetTotal O(1).
package capacity

import (
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
	// errNotReserved refuses to release more than was reserved.
	errNotReserved = errors.New("more released than was reserved in the window")
	// ErrInvalid refuses a window that does not end after its start or an amount
	// below 0.
	ErrInvalid = errors.New("invalid window or amount")
)

// Timeline is the free capacity of one site over time. Reservations never take
// more than there is; only a smaller total, or Force, can leave less than nothing free.
// It has one owner.
type Timeline struct {
	total grid.Resources
	since int64          // what was before this instant is forgotten
	first grid.Resources // free before the first change
	tree  tree           // the changes
}

const (
	always = math.MinInt64
	never  = math.MaxInt64
)

// New returns a timeline on which total is free forever.
func New(total grid.Resources) *Timeline {
	return &Timeline{total: total, since: always, first: total, tree: tree{owner: new(owner)}}
}

// Total is the capacity that can be reserved.
func (t *Timeline) Total() grid.Resources { return t.total }

// Clone is a timeline of its own with the same reservations.
func (t *Timeline) Clone() *Timeline {
	u := *t
	// neither owns the nodes that exist now: they are copied before they are changed
	t.tree.owner, u.tree.owner = new(owner), new(owner)
	return &u
}

// SetTotal changes the capacity for all time. Reservations stay: where they take
// more than the new total, less than nothing is free, and no more can be reserved.
func (t *Timeline) SetTotal(total grid.Resources) {
	t.first = t.first.Add(total.Sub(t.total))
	t.total = total
}

// Free returns what is free throughout [start, end): the smallest amount, field by field,
// and below 0 where a smaller total left less than nothing. An empty window is looked at
// as if it lasted one nanosecond.
func (t *Timeline) Free(start, end time.Time) grid.Resources {
	from, to := t.window(start, end)
	return t.extent(from, to).least
}

// Force takes need out of [start, end) even if that leaves less than nothing. It is for
// what is taken already, whether it fits or not.
func (t *Timeline) Force(need grid.Resources, start, end time.Time) error {
	if err := check(need, start, end); err != nil {
		return err
	}
	from, to := t.window(start, end)
	t.add(grid.Resources{}.Sub(need), from, to)
	return nil
}

// Release gives back what was reserved in [start, end), or nothing at all and
// errNotReserved. What lies before a Forget is gone already and not an error.
func (t *Timeline) Release(need grid.Resources, start, end time.Time) error {
	if err := check(need, start, end); err != nil {
		return err
	}
	from, to := t.window(start, end)
	if to <= t.since {
		return nil
	}
	if used := t.total.Sub(t.extent(from, to).most); !used.Fits(need) {
		return fmt.Errorf("release %+v: %w: %+v is reserved", need, errNotReserved, used)
	}
	t.add(need, from, to)
	return nil
}

// NextChange returns the first instant (UTC) after another at which the free capacity
// changes, and false if it stays as it is forever.
func (t *Timeline) NextChange(after time.Time) (time.Time, bool) {
	at := t.tree.next(nanos(after))
	return instant(at), at != never
}

// Forget drops what was before an instant, so that the timeline does not grow with
// the past.
func (t *Timeline) Forget(before time.Time) {
	at := nanos(before)
	if at <= t.since {
		return
	}
	t.since, t.first = at, t.free(at)
	t.tree.root = t.tree.cut(t.tree.root, at)
}

// Equal reports whether both have the same total and the same free capacity at
// every instant from the later of their Forgets on.
func (t *Timeline) Equal(u *Timeline) bool {
	since := max(t.since, u.since)
	return t.total == u.total && slices.Equal(t.steps(since), u.steps(since))
}

// step holds from its own instant to that of the next.
type step struct {
	at   int64
	free grid.Resources
}

// steps is the timeline as a list from an instant on.
func (t *Timeline) steps(since int64) []step {
	list := []step{{since, t.free(since)}}
	t.tree.root.walk(func(n *node) {
		if n.at > since {
			list = append(list, step{n.at, list[len(list)-1].free.Add(n.change)})
		}
	})
	return list
}

// Check verifies the invariants: the tree is one, nothing is kept of what is
// forgotten, and never is more free than there is.
func (t *Timeline) Check() error {
	if err := t.tree.check(); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	if at := t.tree.next(always); t.since != always && at <= t.since {
		return fmt.Errorf("timeline: a change at %d is left of what was forgotten until %d", at, t.since)
	}
	if most := t.extent(always, never).most; !t.total.Fits(most) {
		return fmt.Errorf("timeline: %+v is free of %+v", most, t.total)
	}
	return nil
}

// free returns what is free at an instant.
func (t *Timeline) free(at int64) grid.Resources { return t.first.Add(t.tree.until(at)) }

// extent returns the smallest and the largest amounts free in a window.
func (t *Timeline) extent(from, to int64) extent {
	here := t.free(from)
	e := extent{here, here}
	t.tree.root.widen(&e, t.first, from, to)
	return e
}

// add changes the free capacity of a window.
func (t *Timeline) add(change grid.Resources, from, to int64) {
	if to <= t.since || from >= to || change.IsZero() {
		return
	}
	if from == always {
		t.first = t.first.Add(change)
	} else {
		t.tree.add(from, change)
	}
	if to != never {
		t.tree.add(to, grid.Resources{}.Sub(change))
	}
}

// window returns [start, end) in nanoseconds. A start in the forgotten past reaches back
// forever: that past counts as one with the instant of the Forget.
func (t *Timeline) window(start, end time.Time) (from, to int64) {
	if from = nanos(start); from <= t.since {
		from = always
	}
	return from, nanos(end)
}

func check(need grid.Resources, start, end time.Time) error {
	if !start.Before(end) || !need.Fits(grid.Resources{}) {
		return fmt.Errorf("%w: %+v from %s to %s",
			ErrInvalid, need, start.Format(time.RFC3339), end.Format(time.RFC3339))
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
