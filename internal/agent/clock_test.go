package agent

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// hands are a machine's two clocks, which a test moves.
type hands struct{ boot, wall atomic.Int64 }

func (h *hands) clock() clock {
	return newClock(
		func() lrm.BootTime { return lrm.BootTime(h.boot.Load()) },
		func() time.Time { return time.Unix(0, h.wall.Load()) },
	)
}

func (h *hands) pass(d time.Duration) {
	h.boot.Add(int64(d))
	h.wall.Add(int64(d))
}

// A wall clock that is set is noticed once, by how much, and no time that passes, asleep or
// awake, is taken for it. The machines' own clock does not follow.
func TestASetClockIsNoticed(t *testing.T) {
	h := &hands{}
	c := h.clock()
	for _, test := range []struct {
		passes, set, want time.Duration
	}{
		{passes: time.Hour},
		{passes: time.Second, set: time.Hour, want: time.Hour},
		{passes: 8 * time.Hour},
		{set: -2 * time.Hour, want: -2 * time.Hour},
		{set: leastStep / 2},
		{set: leastStep / 2, want: leastStep}, // small ones add up
	} {
		before := c.now()
		h.pass(test.passes)
		h.wall.Add(int64(test.set))
		by, set := c.follow()
		if by != test.want || set != (test.want != 0) {
			t.Errorf("set by %s: noticed %s, %t, want %s", test.set, by, set, test.want)
		}
		if by, set := c.follow(); set {
			t.Errorf("the step of %s was noticed twice, then by %s", test.set, by)
		}
		if went := c.now().Sub(before); went != test.passes {
			t.Errorf("the machines' clock went on by %s, want %s", went, test.passes)
		}
	}
	if shows, want := c.shows(), time.Unix(0, h.wall.Load()); !shows.Equal(want) {
		t.Errorf("the machines know %s, the wall clock shows %s", shows, want)
	}
}

// A process that is stopped between the two readings sees no step.
func TestASlowReadingIsNoStep(t *testing.T) {
	h := &hands{}
	c := h.clock()
	c.real = func() time.Time {
		defer h.pass(time.Minute)
		return time.Unix(0, h.wall.Load())
	}
	if by, set := c.follow(); set {
		t.Errorf("a step of %s that was none", by)
	}
}
