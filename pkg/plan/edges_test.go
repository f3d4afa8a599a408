package plan

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A share is so many percent of what the owner gives, rounded down, however much that is.
func TestAShareIsRoundedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "total")
		percent := rapid.IntRange(1, 99).Draw(t, "percent")
		want := new(big.Int).Mul(big.NewInt(v), big.NewInt(int64(percent)))
		want.Quo(want, big.NewInt(100))
		if got := part(cores(v), percent).MilliCPUs; got != want.Int64() {
			t.Fatalf("%d percent of %d = %d, want %d", percent, v, got, want)
		}
	})
}

// The waiting are moved up and starts are kept while there is something to keep: each kind
// alone makes Next matter.
func TestEachPromiseMatters(t *testing.T) {
	holds := func(c *Commitment) { c.Holds = true }
	for name, c := range map[string]struct {
		fill func(*Planner)
		want bool
	}{
		"nothing": {func(*Planner) {}, false},
		"a running task": {
			func(p *Planner) { put(t, p, 0, task(1, ClassVarTime, 1, 0, 9)) }, false,
		},
		"what waits": {
			func(p *Planner) { put(t, p, 0, task(1, ClassVarTime, 1, 5, 9)) }, true,
		},
		"a fixed start": {
			func(p *Planner) { put(t, p, 0, task(1, ClassFixTime, 1, 5, 9)) }, true,
		},
		"an open reservation": {
			func(p *Planner) { put(t, p, 0, task(1, ClassFixTime, 1, 0, 9).with(holds)) }, true,
		},
		"a soft offer": {func(p *Planner) { openOne(t, p, ask(1, 5), false) }, false},
		"a firm offer": {func(p *Planner) { openOne(t, p, ask(1, 5), true) }, true},
	} {
		p := New(Config{Total: cores(4)})
		c.fill(p)
		if got := p.Promises(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func openOne(t *testing.T, p *Planner, a Ask, firm bool) Offer {
	t.Helper()
	o, err := p.Open(at(0), a, quote(t, p, 0, a), firm, secs(50))
	if err != nil {
		t.Fatal(err)
	}
	check(t, p)
	return o
}

// "An open offer to the same submitter for the same job is replaced", the only one there is,
// too; if the new one cannot be, the old one stays as it was.
func TestAnOfferReplacesTheOneBefore(t *testing.T) {
	p := New(Config{Total: cores(4), MaxOffers: 1})
	openOne(t, p, ask(3, 10), true)
	before := p.State()
	too := ask(2, 10)
	if _, err := p.Open(at(0), too, Quote{
		Start: at(0), End: at(10), Give: cores(5), Tasks: 1,
	}, true, secs(50)); !errors.Is(err, ErrFull) {
		t.Errorf("an offer of more than there is: %v", err)
	}
	if diff := cmp.Diff(before, p.State()); diff != "" {
		t.Errorf("refused, it changed (-before +after):\n%s", diff)
	}
	second := openOne(t, p, ask(1, 10), true)
	if got := p.Offers(); len(got) != 1 || got[0] != second || p.Free(at(0), at(10)) != cores(3) {
		t.Errorf("%+v is open, %+v free", got, p.Free(at(0), at(10)))
	}
}

// "It expires at the latest when its place is over", if it holds one.
func TestAHoldEndsWithItsPlace(t *testing.T) {
	for firm, want := range map[bool]int{true: 10, false: 50} {
		p := New(Config{Total: cores(4)})
		if o := openOne(t, p, ask(1, 10), firm); !o.Expires.Equal(at(want)) {
			t.Errorf("firm %t: expires at %v, want %d s", firm, o.Expires.Sub(start), want)
		}
		p.Withdraw(1)
		if p.Promises() {
			t.Errorf("firm %t: withdrawn, it is a promise still", firm)
		}
	}
}

// What an offer held is given to those that wait when it expires, is withdrawn or replaced.
func TestWhoWaitsGetsWhatAnOfferHeld(t *testing.T) {
	for name, end := range map[string]func(*Planner){
		"expires":   func(*Planner) {},
		"withdrawn": func(p *Planner) { p.Withdraw(1) },
		"replaced": func(p *Planner) {
			a := ask(4, 100)
			a.Window.NotBefore = at(200)
			q := Quote{Start: at(200), End: at(300), Give: cores(4), Tasks: 1}
			if _, err := p.Open(at(50), a, q, true, secs(10)); err != nil {
				t.Error(err)
			}
		},
	} {
		p := New(Config{Total: cores(4)})
		openOne(t, p, ask(4, 100), true)
		put(t, p, 0, task(1, ClassVarTime, 4, 100, 110))
		p.Advance(at(0))
		end(p)
		if changes := p.Advance(at(50)); !cmp.Equal(numbers(changes.Started), []int{1}) {
			t.Errorf("%s: %+v, want that 1 begins", name, changes)
		}
		check(t, p)
	}
}

// A quote guarantees a latest start: to a deadline what the deadline allows; to a fixed time
// its start; to best effort its start where nothing is put back, whatever its own deadline.
func TestGuaranteedStarts(t *testing.T) {
	for _, c := range []struct {
		class    Class
		backfill grid.Backfill
		want     int
	}{
		{ClassDeadline, grid.BackfillConservative, 90},
		{ClassDeadline, grid.BackfillEASY, 90},
		{ClassFixTime, grid.BackfillConservative, 5},
		{ClassFixTime, grid.BackfillEASY, 5},
		{ClassVarTime, grid.BackfillConservative, 5},
		{ClassVarTime, grid.BackfillEASY, -1},
		{ClassVarTime, grid.BackfillNone, -1},
	} {
		p := New(Config{Total: cores(4), Backfill: c.backfill})
		a := ask(1, 10)
		a.Class, a.At, a.Window = c.class, at(5), grid.Window{NotBefore: at(5), Deadline: at(100)}
		q := quote(t, p, 0, a)
		if want := at(c.want); c.want >= 0 && !q.LatestStart.Equal(want) ||
			c.want < 0 && !q.LatestStart.IsZero() {
			t.Errorf("class %d, %s: %v, want %d", c.class, c.backfill, q.LatestStart, c.want)
		}
	}
	p := New(Config{Total: cores(4)})
	a := ask(1, 10)
	a.Class, a.At, a.Window.NotBefore = ClassFixTime, at(80), at(5)
	for class, want := range map[Class]int{ClassFixTime: 5, ClassDeadline: 5, ClassVarTime: 5} {
		a.Class = class // the earliest that could be promised, whatever was asked for
		if q, reason := p.EarliestStart(at(0), a); reason != grid.ReasonNone ||
			!q.Start.Equal(at(want)) || !q.LatestStart.Equal(at(want)) {
			t.Errorf("class %d: %+v, %v", class, q, reason)
		}
	}
}

// Computation is soft: a task that asks for more may get 1 MFLOP/s, but not less.
func TestTheLeastComputation(t *testing.T) {
	p := New(Config{Total: grid.Resources{MilliCPUs: 4, MFLOPS: 10}})
	put(t, p, 0, task(1, ClassFixTime, 1, 0, 10).with(func(c *Commitment) { c.Give.MFLOPS = 10 }))
	put(t, p, 0, task(2, ClassFixTime, 1, 10, 1000).with(func(c *Commitment) { c.Give.MFLOPS = 9 }))
	a := ask(1, 0)
	a.Need.MFLOPS = 10
	a.Rate = func(free grid.Resources) (int64, time.Duration) {
		return free.MFLOPS, secs(100) / time.Duration(free.MFLOPS)
	}
	q := quote(t, p, 0, a)
	want := Quote{
		Start: at(10), End: at(110), Run: secs(100), Tasks: 1, LatestStart: at(10),
		Give: grid.Resources{MilliCPUs: 1, MFLOPS: 1}, Free: grid.Resources{MilliCPUs: 3, MFLOPS: 1},
	}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An own offer's hold counts as free for its asker, in the site and in the shares that it
// counts in; the other shares hold for it as for all.
func TestAnOwnHoldIsFreeInItsShares(t *testing.T) {
	p := New(Config{Total: cores(10), Submitter: 50, Project: 30})
	a := ask(3, 10)
	a.Project, a.NowOnly = "p", true
	o := openOne(t, p, a, true)
	for _, c := range []struct {
		offer   uint64
		project string
		cores   int64
		want    grid.Reason
	}{
		{0, "p", 3, grid.ReasonQuota},
		{0, "", 3, grid.ReasonQuota},
		{0, "", 2, grid.ReasonNone},
		{o.Number, "p", 3, grid.ReasonNone},
		{o.Number, "p", 4, grid.ReasonQuota},
		{o.Number, "", 5, grid.ReasonNone},
		{o.Number, "", 6, grid.ReasonQuota},
		{o.Number, "q", 3, grid.ReasonNone},
	} {
		a.Offer, a.Project, a.Need = c.offer, c.project, cores(c.cores)
		if _, reason := p.Quote(at(0), a); reason != c.want {
			t.Errorf("%+v: %v", c, reason)
		}
	}
}

// What is bound to a reservation counts in no share: the reservation does.
func TestWhatIsBoundCountsInNoShare(t *testing.T) {
	p := New(Config{Total: cores(10), Submitter: 50})
	put(t, p, 0, task(1, ClassFixTime, 5, 0, 60).with(func(c *Commitment) { c.Holds = true }))
	for n := 2; n <= 6; n++ {
		put(t, p, 0, task(n, ClassVarTime, 1, 0, 60).with(func(c *Commitment) { c.Within = attempt(1) }))
	}
	a := ask(1, 10)
	a.Within = attempt(1)
	if _, reason := p.Quote(at(0), a); reason == grid.ReasonQuota {
		t.Errorf("in a full reservation: %v", reason)
	}
	p.Release(attempt(6))
	if q := quote(t, p, 0, a); !q.Start.Equal(at(0)) {
		t.Errorf("where one has left: %+v", q)
	}
}

// Years from 1700 on and before 2250 can be planned.
func TestYearsThatCanBePlanned(t *testing.T) {
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		start, end time.Time
		want       error
	}{
		{year(1700), year(2249), nil},
		{year(1700).Add(-1), year(2249), capacity.ErrInvalid},
		{year(2240), year(2250).Add(-1), nil},
		{year(2240), year(2250), capacity.ErrInvalid},
	} {
		p := New(Config{Total: cores(4)})
		d := task(1, ClassVarTime, 1, 0, 0).with(func(k *Commitment) { k.Start, k.End = c.start, c.end })
		if err := p.Commit(at(0), Commitment(d), 0); !errors.Is(err, c.want) {
			t.Errorf("%v to %v: %v", c.start, c.end, err)
		}
		check(t, p)
	}
}

// Half of 146 years is the longest run, and one of no time takes a nanosecond.
func TestTheLongestAndTheShortestRun(t *testing.T) {
	p := New(Config{Total: cores(4), Promised: 50})
	for run, want := range map[time.Duration]time.Duration{
		longest: longest, longest + 1: 0, 1: 1, 0: 1, -1: 1, 2: 2,
	} {
		a := ask(1, 0)
		a.Class, a.Window.Deadline = ClassDeadline, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
		a.Rate = func(grid.Resources) (int64, time.Duration) { return 0, run }
		q, reason := p.Quote(at(0), a)
		if q.Run != want || q.End.Sub(q.Start) != want || (reason == grid.ReasonNone) != (want > 0) {
			t.Errorf("%d ns: %+v, %v", run, q, reason)
		}
	}
}

// The shortest run fits into the shortest gap: nothing more is looked at than it takes.
func TestANanosecondIsAPlace(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassFixTime, 4, 0, 20).with(func(c *Commitment) { c.Start = at(0).Add(1) }))
	a := ask(4, 0)
	a.Rate = func(grid.Resources) (int64, time.Duration) { return 0, 1 }
	if q := quote(t, p, 0, a); !q.Start.Equal(at(0)) || q.Run != 1 {
		t.Errorf("%+v, want it before the other", q)
	}
	a.Rate = func(grid.Resources) (int64, time.Duration) { return 0, 2 }
	if q := quote(t, p, 0, a); !q.Start.Equal(at(20)) {
		t.Errorf("%+v, want it behind the other", q)
	}
}

// A part of the run times is known to be too much: none if that is less than 0, and never more
// than MaxOverestimate.
func TestHowMuchIsOverestimated(t *testing.T) {
	for part, want := range map[float64]int{-1: 90, 0: 90, .5: 95, MaxOverestimate: 99, 5: 99} {
		p := New(Config{Total: cores(4), Overestimate: part})
		a := ask(4, 10)
		a.Class, a.Window.Deadline = ClassDeadline, at(100)
		if q := quote(t, p, 0, a); !q.LatestStart.Equal(at(want)) {
			t.Errorf("%v: latest start %v, want %d s", part, q.LatestStart.Sub(start), want)
		}
	}
}

// A deadline of best effort is its own affair: it may begin as late as any, and only up to it.
func TestOnlyPromisesReachBeyondADeadline(t *testing.T) {
	p := New(Config{Total: cores(4), Overestimate: .5})
	put(t, p, 0, task(1, ClassFixTime, 4, 0, 95))
	a := ask(4, 10)
	a.Window.Deadline = at(100)
	if q, reason := p.Quote(at(0), a); reason != grid.ReasonWindow {
		t.Errorf("best effort: %+v, %v", q, reason)
	}
	a.Class = ClassDeadline
	if q := quote(t, p, 0, a); !q.Start.Equal(at(95)) {
		t.Errorf("a promise: %+v", q)
	}
}

// The earliest start is the first with capacity, whatever start was named; a quote for a named
// start is for that one or none.
func TestOnlyANamedStartIsTheOnlyOne(t *testing.T) {
	p := New(Config{Total: cores(4), Promised: 100})
	put(t, p, 0, task(1, ClassFixTime, 4, 0, 95))
	a := ask(4, 10)
	a.Class, a.At = ClassFixTime, at(50)
	q, reason := p.EarliestStart(at(0), a)
	if reason != grid.ReasonNone || !q.Start.Equal(at(95)) || !q.LatestStart.Equal(at(95)) {
		t.Errorf("%+v, %v, want the first start with capacity", q, reason)
	}
	for second, want := range map[int]grid.Reason{
		94: grid.ReasonWindow, 95: grid.ReasonNone, 96: grid.ReasonNone,
	} {
		a.At = at(second)
		if q, got := p.Quote(at(0), a); got != want || got == grid.ReasonNone && !q.Start.Equal(a.At) {
			t.Errorf("at %d s: %+v, %v, want %v", second, q, got, want)
		}
	}
}

// Capacity that came free far ahead does not hide what comes free before.
func TestWhatComesFreeBeforeIsSeen(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassVarTime, 4, 0, 10))
	put(t, p, 0, task(2, ClassVarTime, 4, 10, 20))
	put(t, p, 0, task(3, ClassFixTime, 4, 500, 510))
	p.Release(attempt(3))
	p.Advance(at(1))
	p.Release(attempt(1))
	if changes := p.Advance(at(2)); !cmp.Equal(numbers(changes.Started), []int{2}) {
		t.Errorf("%+v, want that 2 begins", changes)
	}
	put(t, p, 2, task(4, ClassVarTime, 4, 12, 20))
	put(t, p, 2, task(5, ClassFixTime, 4, 500, 510))
	p.Release(attempt(2)) // both before the next Advance
	p.Release(attempt(5))
	if changes := p.Advance(at(3)); !cmp.Equal(numbers(changes.Started), []int{4}) {
		t.Errorf("%+v, want that 4 begins", changes)
	}
}

// What says nothing new changes nothing.
func TestWhatSaysNothingNew(t *testing.T) {
	p := New(Config{Total: cores(4), Policy: grid.PolicyEDF})
	put(t, p, 0, task(1, ClassVarTime, 4, 0, 50))
	put(t, p, 0, task(2, ClassVarTime, 4, 50, 60))
	p.Advance(at(0))
	before := p.State()
	p.SetPolicy(grid.PolicyEDF, grid.BackfillConservative)
	p.SetOutage(grid.Resources{}, time.Time{})
	p.Ready(at(0), attempt(1)) // waits for nothing
	p.Ready(at(0), attempt(9)) // is not there
	p.Withdraw(7)
	if n := p.WithdrawJob("none"); n != 0 {
		t.Errorf("withdrew %d", n)
	}
	if _, there := p.Release(attempt(9)); there {
		t.Error("released what is not there")
	}
	if diff := cmp.Diff(before, p.State()); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

// Check notices what the plan does not know of.
func TestCheckNotices(t *testing.T) {
	for name, spoil := range map[string]func(*Planner){
		"taken on the site": func(p *Planner) { p.take(p.site.line, span{cores(1), at(0), at(9)}) },
		"taken of a share": func(p *Planner) {
			p.take(p.limits[limitKey{limitSubmitter, "s"}].line, span{cores(1), at(0), at(9)})
		},
		"a share of nobody":  func(p *Planner) { p.limits[limitKey{limitProject, "x"}] = &limit{} },
		"one late too many":  func(p *Planner) { p.late++ },
		"one firm too many":  func(p *Planner) { p.firm++ },
		"nothing due":        func(p *Planner) { p.unfile(p.entries[attempt(1)]) },
		"more than there is": func(p *Planner) { p.site.ceiling, p.config.Total = cores(1), cores(1) },
		"taken in a room": func(p *Planner) {
			p.take(p.rooms[attempt(2)].line, span{cores(1), at(30), at(31)})
		},
	} {
		p := New(Config{Total: cores(4), Submitter: 90})
		put(t, p, 0, task(1, ClassVarTime, 2, 0, 50))
		put(t, p, 0, task(2, ClassFixTime, 1, 30, 60).with(func(c *Commitment) { c.Holds = true }))
		put(t, p, 0, task(3, ClassVarTime, 1, 40, 50).with(func(c *Commitment) { c.Within = attempt(2) }))
		spoil(p)
		if err := p.Check(); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

// Inside a reservation those bound to it run in the order in which they came: priorities count
// on the site.
func TestPrioritiesCountOnTheSite(t *testing.T) {
	p := New(Config{Total: cores(8)})
	put(t, p, 0, task(1, ClassFixTime, 4, 30, 100).with(func(c *Commitment) { c.Holds = true }))
	for i, priority := range []int32{0, 9} {
		later := func(c *Commitment) { c.Priority, c.Within = priority, attempt(1) }
		put(t, p, i, task(2+i, ClassVarTime, 4, 30+10*i, 40+10*i).with(later))
		there := func(c *Commitment) { c.Priority, c.NotBefore = priority, at(30) }
		put(t, p, i, task(4+i, ClassVarTime, 4, 30+10*i, 40+10*i).with(there))
	}
	p.SetPolicy(grid.PolicyFCFS, grid.BackfillEASY)
	p.SetPolicy(grid.PolicyFCFS, grid.BackfillConservative)
	p.Advance(at(5))
	wantStarts(t, p, []int{30, 40, 40, 30}, 2, 3, 4, 5)
}

// Each resource is short from one unit on, and what is not needed is not, whatever there is.
func TestWhatIsShort(t *testing.T) {
	for reason, of := range map[grid.Reason]func(int64) grid.Resources{
		grid.ReasonCPUs:        func(n int64) grid.Resources { return grid.Resources{MilliCPUs: n} },
		grid.ReasonMemory:      func(n int64) grid.Resources { return grid.Resources{MemoryBytes: n} },
		grid.ReasonDisk:        func(n int64) grid.Resources { return grid.Resources{DiskBytes: n} },
		grid.ReasonBandwidth:   func(n int64) grid.Resources { return grid.Resources{NetBps: n} },
		grid.ReasonComputation: func(n int64) grid.Resources { return grid.Resources{MFLOPS: n} },
	} {
		for have, want := range map[int64]grid.Reason{-1: reason, 0: reason, 1: grid.ReasonWindow} {
			if got := shortage(of(1), of(have)); got != want {
				t.Errorf("1 of %d: %v, want %v", have, got, want)
			}
			if got := shortage(of(0), of(have)); got != grid.ReasonWindow {
				t.Errorf("none of %d: %v", have, got)
			}
		}
	}
}

// A reservation has no inputs to wait for.
func TestAReservationAwaitsNoData(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassFixTime, 4, 10, 20).with(func(c *Commitment) {
		c.Holds, c.AwaitsData = true, true
	}))
	if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Started), []int{1}) {
		t.Errorf("%+v, want that it begins", changes)
	}
	check(t, p)
}

// What a caller says of the course of a commitment, which only the plan can know, does not count.
func TestACommitmentBeginsItsCourse(t *testing.T) {
	p := New(Config{Total: cores(4)})
	c := Commitment(task(1, ClassVarTime, 1, 10, 20))
	c.Suspended, c.Overran, c.Stopped, c.Late, c.Borrows = true, true, true, true, true
	c.Left, c.Running, c.Made = secs(5), true, at(-9)
	if err := p.Commit(at(0), c, 0); err != nil {
		t.Fatal(err)
	}
	got, _ := p.Commitment(attempt(1))
	c.Suspended, c.Overran, c.Stopped, c.Late, c.Borrows = false, false, false, false, false
	c.Left, c.Running, c.Made = 0, false, at(0)
	if diff := cmp.Diff(c, got); diff != "" {
		t.Errorf("-as it was asked for +as it is:\n%s", diff)
	}
	check(t, p)
}

// An offer of what no quote gives holds nothing, and the one that it was to replace stands.
func TestOnlyWhatWasQuotedIsHeld(t *testing.T) {
	p := New(Config{Total: cores(4)})
	a := ask(1, 10)
	good := quote(t, p, 0, a)
	if _, err := p.Open(at(0), a, good, true, secs(60)); err != nil {
		t.Fatal(err)
	}
	before := p.State()
	for name, change := range map[string]func(*Quote){
		"less than nothing": func(q *Quote) { q.Give = cores(-1) },
		"an empty place":    func(q *Quote) { q.End = q.Start },
		"a place backwards": func(q *Quote) { q.End = q.Start.Add(-1) },
		"the year 1600":     func(q *Quote) { q.Start = q.Start.AddDate(-426, 0, 0) },
		"the year 2300":     func(q *Quote) { q.End = q.End.AddDate(274, 0, 0) },
		"too much":          func(q *Quote) { q.Give = cores(5) },
	} {
		q := good
		change(&q)
		if o, err := p.Open(at(0), a, q, true, secs(60)); err == nil {
			t.Errorf("%s: held as %+v", name, o)
		}
		if diff := cmp.Diff(before, p.State()); diff != "" {
			t.Errorf("%s: -before +after:\n%s", name, diff)
		}
		check(t, p)
	}
}
