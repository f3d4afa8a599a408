package agent

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A reading that takes lookTakes counts, one that takes longer does not, and says nothing.
func TestHowLongAReadingMayTake(t *testing.T) {
	for _, c := range []struct {
		takes, want time.Duration
	}{
		{lookTakes, time.Hour}, {lookTakes + 1, 0},
	} {
		h := &hands{}
		k := h.clock()
		h.wall.Add(int64(time.Hour))
		k.real = func() time.Time {
			at := time.Unix(0, h.wall.Load())
			h.pass(c.takes)
			return at
		}
		if by, set := k.follow(); by != c.want || set != (c.want != 0) {
			t.Errorf("a reading of %s: %s, %t, want %s", c.takes, by, set, c.want)
		}
	}
}

// Steps below leastStep are none, to either side; what is told is in full milliseconds.
func TestTheLeastStep(t *testing.T) {
	for _, c := range []struct {
		set, want time.Duration
	}{
		{leastStep, leastStep},
		{-leastStep, -leastStep},
		{leastStep - time.Millisecond, 0},
		{time.Millisecond - leastStep, 0},
		{time.Hour + 300*time.Microsecond, time.Hour},
	} {
		h := &hands{}
		k := h.clock()
		h.wall.Add(int64(c.set))
		if by, set := k.follow(); by != c.want || set != (c.want != 0) {
			t.Errorf("set by %s: %s, %t, want %s", c.set, by, set, c.want)
		}
	}
}

// The clock that outlives the agent is named by the boot, and read 0 at the machine's start. A
// system that does not name its boots has none.
func TestTheClockThatOutlivesTheAgent(t *testing.T) {
	h := &hands{}
	h.pass(time.Hour) // since the boot
	k := h.clock()
	h.boot.Add(int64(time.Minute))
	if got := k.continuous(""); got != (step.Clock{}) {
		t.Errorf("without a name: %+v", got)
	}
	got := k.continuous("boot")
	if got.Of != "boot" || k.now().Sub(got.Zero) != time.Hour+time.Minute {
		t.Errorf("%+v, %s ago; want since the boot", got, k.now().Sub(got.Zero))
	}
	if end := k.toBoot(k.now().Add(time.Second)); end != lrm.BootTime(h.boot.Load()).Add(time.Second) {
		t.Errorf("a lease of a second ends at %d, the clock reads %d", end, h.boot.Load())
	}
}
