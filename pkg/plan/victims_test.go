package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// give is cores and memory.
func give(milliCPUs, memory int64) grid.Resources {
	return grid.Resources{MilliCPUs: milliCPUs, MemoryBytes: memory}
}

// runs is best effort that runs from a second on to 100.
func runs(n, since int, r grid.Resources) draft {
	return task(n, ClassVarTime, 0, since, 100).gets(r)
}

// due is the same with a deadline.
func due(n, since int, r grid.Resources, deadline int) draft {
	return runs(n, since, r).with(func(c *Commitment) {
		c.Class, c.Deadline = ClassDeadline, at(deadline)
	})
}

// gets sets what it gets.
func (d draft) gets(r grid.Resources) draft {
	return d.with(func(c *Commitment) { c.Give = r })
}

func stops(d draft) draft {
	return d.with(func(c *Commitment) { c.Overrun = grid.OverrunStop })
}

// TestWhoYieldsToAPromise is about what makeRoom says: those with the most slack are
// suspended, best effort first, the one that came last before others, and no more of them than
// needed; then deadlines that can still be met. Best effort ends where memory is short, and
// where it allows nothing else. A promise never ends another. All run on 8 cores and 8 bytes
// of memory of which an outage takes some; the promise is for 10 to 20 s.
func TestWhoYieldsToAPromise(t *testing.T) {
	for name, c := range map[string]struct {
		running            []draft
		promise, missing   grid.Resources
		suspended, stopped []int
		lost               bool
	}{
		"nobody where there is enough": {
			running: []draft{runs(1, 0, give(3, 0)), runs(2, 1, give(3, 0))},
			promise: give(1, 0), missing: give(1, 0),
		},
		"the last that came": {
			running: []draft{runs(1, 0, give(3, 0)), runs(2, 1, give(3, 0))},
			promise: give(2, 0), missing: give(2, 0), suspended: []int{2},
		},
		"the last that came, whatever deadlines best effort has": {
			running: []draft{
				runs(1, 0, give(3, 0)).with(func(c *Commitment) { c.Deadline = at(900) }),
				runs(2, 1, give(3, 0)).with(func(c *Commitment) { c.Deadline = at(300) }),
			},
			promise: give(2, 0), missing: give(2, 0), suspended: []int{2},
		},
		"both": {
			running: []draft{runs(1, 0, give(2, 0)), runs(2, 1, give(2, 0))},
			promise: give(4, 0), missing: give(4, 0), suspended: []int{2, 1},
		},
		"not those that would not be enough": {
			running: []draft{runs(1, 0, give(3, 0)), runs(2, 1, give(1, 0)), runs(3, 2, give(1, 0))},
			promise: give(3, 0), missing: give(3, 0), suspended: []int{1},
		},
		"no more than it needs, in an outage that takes more": {
			running: []draft{runs(1, 0, give(3, 0)), runs(2, 1, give(3, 0))},
			promise: give(2, 0), missing: give(4, 0), suspended: []int{2},
		},
		"best effort before a deadline": {
			running: []draft{runs(1, 0, give(3, 0)), due(2, 1, give(3, 0), 900)},
			promise: give(2, 0), missing: give(2, 0), suspended: []int{1},
		},
		"the deadline that can wait longest": {
			running: []draft{
				due(1, 0, give(2, 0), 300), due(2, 1, give(2, 0), 900), due(3, 2, give(2, 0), 500),
			},
			promise: give(2, 0), missing: give(2, 0), suspended: []int{2},
		},
		"no deadline that could not be met then": {
			running: []draft{due(1, 0, give(3, 0), 109), due(2, 1, give(3, 0), 109)},
			promise: give(2, 0), missing: give(2, 0), lost: true,
		},
		"best effort that allows nothing else ends": {
			running: []draft{stops(runs(1, 0, give(3, 0))), stops(runs(2, 1, give(3, 0)))},
			promise: give(2, 0), missing: give(2, 0), stopped: []int{2},
		},
		"it is suspended rather than another ended": {
			running: []draft{runs(1, 0, give(3, 0)), stops(runs(2, 1, give(3, 0)))},
			promise: give(2, 0), missing: give(2, 0), suspended: []int{1},
		},
		"memory: it ends": {
			running: []draft{runs(1, 0, give(3, 3)), runs(2, 1, give(3, 3))},
			promise: give(2, 2), missing: give(0, 2), stopped: []int{2},
		},
		"memory: what has none goes on": {
			running: []draft{runs(1, 0, give(2, 4)), runs(2, 1, give(2, 0))},
			promise: give(2, 4), missing: give(0, 3), stopped: []int{1},
		},
		"memory: no deadline ends": {
			running: []draft{due(1, 0, give(3, 3), 900), due(2, 1, give(3, 3), 900)},
			promise: give(2, 2), missing: give(0, 2), lost: true,
		},
		"both are short: one is suspended, and it ends for its memory": {
			running: []draft{runs(1, 0, give(3, 1)), runs(2, 1, give(3, 4))},
			promise: give(2, 3), missing: give(2, 2), stopped: []int{2},
			suspended: []int{2},
		},
		"cores of one and the memory of another": {
			running: []draft{due(1, 0, give(4, 0), 900), stops(runs(2, 1, give(0, 4)))},
			promise: give(4, 4), missing: give(4, 4), suspended: []int{1}, stopped: []int{2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(Config{Total: give(8, 8)})
			for i, d := range c.running {
				put(t, p, i, d)
			}
			put(t, p, 5, task(9, ClassFixTime, 0, 10, 20).gets(c.promise))
			p.SetOutage(c.missing, at(300))
			lost := p.Advance(at(6)).Lost
			check(t, p)
			changes := p.Advance(at(10))
			check(t, p)
			if lost = append(lost, changes.Lost...); c.lost != (len(lost) > 0) {
				t.Errorf("lost %v", numbers(lost))
			}
			if !c.lost && !cmp.Equal(numbers(changes.Started), []int{9}) {
				t.Errorf("started %v", numbers(changes.Started))
			}
			if got := numbers(changes.Suspended); !cmp.Equal(got, c.suspended) {
				t.Errorf("suspended %v, want %v", got, c.suspended)
			}
			for _, k := range changes.Stopped {
				if !k.Stopped || k.Suspended || k.Left != 0 {
					t.Errorf("it was told to end, and is %+v", k)
				}
			}
			if got := numbers(changes.Stopped); !cmp.Equal(got, c.stopped) {
				t.Errorf("stopped %v, want %v", got, c.stopped)
			}
		})
	}
}

// What is suspended already ends where its memory is needed, and gives all of it back. What
// is suspended besides goes on when there are cores.
func TestWhatIsSuspendedEndsForItsMemory(t *testing.T) {
	p := New(Config{Total: give(4, 8)})
	for n, memory := range map[int]int64{1: 4, 2: 1, 3: 1} {
		put(t, p, 0, task(n, ClassVarTime, 0, 0, 10).gets(give(1, memory)))
	}
	put(t, p, 0, task(4, ClassFixTime, 4, 10, 30))
	put(t, p, 0, task(5, ClassFixTime, 0, 20, 25).gets(give(0, 6)))
	if changes := p.Advance(at(10)); len(changes.Suspended) != 3 {
		t.Fatalf("at 10 s: %+v, want all suspended that overrun", changes)
	}
	changes := p.Advance(at(20))
	check(t, p)
	if !cmp.Equal(numbers(changes.Stopped), []int{1}) ||
		!cmp.Equal(numbers(changes.Started), []int{5}) {
		t.Errorf("at 20 s: %+v, want that 1 ends for 5", changes)
	}
	if free := p.Free(at(20), at(21)); free != give(0, 0) {
		t.Errorf("at 20 s: %+v is free", free)
	}
	p.Release(attempt(5))
	p.Release(attempt(4))
	if changes := p.Advance(at(30)); len(changes.Resumed) != 2 {
		t.Errorf("at 30 s: %+v, want the others to go on", changes)
	}
	check(t, p)
}

// A suspended one needs no more memory to go on than it keeps.
func TestWhatIsSuspendedGoesOnWithItsMemory(t *testing.T) {
	p := New(Config{Total: give(4, 4)})
	put(t, p, 0, task(1, ClassVarTime, 0, 0, 10).gets(give(4, 3)))
	put(t, p, 0, task(2, ClassFixTime, 0, 10, 60).gets(give(4, 1)))
	p.Advance(at(10))
	p.Release(attempt(2))
	if changes := p.Advance(at(20)); !cmp.Equal(numbers(changes.Resumed), []int{1}) {
		t.Errorf("%+v, want it to go on when the promise has ended early", changes)
	}
	check(t, p)
}

// "If that is not enough, a deadline commitment moves to where it can still be met, and one
// that cannot move is lost": here nobody called for long.
func TestADeadlineMovesToWhereItCanBeMet(t *testing.T) {
	for deadline, want := range map[int]int{70: 60, 69: -1} {
		p := New(Config{Total: cores(4)})
		put(t, p, 0, task(1, ClassDeadline, 4, 10, 20).with(func(c *Commitment) {
			c.Deadline = at(deadline)
		}))
		put(t, p, 0, task(2, ClassFixTime, 4, 20, 60))
		changes := p.Advance(at(25))
		wantStarts(t, p, []int{want}, 1)
		if (len(changes.Lost) > 0) != (want < 0) || !cmp.Equal(numbers(changes.Started), []int{2}) {
			t.Errorf("deadline %d s: %+v", deadline, changes)
		}
	}
}

// A deadline yields only where it can still be met: behind what was promised to others, too.
func TestADeadlineYieldsOnlyWhereItHasAPlace(t *testing.T) {
	for until, lost := range map[int][]int{200: nil, 295: {9}} {
		p := New(Config{Total: cores(8)})
		put(t, p, 0, due(1, 0, cores(6), 300))
		put(t, p, 0, task(9, ClassFixTime, 2, 10, 20))
		put(t, p, 0, task(2, ClassFixTime, 8, 100, until))
		p.SetOutage(cores(2), at(50))
		p.Advance(at(5))
		changes := p.Advance(at(10))
		check(t, p)
		if !cmp.Equal(numbers(changes.Lost), lost) || (len(changes.Suspended) == 0) != (lost != nil) {
			t.Errorf("taken until %d s: %+v", until, changes)
		}
	}
}
