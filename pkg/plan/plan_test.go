package plan

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func secs(n int) time.Duration { return time.Duration(n) * time.Second }

func cores(n int64) grid.Resources { return grid.Resources{MilliCPUs: n} }

func attempt(n int) grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: "job", Index: uint32(n)}, Token: 1}
}

// ask is for n cores and a run of that many seconds, whatever is free.
func ask(n int64, seconds int) Ask {
	return Ask{
		Submitter: "s", Class: ClassVarTime, Job: grid.JobID(fmt.Sprintf("job%d", seconds)),
		Need: cores(n), Count: 1,
		Rate: func(grid.Resources) (int64, time.Duration) { return 0, secs(seconds) },
	}
}

func commit(t *testing.T, p *Planner, n int, share int64, from, to int) {
	t.Helper()
	c := Commitment{
		Class: ClassVarTime, Attempt: attempt(n), Give: cores(share), Start: at(from), End: at(to),
	}
	if err := p.Commit(at(0), c, 0); err != nil {
		t.Fatal(err)
	}
	check(t, p)
}

func check(t *testing.T, p *Planner) {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
}

func quote(t *testing.T, p *Planner, now int, a Ask) Quote {
	t.Helper()
	q, reason := p.Quote(at(now), a)
	if reason != grid.ReasonNone {
		t.Fatalf("Quote at %d s: %v", now, reason)
	}
	check(t, p)
	return q
}

func TestQuoteFindsTheEarliestPlace(t *testing.T) {
	p := New(Config{Total: cores(4)})
	commit(t, p, 1, 3, 0, 10)
	commit(t, p, 2, 4, 20, 30)
	for _, c := range []struct {
		need                  int64
		seconds, count        int
		notBefore, start, end int
		tasks                 uint32
	}{
		{1, 10, 9, 0, 0, 10, 1},
		{1, 20, 9, 0, 0, 20, 1},
		{1, 21, 9, 0, 30, 51, 4},
		{2, 10, 9, 0, 10, 20, 2},
		{2, 10, 1, 0, 10, 20, 1},
		{2, 11, 9, 0, 30, 41, 2},
		{1, 5, 2, 12, 12, 17, 2},
	} {
		a := ask(c.need, c.seconds)
		a.Count = uint32(c.count)
		if c.notBefore > 0 {
			a.Window.NotBefore = at(c.notBefore)
		}
		q := quote(t, p, 0, a)
		if !q.Start.Equal(at(c.start)) || !q.End.Equal(at(c.end)) || q.Tasks != c.tasks ||
			q.Give != cores(c.need) {
			t.Errorf("%+v: quote = %v to %v, %d tasks of %+v",
				c, q.Start.Sub(start), q.End.Sub(start), q.Tasks, q.Give)
		}
	}
}

func TestQuoteReasons(t *testing.T) {
	p := New(Config{
		Total: grid.Resources{MilliCPUs: 4, MemoryBytes: 4, DiskBytes: 4, MFLOPS: 4, NetBps: 4},
	})
	commit(t, p, 1, 3, 0, 10)
	need := func(r grid.Resources) func(*Ask) { return func(a *Ask) { a.Need = r } }
	for name, c := range map[string]struct {
		change func(*Ask)
		want   grid.Reason
	}{
		"cores, ever":     {need(cores(5)), grid.ReasonCPUs},
		"memory, ever":    {need(grid.Resources{MemoryBytes: 5}), grid.ReasonMemory},
		"disk, ever":      {need(grid.Resources{DiskBytes: 5}), grid.ReasonDisk},
		"bandwidth, ever": {need(grid.Resources{NetBps: 5}), grid.ReasonBandwidth},
		"cores, now":      {func(a *Ask) { a.Need, a.NowOnly = cores(2), true }, grid.ReasonCPUs},
		"too late": {
			func(a *Ask) { a.Need, a.Window.Deadline = cores(2), at(19) }, grid.ReasonWindow,
		},
		"too long":      {func(a *Ask) { a.Window.Deadline = at(9) }, grid.ReasonWindow},
		"past deadline": {func(a *Ask) { a.Window.Deadline = at(-1) }, grid.ReasonWindow},
		"not yet": {
			func(a *Ask) { a.NowOnly, a.Window.NotBefore = true, at(5) }, grid.ReasonWindow,
		},
	} {
		a := ask(1, 10)
		c.change(&a)
		if q, got := p.Quote(at(0), a); got != c.want {
			t.Errorf("%s: reason = %v (%+v), want %v", name, got, q, c.want)
		}
	}
	p.SetCapacity(grid.Resources{MilliCPUs: 4})
	a := ask(1, 10)
	a.Need.MFLOPS = 1
	if _, got := p.Quote(at(0), a); got != grid.ReasonComputation {
		t.Errorf("no computation: reason = %v", got)
	}
}

// Half the computation takes twice the time, so that it may pay to wait, and a
// longer run may meet less computation on its way.
func TestQuoteTradesWaitingAgainstSpeed(t *testing.T) {
	total := grid.Resources{MilliCPUs: 4, MFLOPS: 1000}
	p := New(Config{Total: total})
	busy := Commitment{
		Class: ClassVarTime, Attempt: attempt(1), Give: grid.Resources{MFLOPS: 900}, Start: at(0),
		End: at(20),
	}
	if err := p.Commit(at(0), busy, 0); err != nil {
		t.Fatal(err)
	}
	a := ask(1, 0)
	a.Need.MFLOPS, a.StageIn = 1000, secs(5)
	a.Rate = func(free grid.Resources) (int64, time.Duration) {
		f := min(free.MFLOPS, 1000)
		return f, secs(10) * 1000 / time.Duration(f)
	}
	q := quote(t, p, 0, a)
	want := Quote{
		Start: at(20), End: at(30), Run: secs(10), Tasks: 1, Free: total,
		Give: grid.Resources{MilliCPUs: 1, MFLOPS: 1000}, LatestStart: at(20),
	}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Errorf("waiting: -want +got:\n%s", diff)
	}
	a.NowOnly = true
	want = Quote{
		Start: at(0), End: at(105), Run: secs(100), Tasks: 1,
		Free: grid.Resources{MilliCPUs: 4, MFLOPS: 100}, Give: grid.Resources{MilliCPUs: 1, MFLOPS: 100},
		LatestStart: at(0),
	}
	if diff := cmp.Diff(want, quote(t, p, 0, a)); diff != "" {
		t.Errorf("now: -want +got:\n%s", diff)
	}
	p.Release(attempt(1))
	busy.Start, busy.End = at(12), at(13)
	if err := p.Commit(at(0), busy, 0); err != nil {
		t.Fatal(err)
	}
	if q := quote(t, p, 0, a); !q.End.Equal(at(105)) || q.Give.MFLOPS != 100 {
		t.Errorf("a bottleneck on the way: quote = %+v", q)
	}
}

func TestSoftOffersHoldNothing(t *testing.T) {
	for _, c := range []struct {
		name          string
		holdAll, firm bool
		left          int64
	}{{"soft", false, false, 4}, {"firm", false, true, 1}, {"hold all", true, false, 1}} {
		p := New(Config{Total: cores(4), HoldAll: c.holdAll})
		a := ask(3, 10)
		if _, err := p.Open(at(0), a, quote(t, p, 0, a), c.firm, secs(30)); err != nil {
			t.Fatal(err)
		}
		check(t, p)
		if got := p.Free(at(0), at(10)).MilliCPUs; got != c.left {
			t.Errorf("%s: %d free, want %d", c.name, got, c.left)
		}
		changes := p.Advance(at(30))
		if len(changes.Withdrawn) != 1 || len(p.Offers()) != 0 || p.Free(at(30), at(40)) != cores(4) {
			t.Errorf("%s: after expiry %+v, %+v", c.name, changes, p.Free(at(30), at(40)))
		}
		check(t, p)
	}
}

func TestHoldBecomesCommitment(t *testing.T) {
	p := New(Config{Total: cores(4)})
	a := ask(2, 10)
	a.Count = 2
	o, err := p.Open(at(0), a, quote(t, p, 0, a), true, secs(60))
	if err != nil || o.Holds != 2 {
		t.Fatalf("Open = %+v, %v", o, err)
	}
	if _, reason := p.Quote(at(0),
		func() Ask { b := a; b.NowOnly = true; return b }()); reason != grid.ReasonCPUs {
		t.Errorf("another asker: reason = %v", reason)
	}
	a.Offer = o.Number
	if q := quote(t, p, 0, a); q.Tasks != 2 || !q.Start.Equal(at(0)) {
		t.Errorf("its own hold counts as free: %+v", q)
	}
	c := Commitment{
		Class: ClassVarTime, Attempt: attempt(1), Give: cores(3), Start: at(0), End: at(10),
	}
	if err := p.Commit(at(0), c, o.Number); !errors.Is(err, ErrFull) {
		t.Errorf("Commit of more than one task's share: %v", err)
	}
	check(t, p)
	c.Give = cores(2)
	for i := 1; i <= 2; i++ {
		c.Attempt = attempt(i)
		if err := p.Commit(at(5), c, o.Number); err != nil { // a little later than quoted
			t.Fatal(err)
		}
		check(t, p)
	}
	if left, ok := p.Offer(o.Number); !ok || left.Holds != 0 {
		t.Errorf("offer = %+v, %v, want nothing held", left, ok)
	}
	if err := p.Commit(at(5), c, o.Number); !errors.Is(err, errAttempt) {
		t.Errorf("second Commit: %v", err)
	}
	c.Attempt, c.End = attempt(3), at(5)
	if err := p.Commit(at(5), c, 0); !errors.Is(err, errPast) {
		t.Errorf("Commit in the past: %v", err)
	}
}

// Commit fails in the order of this table, where several reasons hold, and then changes
// nothing: neither the offer's hold nor what others have.
func TestARefusedCommitmentChangesNothing(t *testing.T) {
	p := New(Config{Total: cores(10), Submitter: 60})
	commit(t, p, 1, 1, 0, 80)
	a := ask(2, 10)
	a.Count = 2
	o, err := p.Open(at(0), a, quote(t, p, 0, a), true, secs(60))
	if err != nil || o.Holds != 2 {
		t.Fatalf("Open = %+v, %v", o, err)
	}
	c := Commitment{
		Class: ClassDeadline, Attempt: attempt(1), Submitter: "s", Give: cores(-1),
		Within: attempt(9), Deadline: at(4), Start: at(0), End: at(-1),
	}
	for _, step := range []struct {
		want error
		mend func()
	}{
		{errAttempt, func() { c.Attempt = attempt(2) }},
		{errPast, func() { c.End = at(10) }},
		{capacity.ErrInvalid, func() { c.Give = cores(9) }},
		{errWithin, func() { c.Within = grid.AttemptID{} }},
		{errDeadline, func() { c.Deadline = at(20) }},
		{ErrFull, func() { c.Give = cores(5) }},
		{errShare, func() { c.Give = cores(2) }},
	} {
		before := p.State()
		if err := p.Commit(at(0), c, o.Number); !errors.Is(err, step.want) {
			t.Errorf("Commit(%+v) = %v, want %v", c, err, step.want)
		}
		if diff := cmp.Diff(before, p.State()); diff != "" {
			t.Errorf("%v changed (-before +after):\n%s", step.want, diff)
		}
		step.mend()
	}
	if err := p.Commit(at(0), c, o.Number); err != nil {
		t.Errorf("with nothing left to refuse: %v", err)
	}
	check(t, p)
}

func TestQuotas(t *testing.T) {
	p := New(Config{Total: cores(100), MaxOffers: 16})
	open := func(submitter string, n int) error {
		a := ask(1, 10)
		a.Submitter, a.Job = grid.SiteID(submitter), grid.JobID(fmt.Sprint(submitter, n))
		_, err := p.Open(at(0), a, quote(t, p, 0, a), true, secs(60))
		return err
	}
	for n := range 3 {
		if err := open("flooder", n); (err != nil) != (n == 2) ||
			err != nil && !errors.Is(err, ErrQuota) {
			t.Errorf("offer %d: %v", n, err)
		}
	}
	if err := open("flooder", 1); err != nil {
		t.Errorf("an offer that replaces an old one: %v", err)
	}
	if got := p.Free(at(0), at(1)); got != cores(98) {
		t.Errorf("free = %+v, want the replaced hold given back", got)
	}
	for i := range 14 {
		if err := open(fmt.Sprint("s", i), 0); err != nil {
			t.Errorf("submitter %d: %v", i, err)
		}
	}
	if err := open("late", 0); !errors.Is(err, ErrQuota) {
		t.Errorf("beyond all offers: %v", err)
	}
	if _, err := p.Open(at(0), ask(1, 1), Quote{}, false, 0); !errors.Is(err, errOffer) {
		t.Errorf("no validity: %v", err)
	}
	if n := p.WithdrawJob("flooder1"); n != 1 {
		t.Errorf("WithdrawJob = %d", n)
	}
	if _, ok := p.Withdraw(1); !ok {
		t.Error("Withdraw(1) found nothing")
	}
	if _, ok := p.Withdraw(1); ok {
		t.Error("Withdraw(1) found it twice")
	}
	check(t, p)
}

func TestOverrunKeepsCapacity(t *testing.T) {
	p := New(Config{Total: cores(4)})
	commit(t, p, 1, 4, 0, 80)
	commit(t, p, 2, 4, 80, 100)
	a := ask(1, 10)
	a.Window.NotBefore = at(110)
	if _, err := p.Open(at(0), a, quote(t, p, 0, a), true, secs(500)); err != nil {
		t.Fatal(err)
	}
	changes := p.Advance(at(80)) // 1 has not ended
	check(t, p)
	waits := Commitment{
		Attempt: attempt(2), Give: cores(4), Class: ClassVarTime, Made: at(0), Start: at(90),
		End: at(110),
	}
	if diff := cmp.Diff(Changes{Moved: []Commitment{waits}}, changes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if next, _ := p.Next(); !next.Equal(at(90)) {
		t.Errorf("next = %v, want 90 s", next.Sub(start))
	}
	if c, ok := p.Release(attempt(1)); !ok || !c.Running || !c.Overran || !c.End.Equal(at(90)) {
		t.Errorf("Release = %+v, %v", c, ok)
	}
	changes = p.Advance(at(81)) // 2 moves up
	check(t, p)
	waits.Start, waits.End, waits.Running = at(81), at(101), true
	if diff := cmp.Diff(Changes{Started: []Commitment{waits}}, changes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(Changes{}, p.Advance(at(82))); diff != "" {
		t.Errorf("nothing happened, but:\n%s", diff)
	}
}

func TestFixedStartsDoNotMoveUp(t *testing.T) {
	p := New(Config{Total: cores(4)})
	commit(t, p, 1, 4, 0, 50)
	for i, notBefore := range []int{0, 70} {
		c := Commitment{
			Class: ClassVarTime, Attempt: attempt(i + 2), Give: cores(2), Start: at(80), End: at(90),
			NotBefore: at(notBefore),
		}
		if err := p.Commit(at(0), c, 0); err != nil {
			t.Fatal(err)
		}
	}
	p.Release(attempt(1))
	p.Advance(at(10))
	a, _ := p.Commitment(attempt(2))
	b, _ := p.Commitment(attempt(3))
	if !a.Start.Equal(at(10)) || !a.Running || !b.Start.Equal(at(70)) || b.Running {
		t.Errorf("starts = %+v and %+v, want 10 s and 70 s", a, b)
	}
	if changes := p.Advance(at(500)); len(changes.Started) != 1 { // nobody called for long
		t.Errorf("changes = %+v", changes)
	}
	if b, _ = p.Commitment(attempt(3)); !b.Running || !b.End.After(at(500)) {
		t.Errorf("the late one = %+v", b)
	}
	check(t, p)
}

func TestSmallerCeilingKeepsCommitments(t *testing.T) {
	p := New(Config{Total: cores(4)})
	commit(t, p, 1, 3, 0, 50)
	commit(t, p, 2, 3, 50, 60)
	p.SetCapacity(cores(2))
	check(t, p)
	if q := quote(t, p, 1, ask(1, 5)); !q.Start.Equal(at(60)) {
		t.Errorf("something new starts at %v, want 60 s: nothing fits before", q.Start.Sub(start))
	}
	p.Release(attempt(1))
	p.Advance(at(10))
	check(t, p)
	if c, _ := p.Commitment(attempt(2)); !c.Start.Equal(at(50)) {
		t.Errorf("it starts at %v: it must not move into what the owner took back", c.Start.Sub(start))
	}
	p.Advance(at(50))
	p.Release(attempt(2))
	p.Advance(at(51))
	if got := p.Free(at(51), at(52)); got != cores(2) || p.total() != cores(2) ||
		p.site.ceiling != cores(2) {
		t.Errorf("free = %+v of %+v, ceiling %+v", got, p.total(), p.site.ceiling)
	}
}

func TestRestore(t *testing.T) {
	p := New(Config{Total: cores(4)})
	commit(t, p, 1, 3, 0, 50)
	commit(t, p, 2, 1, 0, 10)
	commit(t, p, 3, 2, 50, 60)
	kept := p.Commitments()
	broken := append(slices.Clone(kept), kept[0], Commitment{
		Class: ClassVarTime, Attempt: attempt(9), Give: cores(-1), Start: at(0), End: at(9),
	},
		Commitment{Class: ClassVarTime, Attempt: attempt(8)})
	for _, total := range []int64{4, 1} {
		r := Restore(Config{Total: cores(total), FirstOffer: 77}, at(20), broken)
		check(t, r)
		got := r.Commitments()
		if len(got) != 3 || got[0] != kept[0] || !got[1].End.After(at(20)) || !got[1].Running ||
			got[2] != kept[2] {
			t.Errorf("total %d: commitments = %+v", total, got)
		}
		if r.nextOffer() != 77 {
			t.Errorf("next offer = %d", r.nextOffer())
		}
	}
	if _, ok := New(Config{}).Next(); ok {
		t.Error("an empty plan has something to do")
	}
}

func TestFromStateRefusesWhatCannotBe(t *testing.T) {
	p := New(Config{Total: cores(4)})
	commit(t, p, 1, 3, 0, 50)
	commit(t, p, 2, 1, 0, 50)
	a := ask(1, 10)
	a.Window.NotBefore = at(100)
	for i := range 2 {
		a.Job = grid.JobID(fmt.Sprint(i))
		if _, err := p.Open(at(0), a, quote(t, p, 0, a), true, secs(500)); err != nil {
			t.Fatal(err)
		}
	}
	for name, spoil := range map[string]func(*State){
		"more than there is":   func(s *State) { s.Commitments[0].Give = cores(9) },
		"attempts unordered":   func(s *State) { slices.Reverse(s.Commitments) },
		"offers unordered":     func(s *State) { slices.Reverse(s.Offers) },
		"the same offer twice": func(s *State) { s.Offers[1].Number = s.Offers[0].Number },
		"number of the future": func(s *State) { s.Next = 2 },
		"hold without end":     func(s *State) { s.Offers[0].Quote.End = s.Offers[0].Quote.Start },
		"low ceiling":          func(s *State) { s.Ceiling = cores(3) },
		"an outage that ends before it begins": func(s *State) {
			s.Outage, s.Strained = Outage{Missing: cores(1), Since: at(2), Until: at(1)}, true
		},
		"an outage that gives": func(s *State) {
			s.Outage = Outage{Missing: cores(-1), Since: at(1), Until: at(2)}
		},
		"no such reservation": func(s *State) { s.Commitments[0].Within = attempt(7) },
		"an offer in none":    func(s *State) { s.Offers[0].Within = attempt(7) },
		"a commitment that ends before it begins": func(s *State) {
			s.Commitments[0].End = s.Commitments[0].Start
		},
	} {
		s := p.State()
		if _, err := fromState(s); err != nil {
			t.Fatal(err)
		}
		spoil(&s)
		if _, err := fromState(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	check(t, p) // spoiling the copies did not reach it
}

// total is the owner's ceilings.
func (p *Planner) total() grid.Resources { return p.config.Total }

// nextOffer is the number the next offer will have, for Config.FirstOffer.
func (p *Planner) nextOffer() uint64 { return p.next }
