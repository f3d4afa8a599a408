package capacity

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What the planner does with Force and Free, in the words of the tests.

// peak is the most that is reserved at an instant of [start, end), field by field.
func (t *Timeline) peak(start, end time.Time) grid.Resources {
	return t.total.Sub(t.Free(start, end))
}

// reserve takes need out of [start, end), or nothing at all and ErrFull.
func (t *Timeline) reserve(need grid.Resources, start, end time.Time) error {
	if err := check(need, start, end); err != nil {
		return err
	}
	from, to := t.window(start, end)
	if free := t.extent(from, to).least; !fits(need, free) {
		return fmt.Errorf("reserve %+v: %w: %+v is free", need, ErrFull, free)
	}
	t.add(grid.Resources{}.Sub(need), from, to)
	return nil
}

// resize moves the end of a reservation that began before both ends. A later end
// needs free capacity like a reservation of its own.
func (t *Timeline) resize(need grid.Resources, end, newEnd time.Time) error {
	switch c := newEnd.Compare(end); {
	case c > 0:
		return t.reserve(need, end, newEnd)
	case c < 0:
		return t.Release(need, newEnd, end)
	default:
		return nil
	}
}
