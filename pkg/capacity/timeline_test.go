package capacity

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func cores(n int64) grid.Resources { return grid.Resources{MilliCPUs: n} }

func reserve(t *testing.T, l *Timeline, need grid.Resources, from, to int) {
	t.Helper()
	if err := l.reserve(need, at(from), at(to)); err != nil {
		t.Fatal(err)
	}
}

func TestWindowsAreHalfOpen(t *testing.T) {
	l := New(cores(4))
	reserve(t, l, cores(4), 10, 20)
	reserve(t, l, cores(4), 20, 30)
	if err := l.reserve(cores(1), at(0), at(11)); !errors.Is(err, ErrFull) {
		t.Errorf("Reserve into a full window: error = %v, want ErrFull", err)
	}
	for _, c := range []struct {
		from, to int
		want     int64
	}{{0, 10, 4}, {0, 11, 0}, {29, 30, 0}, {30, 40, 4}, {20, 20, 0}, {30, 30, 4}} {
		if got := l.Free(at(c.from), at(c.to)).MilliCPUs; got != c.want {
			t.Errorf("Free(%d, %d) = %d, want %d", c.from, c.to, got, c.want)
		}
	}
	if err := l.Release(cores(4), at(10), at(30)); err != nil {
		t.Errorf("Release across both: %v", err)
	}
	if !l.Equal(New(cores(4))) {
		t.Error("something is left after everything was released")
	}
}

func TestRefusals(t *testing.T) {
	l := New(cores(4))
	reserve(t, l, cores(2), 0, 10)
	before := l.Clone()
	for name, c := range map[string]struct{ got, want error }{
		"release more than reserved": {l.Release(cores(3), at(0), at(10)), errNotReserved},
		"release longer":             {l.Release(cores(2), at(0), at(11)), errNotReserved},
		"release never reserved":     {l.Release(cores(1), at(10), at(11)), errNotReserved},
		"reserve too much":           {l.reserve(cores(3), at(9), at(99)), ErrFull},
		"empty window":               {l.reserve(cores(1), at(1), at(1)), ErrInvalid},
		"negative amount":            {l.reserve(cores(-1), at(0), at(1)), ErrInvalid},
		"negative by force":          {l.Force(cores(-1), at(0), at(1)), ErrInvalid},
		"negative release":           {l.Release(cores(-1), at(0), at(1)), ErrInvalid},
		"longer than free":           {l.resize(cores(5), at(10), at(20)), ErrFull},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: error = %v, want %v", name, c.got, c.want)
		}
	}
	if !l.Equal(before) {
		t.Error("a refusal changed the timeline")
	}
}

func TestResize(t *testing.T) {
	l := New(cores(4))
	reserve(t, l, cores(3), 0, 10)
	for _, end := range [][2]int{{10, 15}, {15, 15}, {15, 5}} {
		if err := l.resize(cores(3), at(end[0]), at(end[1])); err != nil {
			t.Fatalf("Resize %v: %v", end, err)
		}
	}
	want := New(cores(4))
	reserve(t, want, cores(3), 0, 5)
	if !l.Equal(want) {
		t.Errorf("timeline = %+v, want %+v", l, want)
	}
}

func TestEarliestFit(t *testing.T) {
	l := New(cores(4))
	reserve(t, l, cores(3), 10, 20)
	reserve(t, l, cores(4), 25, 30)
	for _, c := range []struct {
		need                  int64
		seconds, from, latest int
		want                  int
		found                 bool
	}{
		{1, 5, 0, 99, 0, true},
		{1, 25, 0, 99, 0, true},
		{1, 26, 0, 99, 30, true},
		{2, 10, 0, 99, 0, true},
		{2, 11, 0, 99, 30, true},
		{2, 5, 5, 99, 5, true},
		{2, 5, 6, 99, 20, true},
		{2, 5, 6, 20, 20, true},
		{2, 5, 6, 19, 0, false},
		{2, 6, 12, 99, 30, true},
		{5, 1, 0, 999, 0, false},
		{1, 0, 25, 99, 30, true},
	} {
		got, found := l.EarliestFit(cores(c.need), time.Duration(c.seconds)*time.Second, at(c.from),
			at(c.latest))
		if found != c.found || found && !got.Equal(at(c.want)) {
			t.Errorf("EarliestFit(%d cores, %d s, from %d, latest %d) = %v, %v, want %d, %v",
				c.need, c.seconds, c.from, c.latest, got.Sub(start), found, c.want, c.found)
		}
	}
	if got, found := l.EarliestFit(cores(4), time.Hour, at(0), time.Time{}); !found ||
		!got.Equal(at(30)) {
		t.Errorf("EarliestFit without a limit = %v, %v, want 30 s", got, found)
	}
}

func TestSetTotalKeepsReservations(t *testing.T) {
	l := New(grid.Resources{MilliCPUs: 4, DiskBytes: 9})
	reserve(t, l, cores(3), 0, 10)
	l.SetTotal(grid.Resources{MilliCPUs: 2, DiskBytes: 9})
	if got := l.Free(at(0), at(10)).MilliCPUs; got != -1 {
		t.Errorf("free = %d, want -1", got)
	}
	if err := l.reserve(cores(1), at(0), at(5)); !errors.Is(err, ErrFull) {
		t.Errorf("Reserve where too much is taken: error = %v, want ErrFull", err)
	}
	if err := l.reserve(grid.Resources{DiskBytes: 9}, at(0), at(5)); err != nil {
		t.Errorf("Reserve of what there is enough of: %v", err)
	}
	if got, ok := l.EarliestFit(cores(2), time.Second, at(0), time.Time{}); !ok || !got.Equal(at(10)) {
		t.Errorf("EarliestFit = %v, %v, want 10 s", got, ok)
	}
	if err := l.Release(cores(3), at(0), at(10)); err != nil {
		t.Errorf("Release: %v", err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// Timelines are equal if total and every step are: neither is enough alone.
func TestEqualIsOfTotalAndSteps(t *testing.T) {
	free, taken := New(cores(4)), New(cores(4))
	reserve(t, taken, cores(1), 0, 10)
	if free.Equal(taken) || taken.Equal(free) {
		t.Error("a reservation makes no difference")
	}
	more := New(cores(5))
	if err := more.Force(cores(1), time.Unix(-1<<40, 0), time.Unix(1<<40, 0)); err != nil {
		t.Fatal(err)
	}
	more.Forget(at(0))
	free.Forget(at(0))
	if free.Equal(more) || !free.Equal(free.Clone()) {
		t.Error("a core more that is taken makes no difference")
	}
}

// What changes in the very instant in which the later past ends counts once: there the sum
// of the past has it already.
func TestEqualWhereOneForgot(t *testing.T) {
	l := stairs(t)
	for second := range 60 {
		m := l.Clone()
		m.Forget(at(second))
		if !m.Equal(l) || !l.Equal(m) {
			t.Errorf("to forget until %d s makes a difference", second)
		}
	}
}

// What ends when the forgotten past does, or before, is of the past.
func TestThePastTakesNothing(t *testing.T) {
	l := New(cores(4))
	reserve(t, l, cores(1), 10, 30)
	l.Forget(at(20))
	for _, end := range []int{19, 20, 21} {
		m := l.Clone()
		if err := m.Force(cores(2), at(5), at(end)); err != nil || m.Check() != nil {
			t.Fatal(err, m.Check())
		}
		if taken := !m.Equal(l); taken != (end > 20) {
			t.Errorf("until %d: changed = %t", end, taken)
		}
	}
}

func TestForget(t *testing.T) {
	l := New(cores(4))
	reserve(t, l, cores(1), 0, 10)
	reserve(t, l, cores(2), 5, 20)
	l.Forget(at(15))
	l.Forget(at(3)) // the past stays forgotten
	if got := len(l.steps(always)); got != 2 {
		t.Errorf("%d steps, want 2", got)
	}
	if err := l.Release(cores(1), at(0), at(10)); err != nil {
		t.Errorf("Release in the past: %v", err)
	}
	if err := l.Release(cores(2), at(5), at(20)); err != nil {
		t.Errorf("Release that began in the past: %v", err)
	}
	if !l.Equal(New(cores(4))) || l.Check() != nil {
		t.Errorf("timeline = %+v: %v", l, l.Check())
	}
	if got, ok := l.EarliestFit(cores(1), time.Second, at(0), time.Time{}); !ok || !got.Equal(at(15)) {
		t.Errorf("EarliestFit = %v, %v, want the instant of the Forget", got, ok)
	}
}

func TestFarTimes(t *testing.T) {
	l := New(cores(4))
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := l.reserve(cores(4), time.Time{}, far); err != nil {
		t.Fatal(err)
	}
	if got := l.Free(at(0), at(1)).MilliCPUs; got != 0 {
		t.Errorf("free = %d, want 0", got)
	}
	if err := l.Release(cores(4), time.Time{}, far); err != nil || !l.Equal(New(cores(4))) {
		t.Errorf("Release: %v, left %+v", err, l)
	}
}

func TestNextChange(t *testing.T) {
	l := New(cores(4))
	reserve(t, l, cores(1), 5, 10)
	for _, c := range []struct {
		after, want int
		ok          bool
	}{{0, 5, true}, {5, 10, true}, {7, 10, true}, {10, 0, false}} {
		if got, ok := l.NextChange(at(c.after)); ok != c.ok || ok && !got.Equal(at(c.want)) {
			t.Errorf("NextChange(%d) = %v, %v, want %d, %v", c.after, got.Sub(start), ok, c.want, c.ok)
		}
	}
}

// slots is the dumb twin: what is free in each second.
type slots []grid.Resources

const horizon = 30

func (s slots) free(from, to int) grid.Resources {
	free := s[from]
	for _, r := range s[from:to] {
		free = free.Min(r)
	}
	return free
}

func (s slots) add(change grid.Resources, from, to int) {
	for i := from; i < to; i++ {
		s[i] = s[i].Add(change)
	}
}

func enough(free, need grid.Resources) bool {
	for _, d := range [][2]int64{
		{free.MilliCPUs, need.MilliCPUs},
		{free.MemoryBytes, need.MemoryBytes},
		{free.DiskBytes, need.DiskBytes},
		{free.MFLOPS, need.MFLOPS},
		{free.NetBps, need.NetBps},
	} {
		if d[1] > 0 && d[1] > d[0] {
			return false
		}
	}
	return true
}

func amounts() *rapid.Generator[grid.Resources] {
	n := rapid.Int64Range(0, 4)
	return rapid.Custom(func(t *rapid.T) grid.Resources {
		return grid.Resources{
			MilliCPUs: n.Draw(t, "cpus"), MemoryBytes: n.Draw(t, "memory"), DiskBytes: n.Draw(t, "disk"),
			MFLOPS: n.Draw(t, "mflops"), NetBps: n.Draw(t, "bandwidth"),
		}
	})
}

type booking struct {
	need     grid.Resources
	from, to int
}

func TestTimelineAgainstSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := amounts().Draw(t, "total")
		l, twin := New(total), make(slots, horizon)
		twin.add(total, 0, horizon)
		var booked []booking
		past := 0
		for range rapid.IntRange(1, 30).Draw(t, "operations") {
			from := rapid.IntRange(past, horizon-2).Draw(t, "from")
			b := booking{amounts().Draw(t, "need"), from, rapid.IntRange(from+1, horizon-1).Draw(t, "to")}
			switch op := rapid.IntRange(0, 5).Draw(t, "operation"); {
			case op <= 2:
				err := l.reserve(b.need, at(b.from), at(b.to))
				if want := enough(twin.free(b.from, b.to), b.need); (err == nil) != want {
					t.Fatalf("Reserve(%+v): %v, want room %v", b, err, want)
				}
				if err == nil {
					twin.add(grid.Resources{}.Sub(b.need), b.from, b.to)
					booked = append(booked, b)
				}
			case op == 3 && len(booked) > 0:
				i := rapid.IntRange(0, len(booked)-1).Draw(t, "which")
				b = booked[i]
				booked = slices.Delete(booked, i, i+1)
				if err := l.Release(b.need, at(b.from), at(b.to)); err != nil {
					t.Fatal(err)
				}
				twin.add(b.need, b.from, b.to)
			case op == 4:
				twin.add(b.need.Sub(total), 0, horizon)
				total = b.need
				l.SetTotal(total)
			default:
				past = from
				l.Forget(at(past))
			}
			compare(t, l, twin, past)
		}
	})
}

func compare(t *rapid.T, l *Timeline, twin slots, past int) {
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	for i := past; i < horizon; i++ {
		if got := l.Free(at(i), at(i+1)); got != twin[i] {
			t.Fatalf("second %d: %+v free, want %+v", i, got, twin[i])
		}
	}
	need := amounts().Draw(t, "fit")
	from := rapid.IntRange(past, horizon-1).Draw(t, "notBefore")
	length := rapid.IntRange(1, 5).Draw(t, "seconds")
	got, ok := l.EarliestFit(need, time.Duration(length)*time.Second, at(from), at(horizon-length))
	for i := from; i <= horizon-length; i++ {
		if enough(twin.free(i, i+length), need) {
			if !ok || !got.Equal(at(i)) {
				t.Fatalf("EarliestFit = %v, %v, want second %d", got, ok, i)
			}
			return
		}
	}
	if ok {
		t.Fatalf("EarliestFit = %v, want none", got.Sub(start))
	}
}
