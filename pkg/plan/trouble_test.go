package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func awaits(d draft) draft { return d.with(func(c *Commitment) { c.AwaitsData = true }) }

// Without backfilling no loan overtakes the first that waits; else the next that fits borrows.
func TestWithoutBackfillingNobodyBorrowsOutOfTurn(t *testing.T) {
	for backfill, want := range map[grid.Backfill][]int{
		grid.BackfillConservative: {3}, grid.BackfillEASY: {3}, grid.BackfillNone: nil,
	} {
		p := New(Config{Total: give(4, 4), Backfill: backfill})
		put(t, p, 0, awaits(task(1, ClassFixTime, 0, 10, 60)).gets(give(4, 3)))
		put(t, p, 0, task(2, ClassVarTime, 0, 60, 80).gets(give(4, 2)))
		put(t, p, 0, task(3, ClassVarTime, 0, 80, 99).gets(give(4, 1)))
		if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Started), want) {
			t.Errorf("%s: started %v, want %v", backfill, numbers(changes.Started), want)
		}
		check(t, p)
	}
}

// One whose inputs are late keeps its place up to its deadline and no longer: then it is lost.
// One of best effort waits on while nobody else needs the place, and is never lost.
func TestHowLongAPlaceWaitsForInputs(t *testing.T) {
	deadline := func(n int) func(*Commitment) { return func(c *Commitment) { c.Deadline = at(n) } }
	for name, c := range map[string]struct {
		late draft
		lost int // -1: never
	}{
		"fixed":               {task(1, ClassFixTime, 4, 10, 30), 30},
		"deadline":            {task(1, ClassDeadline, 4, 10, 30).with(deadline(45)), 45},
		"no time to spare":    {task(1, ClassDeadline, 4, 10, 30).with(deadline(30)), 30},
		"best effort":         {task(1, ClassVarTime, 4, 10, 30), -1},
		"best effort, wanted": {task(1, ClassVarTime, 4, 10, 30).with(deadline(45)), -1},
	} {
		p := New(Config{Total: cores(4)})
		put(t, p, 0, awaits(c.late))
		lost := -1
		for second := 10; second < 100 && lost < 0; second++ {
			if changes := p.Advance(at(second)); len(changes.Lost) > 0 {
				lost = second
			}
			check(t, p)
		}
		if lost != c.lost {
			t.Errorf("%s: lost at %d s, want %d", name, lost, c.lost)
		}
		if c.lost < 0 {
			p.Ready(at(100), attempt(1))
			if k, _ := p.Commitment(attempt(1)); !k.Running || !k.End.Equal(at(120)) {
				t.Errorf("%s: %+v, want a run of 20 s", name, k)
			}
		}
		check(t, p)
	}
}

// A loan is over when nothing is missing any longer: then the borrower is one like others, and
// only a promise has it suspended.
func TestALoanIsOverWhenNothingIsMissing(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, awaits(task(1, ClassVarTime, 4, 10, 60)))
	put(t, p, 0, task(2, ClassVarTime, 4, 60, 90))
	if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Started), []int{2}) {
		t.Fatalf("%+v, want a loan", changes)
	}
	borrows := func(want bool) {
		t.Helper()
		if c, _ := p.Commitment(attempt(2)); c.Borrows != want || !c.Running || c.Suspended {
			t.Errorf("%+v, want borrows %t", c, want)
		}
	}
	p.Advance(at(15))
	borrows(true)
	p.Release(attempt(1))
	p.Advance(at(20))
	borrows(false)
	check(t, p)
}

// A crash leaves loans and suspended ones behind: they take more than there is, which is no
// reason to allow the next ones more than the owner gives.
func TestRestoreAllowsNoMoreForLoans(t *testing.T) {
	p := New(Config{Total: give(4, 8)})
	put(t, p, 0, awaits(task(1, ClassFixTime, 4, 10, 60)))
	put(t, p, 0, task(2, ClassVarTime, 4, 60, 90))
	p.Advance(at(10))
	restored := func() {
		t.Helper()
		for _, now := range []int{15, 20} {
			r := Restore(p.config, at(now), p.Commitments())
			check(t, r)
			if r.site.ceiling != p.total() {
				t.Errorf("the ceiling is %+v", r.site.ceiling)
			}
			if diff := cmp.Diff(p.Commitments(), r.Commitments()); diff != "" {
				t.Errorf("-before +after:\n%s", diff)
			}
		}
	}
	restored()
	p.Ready(at(15), attempt(1))
	if changes := p.Advance(at(15)); !cmp.Equal(numbers(changes.Suspended), []int{2}) {
		t.Fatalf("%+v, want the borrower suspended", changes)
	}
	restored()
}

// An outage is felt until it was said to end, but not beyond the failure horizon; one that was
// to end before now is none.
func TestHowLongAnOutageIsFelt(t *testing.T) {
	for told, want := range map[time.Time]int{{}: 50, at(30): 30, at(50): 50, at(70): 50} {
		p := New(Config{Total: cores(4), Horizon: secs(50)})
		p.SetOutage(cores(3), told)
		p.Advance(at(0))
		check(t, p)
		if q := quote(t, p, 0, ask(2, 10)); !q.Start.Equal(at(want)) {
			t.Errorf("told %v: something begins at %v, want %d s", told, q.Start.Sub(start), want)
		}
	}
	p := New(Config{Total: cores(4)})
	p.SetOutage(cores(3), at(-1))
	p.Advance(at(0))
	if q := quote(t, p, 0, ask(2, 10)); !q.Start.Equal(at(0)) {
		t.Errorf("an outage that is over: %+v", q)
	}
}

// What overruns in an outage goes on as if there were none: "running entries stay". In a
// reservation, which has no outage, it yields as ever.
func TestOverrunInAnOutage(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassVarTime, 4, 0, 50))
	p.SetOutage(cores(3), at(90))
	p.Advance(at(20))
	if changes := p.Advance(at(50)); len(changes.Suspended) > 0 || len(changes.Stopped) > 0 {
		t.Errorf("%+v, want that it goes on", changes)
	}
	check(t, p)
	if c, _ := p.Commitment(attempt(1)); !c.Overran || !c.runs() {
		t.Errorf("%+v", c)
	}
	put(t, p, 50, task(2, ClassFixTime, 1, 95, 99))
	for second := 51; second <= 96; second++ {
		p.Advance(at(second))
		check(t, p)
	}
	if c, _ := p.Commitment(attempt(1)); !c.Suspended {
		t.Errorf("%+v, want that it yields to a promise behind the outage", c)
	}
}

// suspended is a plan in which task 1 waits since second 10, with 40 s left and a deadline.
func suspended(t *testing.T, deadline int) *Planner {
	t.Helper()
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassDeadline, 3, 0, 50).with(func(c *Commitment) {
		c.Deadline = at(deadline)
	}))
	put(t, p, 0, task(2, ClassFixTime, 1, 10, 40))
	p.SetOutage(cores(1), at(45))
	p.Advance(at(0))
	if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Suspended), []int{1}) {
		t.Fatalf("%+v, want that the deadline waits", changes)
	}
	return p
}

// A promise that cannot go on in time any longer is best effort from then on: it goes on when
// it can, and is not lost.
func TestWhatIsSuspendedIsNotLost(t *testing.T) {
	p := suspended(t, 80)
	wantStarts(t, p, []int{40}, 1) // 40 s are left
	p.SetOutage(cores(2), at(70))
	changes := p.Advance(at(20))
	c, there := p.Commitment(attempt(1))
	if len(changes.Lost) > 0 || !there || !c.Overran || c.Left != secs(40) {
		t.Errorf("%+v became %+v", changes, c)
	}
	wantStarts(t, p, []int{70}, 1)
	if changes = p.Advance(at(70)); !cmp.Equal(numbers(changes.Resumed), []int{1}) {
		t.Errorf("%+v, want it to go on", changes)
	}
	check(t, p)
}

// An offer that is not firm yields to what overruns, although it holds its place, and is
// withdrawn; one behind that stays.
func TestASoftHoldYieldsToAnOverrun(t *testing.T) {
	p := New(Config{Total: cores(4), HoldAll: true})
	put(t, p, 0, task(1, ClassVarTime, 4, 0, 50))
	near, far := ask(4, 10), ask(4, 20)
	far.Window.NotBefore = at(70)
	for _, a := range []Ask{near, far} {
		if _, err := p.Open(at(0), a, quote(t, p, 0, a), false, secs(60)); err != nil {
			t.Fatal(err)
		}
	}
	changes := p.Advance(at(50))
	check(t, p)
	if len(changes.Withdrawn) != 1 || changes.Withdrawn[0].Number != 1 || len(p.Offers()) != 1 {
		t.Errorf("%+v, open %+v, want the first withdrawn", changes, p.Offers())
	}
	if c, _ := p.Commitment(attempt(1)); !c.Overran || !c.runs() {
		t.Errorf("%+v, want that it goes on", c)
	}
}

// The own place of one that borrows does not hinder it.
func TestABorrowerLeavesItsOwnPlace(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, awaits(task(1, ClassFixTime, 4, 10, 30)))
	put(t, p, 0, task(2, ClassVarTime, 4, 30, 60))
	if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Started), []int{2}) {
		t.Errorf("%+v, want a loan up to 40 s", changes)
	}
	check(t, p)
}

// What is committed while another is late may borrow its place immediately.
func TestANewOneBorrows(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, awaits(task(1, ClassFixTime, 4, 10, 60)))
	p.Advance(at(10))
	put(t, p, 20, task(2, ClassVarTime, 4, 60, 70))
	if changes := p.Advance(at(20)); !cmp.Equal(numbers(changes.Started), []int{2}) {
		t.Errorf("%+v, want a loan", changes)
	}
	check(t, p)
}

// What finds no place in its reservation any more is lost, and said to be.
func TestAReservationThatIsTooShortLosesTheLast(t *testing.T) {
	p := New(Config{Total: cores(8)})
	within := func(c *Commitment) { c.Within = attempt(1) }
	put(t, p, 0, task(1, ClassFixTime, 4, 30, 60).with(func(c *Commitment) { c.Holds = true }))
	put(t, p, 0, task(2, ClassVarTime, 4, 30, 40).with(within))
	put(t, p, 0, task(3, ClassVarTime, 4, 40, 59).with(within)) // a second is left, no more
	p.Advance(at(30))
	if changes := p.Advance(at(40)); !cmp.Equal(numbers(changes.Lost), []int{3}) {
		t.Errorf("%+v, want that 3 is lost to the overrun of 2, an eighth of 10 s", changes)
	}
	check(t, p)
	if _, there := p.Commitment(attempt(3)); there {
		t.Error("it is there still")
	}
}

// What was suspended while its deadline became too near, since nobody called for long, goes on as
// best effort; what would still be in time keeps its promise.
func TestWhatMissedItsTimeWhileSuspendedGoesOn(t *testing.T) {
	for now, overran := range map[int]bool{160: false, 161: true, 500: true} {
		p := suspended(t, 200)
		changes := p.Advance(at(now))
		c, _ := p.Commitment(attempt(1))
		if !cmp.Equal(numbers(changes.Resumed), []int{1}) || len(changes.Lost) > 0 ||
			c.Overran != overran || !c.End.Equal(at(now+40)) {
			t.Errorf("%d s: %+v became %+v, overran wanted: %t", now, changes, c, overran)
		}
		check(t, p)
	}
}

// Best effort whose inputs come when there is no capacity for it waits on and is not lost.
func TestLateBestEffortWaitsForCapacity(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, awaits(task(1, ClassVarTime, 4, 10, 60)))
	p.Advance(at(10))
	p.SetOutage(cores(2), at(80))
	p.Advance(at(15))
	p.Ready(at(20), attempt(1))
	changes := p.Advance(at(20))
	if c, there := p.Commitment(attempt(1)); !there || c.Running || len(changes.Lost) > 0 {
		t.Errorf("%+v: %+v, want it to wait for the end of the outage", changes, c)
	}
	check(t, p)
	if changes = p.Advance(at(80)); !cmp.Equal(numbers(changes.Started), []int{1}) {
		t.Errorf("%+v, want its start", changes)
	}
	check(t, p)
}

// A place whose inputs are late goes on as long as a run that takes longer than expected, an
// eighth of what it had, and not up to a far deadline.
func TestAPlaceForLateInputsGrowsByTheEighth(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, awaits(task(1, ClassDeadline, 4, 10, 90).with(func(c *Commitment) {
		c.Deadline = at(900)
	})))
	p.Advance(at(10))
	p.Advance(at(90))
	if c, _ := p.Commitment(attempt(1)); !c.Late || !c.End.Equal(at(100)) {
		t.Errorf("%+v, want a place up to 100 s", c)
	}
	check(t, p)
}
