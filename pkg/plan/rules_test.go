package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func memory(n int64, bytes int64) func(*Commitment) {
	return func(c *Commitment) { c.Give = grid.Resources{MilliCPUs: n, MemoryBytes: bytes} }
}

// At its end an attempt goes on while that disturbs nobody, up to what is promised to
// another, and then makes room as it allows.
func TestOverrunMakesRoomForPromises(t *testing.T) {
	for name, c := range map[string]struct {
		allows             grid.Overrun
		memory             int64
		suspended, stopped []int
	}{
		"is suspended":     {grid.OverrunSuspend, 1, []int{1}, nil},
		"is stopped":       {grid.OverrunStop, 1, nil, []int{1}},
		"memory is needed": {grid.OverrunSuspend, 3, nil, []int{1}},
	} {
		p := New(Config{Total: grid.Resources{MilliCPUs: 4, MemoryBytes: 4}})
		put(t, p, 0, task(1, ClassVarTime, 4, 0, 50).with(memory(4, c.memory)).with(func(k *Commitment) {
			k.Overrun = c.allows
		}))
		put(t, p, 0, task(2, ClassFixTime, 4, 53, 60).with(memory(4, 3)))
		p.Advance(at(50))
		if k, _ := p.Commitment(attempt(1)); !k.Overran || !k.End.Equal(at(53)) {
			t.Errorf("%s: %+v, want it to go on until the promise begins", name, k)
		}
		check(t, p)
		changes := p.Advance(at(53))
		check(t, p)
		if !cmp.Equal(numbers(changes.Started), []int{2}) ||
			!cmp.Equal(numbers(changes.Suspended), c.suspended) ||
			!cmp.Equal(numbers(changes.Stopped), c.stopped) {
			t.Errorf("%s: %+v", name, changes)
		}
		p.Release(attempt(2))
		changes = p.Advance(at(57))
		if !cmp.Equal(numbers(changes.Resumed), c.suspended) {
			t.Errorf("%s: %+v, want it to go on", name, changes)
		}
		if _, there := p.Release(attempt(1)); !there {
			t.Errorf("%s: it is gone before its release", name)
		}
		check(t, p)
		if got := p.Free(at(57), at(99)); got != p.total() {
			t.Errorf("%s: %+v is free at last", name, got)
		}
	}
}

// A suspended entry gives its bandwidth back with its cores, and takes both again.
func TestWhatStandsStillGivesItsBandwidthBack(t *testing.T) {
	net := func(n, bps int64) func(*Commitment) {
		return func(c *Commitment) { c.Give = grid.Resources{MilliCPUs: n, MemoryBytes: 1, NetBps: bps} }
	}
	p := New(Config{Total: grid.Resources{MilliCPUs: 4, MemoryBytes: 4, NetBps: 10}})
	put(t, p, 0, task(1, ClassVarTime, 2, 0, 50).with(net(2, 8)))
	put(t, p, 0, task(2, ClassFixTime, 2, 53, 60).with(net(2, 6))) // there would be cores for both
	p.Advance(at(50))
	changes := p.Advance(at(53))
	if !cmp.Equal(numbers(changes.Started), []int{2}) ||
		!cmp.Equal(numbers(changes.Suspended), []int{1}) {
		t.Fatalf("%+v, want the one that overran suspended", changes)
	}
	check(t, p)
	free := grid.Resources{MilliCPUs: 2, MemoryBytes: 2, NetBps: 4}
	if got := p.Free(at(53), at(54)); got != free {
		t.Errorf("%+v is free beside the other", got)
	}
	p.Release(attempt(2))
	if changes = p.Advance(at(57)); !cmp.Equal(numbers(changes.Resumed), []int{1}) {
		t.Errorf("%+v, want it to go on", changes)
	}
	if got := p.Free(at(57), at(57).Add(1)).NetBps; got != 2 {
		t.Errorf("%d bit/s are free, want 2", got)
	}
	check(t, p)
}

// One whose inputs are late lends its cores, but not the bandwidth over which they come.
func TestBandwidthIsNotLent(t *testing.T) {
	for bps, started := range map[int64][]int{4: {2}, 5: nil} {
		p := New(Config{Total: grid.Resources{MilliCPUs: 4, NetBps: 10}})
		late := func(c *Commitment) { c.Give.NetBps, c.AwaitsData = 6, true }
		put(t, p, 0, task(1, ClassFixTime, 4, 10, 60).with(late))
		put(t, p, 0, task(2, ClassVarTime, 4, 60, 70).with(func(c *Commitment) { c.Give.NetBps = bps }))
		if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Started), started) {
			t.Errorf("%d bit/s: started %v, want %v", bps, numbers(changes.Started), started)
		}
		check(t, p)
	}
}

// A firm offer whose time has come is stronger than what overran.
func TestOverrunMakesRoomForFirmOffers(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassVarTime, 4, 0, 50))
	a := ask(4, 10)
	o, err := p.Open(at(0), a, quote(t, p, 0, a), true, secs(500))
	if err != nil {
		t.Fatal(err)
	}
	if changes := p.Advance(at(50)); !cmp.Equal(numbers(changes.Suspended), []int{1}) {
		t.Errorf("%+v", changes)
	}
	if err := p.Commit(at(52), Commitment(task(2, ClassVarTime, 4, 50, 60)), o.Number); err != nil {
		t.Errorf("the offer was not kept: %v", err)
	}
	check(t, p)
}

// Three wait: A needs all, B fits beside the running one but is too long to end before A
// would begin, C is short. Conservative: C alone overtakes. EASY: nothing else. None:
// nobody.
func TestBackfilling(t *testing.T) {
	for _, c := range []struct {
		backfill grid.Backfill
		want     []int
	}{
		{grid.BackfillConservative, []int{100, 110, 0}},
		{grid.BackfillEASY, []int{100, 110, 0}},
		{grid.BackfillNone, []int{100, 110, 110}},
	} {
		p := New(Config{Total: cores(4), Backfill: c.backfill})
		put(t, p, 0, task(1, ClassVarTime, 2, 0, 100))
		for i, a := range []Ask{ask(4, 10), ask(2, 150), ask(2, 50)} {
			put(t, p, 0, draft(commitmentOf(i+2, a, quote(t, p, 0, a))))
			p.Advance(at(0))
		}
		wantStarts(t, p, c.want, 2, 3, 4)
	}
}

// EASY lets the last one begin now although the second is put back by that, which
// conservative backfilling does not; nor does it when it follows EASY.
func TestEASYDelaysAllButTheFirst(t *testing.T) {
	for backfill, want := range map[grid.Backfill][]int{
		grid.BackfillConservative: {100, 110, 140},
		grid.BackfillEASY:         {100, 130, 0},
	} {
		p := New(Config{Total: cores(8), Backfill: backfill})
		put(t, p, 0, task(1, ClassVarTime, 6, 0, 100))
		put(t, p, 0, task(2, ClassVarTime, 6, 100, 110)) // the first: leaves 2
		put(t, p, 0, task(3, ClassVarTime, 8, 110, 140))
		put(t, p, 0, task(4, ClassVarTime, 2, 140, 270)) // 130 s
		p.Advance(at(0))
		wantStarts(t, p, want, 2, 3, 4)
		p.SetPolicy(grid.PolicySJF, grid.BackfillConservative)
		p.Advance(at(0))
		wantStarts(t, p, want, 2, 3, 4)
	}
}

// What waits for its inputs keeps its place, whatever comes free before; where they are here it
// moves up.
func TestWhatAwaitsItsInputsDoesNotMoveUp(t *testing.T) {
	for _, backfill := range []grid.Backfill{
		grid.BackfillConservative, grid.BackfillEASY, grid.BackfillNone,
	} {
		for awaited, want := range map[bool][]int{true: {30, 40}, false: {10, 20}} {
			p := New(Config{Total: cores(4), Backfill: backfill})
			put(t, p, 0, task(1, ClassVarTime, 4, 0, 30))
			first := task(2, ClassVarTime, 4, 30, 40)
			first.AwaitsData = awaited
			second := task(3, ClassVarTime, 4, 40, 50)
			second.AwaitsData = awaited
			put(t, p, 0, first)
			put(t, p, 0, second)
			p.Advance(at(0))
			p.Release(attempt(1))
			p.Advance(at(10))
			wantStarts(t, p, want, 2, 3)
			check(t, p)
		}
	}
}

func TestPoliciesOrderWhoMovesUp(t *testing.T) {
	for policy, want := range map[grid.Policy][]int{
		grid.PolicyFCFS: {20, 220, 230}, grid.PolicySJF: {50, 20, 30}, grid.PolicyLJF: {20, 240, 220},
		grid.PolicyEDF: {50, 40, 20}, grid.PolicyLST: {50, 40, 20},
	} {
		p := New(Config{Total: cores(4), Backfill: grid.BackfillNone})
		put(t, p, 0, task(1, ClassVarTime, 4, 0, 500))
		put(t, p, 0, task(2, ClassVarTime, 4, 500, 700))
		put(t, p, 1, task(3, ClassVarTime, 4, 700, 710).with(func(c *Commitment) {
			c.Deadline = at(900)
		}))
		put(t, p, 2, task(4, ClassVarTime, 4, 710, 730).with(func(c *Commitment) {
			c.Deadline = at(800)
		}))
		p.SetPolicy(policy, grid.BackfillNone)
		p.Release(attempt(1))
		p.Advance(at(20))
		wantStarts(t, p, want, 2, 3, 4)
	}
}

// Priorities order one submitter's commitments, in the places that they have.
func TestPriorities(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassVarTime, 4, 0, 10))
	for i, c := range []struct {
		submitter grid.SiteID
		priority  int32
	}{{"a", 0}, {"b", 9}, {"a", 5}, {"c", 0}, {"a", 7}} {
		put(t, p, i, task(2+i, ClassVarTime, 4, 10+10*i, 20+10*i).with(func(k *Commitment) {
			k.Submitter, k.Priority = c.submitter, c.priority
		}))
	}
	p.Advance(at(5))
	wantStarts(t, p, []int{50, 20, 30, 40, 10}, 2, 3, 4, 5, 6)
}

func TestShares(t *testing.T) {
	p := New(Config{Total: cores(10), Self: "self", Submitter: 50, Project: 30})
	of := func(submitter grid.SiteID, project string, n int64) Ask {
		a := ask(n, 10)
		a.Submitter, a.Project, a.NowOnly = submitter, project, true
		return a
	}
	for i, c := range []struct {
		ask  Ask
		want grid.Reason
	}{
		{of("a", "", 6), grid.ReasonQuota},
		{of("a", "", 4), grid.ReasonNone},
		{of("a", "", 2), grid.ReasonQuota},
		{of("a", "", 1), grid.ReasonNone},
		{of("b", "p", 3), grid.ReasonNone},
		{of("c", "p", 1), grid.ReasonQuota},
		{of("self", "p", 1), grid.ReasonQuota},
		{of("self", "", 2), grid.ReasonNone},
		{of("c", "", 1), grid.ReasonCPUs},
	} {
		q, reason := p.Quote(at(0), c.ask)
		if reason != c.want {
			t.Fatalf("%d: %v, want %v", i, reason, c.want)
		}
		if reason == grid.ReasonNone {
			put(t, p, 0, draft(commitmentOf(i, c.ask, q)))
		}
	}
	a := of("a", "", 3)
	a.NowOnly = false
	if q := quote(t, p, 0, a); !q.Start.Equal(at(10)) {
		t.Errorf("%+v, want the share's own time", q)
	}
	full := task(99, ClassVarTime, 3, 0, 5).with(func(c *Commitment) { c.Submitter = "a" })
	if err := p.Commit(at(0), Commitment(full), 0); !errors.Is(err, ErrFull) {
		t.Errorf("Commit: %v", err)
	}
	p.Release(attempt(7))
	more := task(99, ClassVarTime, 1, 0, 5).with(func(c *Commitment) { c.Submitter = "a" })
	if err := p.Commit(at(0), Commitment(more), 0); !errors.Is(err, errShare) {
		t.Errorf("Commit beyond the share: %v", err)
	}
}

// A reservation is room of its own for what is bound to it, from its start to its end.
func TestWithinAReservation(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassFixTime, 3, 30, 60).with(func(c *Commitment) {
		c.Holds, c.Submitter = true, "a"
	}))
	bound := func(submitter grid.SiteID, n int64, seconds int) Ask {
		a := ask(n, seconds)
		a.Submitter, a.Within = submitter, attempt(1)
		return a
	}
	if _, reason := p.Quote(at(0), bound("b", 1, 10)); reason != grid.ReasonUnknownOffer {
		t.Errorf("another's reservation: %v", reason)
	}
	for i, c := range []struct {
		n             int64
		seconds, want int
	}{{2, 20, 30}, {2, 10, 50}, {1, 30, 30}, {1, 20, -1}, {4, 1, -1}} {
		a := bound("a", c.n, c.seconds)
		q, reason := p.Quote(at(0), a)
		if (reason == grid.ReasonNone) != (c.want >= 0) || c.want >= 0 && !q.Start.Equal(at(c.want)) {
			t.Fatalf("%d: %+v, %v, want %d s", i, q, reason, c.want)
		}
		if c.want >= 0 {
			put(t, p, 0, draft(commitmentOf(i+2, a, q)))
		}
	}
	lost := task(9, ClassVarTime, 1, 30, 40).with(func(c *Commitment) { c.Within = attempt(7) })
	if err := p.Commit(at(0), Commitment(lost), 0); !errors.Is(err, errWithin) {
		t.Errorf("no such reservation: %v", err)
	}
	if changes := p.Advance(at(30)); !cmp.Equal(numbers(changes.Started), []int{1, 2, 4}) {
		t.Errorf("%+v", changes)
	}
	p.Release(attempt(2))
	if changes := p.Advance(at(35)); !cmp.Equal(numbers(changes.Started), []int{3}) {
		t.Errorf("%+v, want it to move up inside", changes)
	}
	p.Release(attempt(3))
	changes := p.Advance(at(60))
	if !cmp.Equal(numbers(changes.Over), []int{1}) || !cmp.Equal(numbers(changes.Stopped), []int{4}) ||
		len(changes.Lost) > 0 {
		t.Errorf("%+v", changes)
	}
	if got := p.Free(at(60), at(70)); got != cores(4) {
		t.Errorf("free: %+v", got)
	}
	if _, there := p.Release(attempt(4)); !there {
		t.Error("what was stopped is gone before its release")
	}
	check(t, p)
}

// What is bound to a reservation is lost with it.
func TestReleasedReservation(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassFixTime, 3, 30, 60).with(func(c *Commitment) { c.Holds = true }))
	put(t, p, 0, task(2, ClassVarTime, 3, 30, 40).with(func(c *Commitment) { c.Within = attempt(1) }))
	a := ask(3, 10)
	a.Within = attempt(1)
	if _, err := p.Open(at(0), a, quote(t, p, 0, a), true, secs(99)); err != nil {
		t.Fatal(err)
	}
	p.Release(attempt(1))
	changes := p.Advance(at(0))
	if !cmp.Equal(numbers(changes.Lost), []int{2}) || len(changes.Withdrawn) != 1 ||
		p.Free(at(0), at(99)) != cores(4) {
		t.Errorf("%+v", changes)
	}
	check(t, p)
}

// A reservation survives a crash, and what is bound to it; a time that has passed
// meanwhile is said to be.
func TestRestoreKeepsPromises(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassFixTime, 3, 30, 60).with(func(c *Commitment) { c.Holds = true }))
	put(t, p, 0, task(2, ClassVarTime, 3, 30, 40).with(func(c *Commitment) { c.Within = attempt(1) }))
	put(t, p, 0, task(3, ClassFixTime, 1, 10, 20))
	put(t, p, 0, task(4, ClassDeadline, 1, 20, 30).with(func(c *Commitment) { c.Deadline = at(90) }))
	kept := p.Commitments()
	for now, want := range map[int]struct{ lost, over, stopped, starts []int }{
		5:   {nil, nil, nil, []int{30, 30, 10, 5}},
		25:  {[]int{3}, nil, nil, []int{30, 30, -1, 20}},
		40:  {[]int{3}, nil, nil, []int{30, 30, -1, 40}},
		100: {[]int{3, 4}, []int{1}, []int{2}, []int{-1, 30, -1, -1}},
	} {
		r := Restore(Config{Total: cores(4)}, at(now), kept)
		changes := r.Advance(at(now))
		if !cmp.Equal(numbers(changes.Lost), want.lost) || !cmp.Equal(numbers(changes.Over), want.over) ||
			!cmp.Equal(numbers(changes.Stopped), want.stopped) {
			t.Errorf("at %d s: %+v", now, changes)
		}
		wantStarts(t, r, want.starts, 1, 2, 3, 4)
	}
}

// What is absurd is refused, and breaks nothing.
func TestAbsurdAsks(t *testing.T) {
	p := New(Config{Total: cores(4), Strangers: 50})
	put(t, p, 0, task(1, ClassVarTime, 4, 0, 100))
	far := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*Ask)
		want   grid.Reason
	}{
		"a year that cannot be planned": {
			func(a *Ask) { a.Class, a.At = ClassFixTime, far }, grid.ReasonWindow,
		},
		"not before that year": {func(a *Ask) { a.Window.NotBefore = far }, grid.ReasonWindow},
		"the year 1":           {func(a *Ask) { a.Class = ClassFixTime }, grid.ReasonWindow},
		"a past time": {
			func(a *Ask) { a.Class, a.At = ClassFixTime, at(-1) }, grid.ReasonWindow,
		},
		"no deadline": {func(a *Ask) { a.Class = ClassDeadline }, grid.ReasonWindow},
		"a past deadline": {
			func(a *Ask) { a.Class, a.Window.Deadline = ClassDeadline, at(-1) }, grid.ReasonWindow,
		},
		"a window that ends before it begins": {func(a *Ask) {
			a.Class, a.Window = ClassDeadline, grid.Window{NotBefore: at(900), Deadline: at(800)}
		}, grid.ReasonWindow},
		"an endless run": {func(a *Ask) {
			a.Rate = func(grid.Resources) (int64, time.Duration) { return 0, 1<<63 - 1 }
		}, grid.ReasonWindow},
		"endless staging":     {func(a *Ask) { a.StageIn = 1<<63 - 1 }, grid.ReasonNone},
		"endless staging now": {func(a *Ask) { a.StageIn, a.NowOnly = 1<<63-1, true }, grid.ReasonCPUs},
		"less than nothing":   {func(a *Ask) { a.Need = cores(-1) }, grid.ReasonInvalid},
		"a run of nothing": {func(a *Ask) {
			a.Rate = func(grid.Resources) (int64, time.Duration) { return 0, -5 }
		}, grid.ReasonNone},
	} {
		a := ask(1, 10)
		c.change(&a)
		q, reason := p.Quote(at(0), a)
		if reason != c.want {
			t.Errorf("%s: %v (%+v), want %v", name, reason, q, c.want)
		}
		p.EarliestStart(at(0), a)
		if reason == grid.ReasonNone {
			o, err := p.Open(at(0), a, q, true, secs(1<<30))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			p.Withdraw(o.Number)
		}
		check(t, p)
	}
	for name, c := range map[string]draft{
		"a year that cannot be planned": task(2, ClassFixTime, 1, 200, 210).with(func(c *Commitment) {
			c.Start, c.End = far, far.Add(1)
		}),
		"less than nothing":       task(2, ClassFixTime, -1, 200, 210),
		"an end before the start": task(2, ClassFixTime, 1, 210, 200),
		"no such class":           task(2, 9, 1, 200, 210),
		"a reservation inside another": task(2, ClassFixTime, 1, 200, 210).with(func(c *Commitment) {
			c.Holds, c.Within = true, attempt(1)
		}),
	} {
		if err := p.Commit(at(0), Commitment(c), 0); err == nil {
			t.Errorf("%s is committed", name)
		}
		check(t, p)
	}
	p.SetOutage(cores(-5), far)
	p.Advance(at(1))
	p.SetOutage(cores(99), far)
	p.Advance(at(2))
	check(t, p)
}
