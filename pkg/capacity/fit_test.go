package capacity

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func window(from, deadline int) grid.Window {
	return grid.Window{NotBefore: at(from), Deadline: at(deadline)}
}

// stairs is a timeline of four cores, of which the following are free:
//
//	seconds  0-10 10-20 20-25 25-30 30-40 40-
//	free        4     1     4     0     2   4
func stairs(t *testing.T) *Timeline {
	t.Helper()
	l := New(cores(4))
	reserve(t, l, cores(3), 10, 20)
	reserve(t, l, cores(4), 25, 30)
	reserve(t, l, cores(2), 30, 40)
	return l
}

func TestEarliest(t *testing.T) {
	l := stairs(t)
	const none = -1
	for _, c := range []struct {
		need                    int64
		seconds, from, deadline int
		want, skipped           int
	}{
		{1, 5, 0, 99, 0, 0},
		{1, 5, 0, 34, 0, 0},
		{1, 25, 0, 99, 0, 0},
		{1, 25, 0, 54, 0, 0}, // [29,54) meets the full stretch
		{1, 25, 0, 25, 0, 0},
		{1, 26, 0, 54, none, 0},
		{2, 5, 6, 99, 20, 1},
		{2, 6, 6, 99, 30, 2},
		{2, 5, 6, 34, 20, 1},
		{3, 5, 0, 40, 0, 0}, // 25 to 40 is one stretch of too little
		{3, 6, 0, 40, 0, 0},
		{3, 11, 0, 50, none, 0},
		{3, 11, 0, 51, 40, 2},
		{5, 1, 0, 999, none, 0},
		{0, 50, 0, 50, 0, 0},
		{0, 51, 0, 50, none, 0},
		{1, 5, 50, 40, none, 0},
	} {
		s := Search{
			Need: cores(c.need), Duration: time.Duration(c.seconds) * time.Second,
			Window: window(c.from, c.deadline),
		}
		got, found := l.Earliest(s)
		if found != (c.want != none) || found && (!got.Start.Equal(at(c.want)) ||
			got.Skipped != c.skipped) {
			t.Errorf("Earliest(%d cores, %d s, %d to %d) = %v after %d, %v, want %d after %d",
				c.need, c.seconds, c.from, c.deadline, got.Start.Sub(start), got.Skipped,
				found, c.want, c.skipped)
		}
	}
}

// TestShortInTurn: what counts as skipped is a stretch in which one thing is short.
func TestShortInTurn(t *testing.T) {
	l := New(grid.Resources{MilliCPUs: 1, MemoryBytes: 1, DiskBytes: 1, MFLOPS: 1, NetBps: 1})
	reserve(t, l, grid.Resources{MilliCPUs: 1}, 0, 10)
	reserve(t, l, grid.Resources{MemoryBytes: 1}, 5, 20)
	reserve(t, l, grid.Resources{DiskBytes: 1}, 20, 30)
	reserve(t, l, grid.Resources{MFLOPS: 1}, 31, 40)
	reserve(t, l, grid.Resources{NetBps: 1}, 40, 50)
	s := Search{Need: l.Total(), Duration: 2 * time.Second, Window: window(0, 99)}
	if got, ok := l.Earliest(s); !ok || !got.Start.Equal(at(50)) || got.Skipped != 5 {
		t.Errorf("Earliest = %v after %d, %v, want 50 s after 5", got.Start.Sub(start), got.Skipped, ok)
	}
}

func TestSearchAtTheEdges(t *testing.T) {
	l := New(cores(1))
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Search{Need: cores(1), Duration: time.Hour}
	if got, ok := l.Earliest(s); !ok || got.Skipped != 0 {
		t.Errorf("Earliest without a window = %+v, %v", got, ok)
	}
	s.Window.Deadline = time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)
	if got, ok := l.Earliest(s); ok {
		t.Errorf("Earliest before a deadline long past = %+v", got)
	}
	if err := l.reserve(cores(1), far, far.Add(time.Hour)); err != nil || l.Check() != nil {
		t.Errorf("Reserve at the end of time: %v, %v", err, l.Check())
	}
}

func TestPeak(t *testing.T) {
	l := stairs(t)
	for _, c := range []struct {
		from, to int
		want     int64
	}{{0, 10, 0}, {0, 11, 3}, {20, 26, 4}, {30, 40, 2}, {40, 99, 0}} {
		if got := l.peak(at(c.from), at(c.to)).MilliCPUs; got != c.want {
			t.Errorf("Peak(%d, %d) = %d, want %d", c.from, c.to, got, c.want)
		}
	}
}

// A place that is short from its start on is so from that very instant, however far off: years
// that an int64 of nanoseconds does not hold count as its edges.
func TestFirstShortAtTheEdges(t *testing.T) {
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	l := New(cores(4))
	if err := l.Force(cores(3), year(1), year(9999)); err != nil {
		t.Fatal(err)
	}
	for _, from := range []time.Time{year(1), year(1600), year(1900), year(2026), year(2200)} {
		until := year(2250)
		if got, short := l.FirstShort(cores(2), from, until); !short || !got.Equal(from) {
			t.Errorf("from %v: %v, %t", from, got, short)
		}
		if _, short := l.FirstShort(cores(1), from, until); short {
			t.Errorf("from %v: what is free is short", from)
		}
	}
	l.Forget(year(2100))
	if got, short := l.FirstShort(cores(2), year(2026), year(2200)); !short || !got.Equal(year(2100)) {
		t.Errorf("where the past is forgotten: %v, %t", got, short)
	}
}
