package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What the papers say of a planner that lives. The tests quote OpenCCS unless they
// name another paper.

// put commits an attempt with its number, class, cores and place.
func put(t *testing.T, p *Planner, now int, d draft) {
	t.Helper()
	c := Commitment(d)
	if c.Class == ClassDeadline && c.Deadline.IsZero() {
		c.Deadline = c.End
	}
	if err := p.Commit(at(now), c, 0); err != nil {
		t.Fatal(err)
	}
	check(t, p)
}

// draft is a commitment to be.
type draft Commitment

func task(n int, class Class, milliCPUs int64, from, to int) draft {
	return draft{
		Attempt: attempt(n), Submitter: "s", Class: class, Give: cores(milliCPUs), Start: at(from),
		End: at(to),
	}
}

func (d draft) with(change func(*Commitment)) draft {
	c := Commitment(d)
	change(&c)
	return draft(c)
}

// starts returns the starts of commitments, in seconds, by their number; -1 for one that is gone.
func starts(p *Planner, numbers ...int) []int {
	var list []int
	for _, n := range numbers {
		c, ok := p.Commitment(attempt(n))
		if !ok {
			list = append(list, -1)
			continue
		}
		list = append(list, int(c.next().Sub(start)/time.Second))
	}
	return list
}

func wantStarts(t *testing.T, p *Planner, want []int, numbers ...int) {
	t.Helper()
	check(t, p)
	if diff := cmp.Diff(want, starts(p, numbers...)); diff != "" {
		t.Errorf("starts of %v: -want +got:\n%s", numbers, diff)
	}
}

func numbers(list []Commitment) []int {
	var n []int
	for _, c := range list {
		n = append(n, int(c.Attempt.Task.Index))
	}
	return n
}

// "A Fix-Time request reserves resources for a given time interval. It cannot be
// shifted on the time axis. In contrast, Var-Time requests can move on the time axis to
// an earlier or later time slot ... Such a shift on the time axis might occur when
// other requests terminate before the specified estimated duration."
func TestPaperFixTimeAndVarTime(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassVarTime, 4, 0, 100))
	put(t, p, 0, task(2, ClassFixTime, 4, 100, 110))
	put(t, p, 0, task(3, ClassVarTime, 4, 110, 150))
	put(t, p, 0, task(4, ClassDeadline, 4, 150, 160))
	p.Release(attempt(1))
	p.Advance(at(20))
	wantStarts(t, p, []int{100, 30, 20}, 2, 3, 4) // the deadline first, then the rest
	if c, _ := p.Commitment(attempt(4)); !c.Running {
		t.Errorf("what moved up to now waits: %+v", c)
	}
}

// "This also implies, that given SLA-offers should be kept if possible", "P-list before
// D-list before O-list before N-list", and "The RMS only moves those jobs to the D-list
// which are planned on the defect resources within the failure horizon". What starts
// exactly when the horizon has passed stays.
func TestPaperOutage(t *testing.T) {
	p := New(Config{Total: cores(4), Horizon: secs(50)})
	put(t, p, 0, task(1, ClassFixTime, 2, 10, 20))
	put(t, p, 0, task(2, ClassDeadline, 2, 10, 20).with(func(c *Commitment) {
		c.NotBefore, c.Deadline = at(10), at(45)
	}))
	a := ask(2, 10)
	a.Window.NotBefore = at(20)
	o, err := p.Open(at(0), a, quote(t, p, 0, a), true, secs(500))
	if err != nil {
		t.Fatal(err)
	}
	put(t, p, 0, task(3, ClassVarTime, 2, 20, 50))
	put(t, p, 0, task(4, ClassFixTime, 4, 50, 60))
	put(t, p, 0, task(5, ClassFixTime, 4, 60, 70))
	p.SetOutage(cores(2), time.Time{})
	changes := p.Advance(at(0))
	// 1 keeps its place in what is left; 2, of the D-list, goes behind it, before the
	// offer, which would have had its place there; 3 goes behind all; 4 begins when the
	// horizon has passed and stays.
	wantStarts(t, p, []int{10, 20, 60 + 10, 50, 60}, 1, 2, 3, 4, 5)
	if diff := cmp.Diff([]Offer{o}, changes.Withdrawn); diff != "" {
		t.Errorf("the offer stood in the way: -want +got:\n%s", diff)
	}
	if got := numbers(changes.Moved); !cmp.Equal(got, []int{2, 3}) {
		t.Errorf("moved %v", got)
	}
	p.SetOutage(grid.Resources{}, time.Time{})
	p.Advance(at(1))
	wantStarts(t, p, []int{10, 10, 20, 50, 60}, 1, 2, 3, 4, 5) // back again
}

// "the system has no means of restarting the failure affected job, thus violating the
// terms of its SLA": that is said. "but does not impact other already planned jobs".
func TestOutageLosesWhatCannotBeKept(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassFixTime, 2, 10, 20))
	put(t, p, 0, task(2, ClassFixTime, 2, 10, 20))
	put(t, p, 0, task(3, ClassDeadline, 4, 30, 40))
	p.SetOutage(cores(2), at(100))
	changes := p.Advance(at(0))
	if got := numbers(changes.Lost); !cmp.Equal(got, []int{2, 3}) {
		t.Errorf("lost %v, want what came last, and what needs more than there is", got)
	}
	wantStarts(t, p, []int{10, -1, -1}, 1, 2, 3)
}

// "these buffer nodes may only be used for executing best-effort jobs, so that outages
// either affect these buffer nodes or running best-effort jobs can be displaced by
// SLA-bound jobs that are affected by the resource outage".
func TestPaperBufferNodes(t *testing.T) {
	p := New(Config{Total: cores(4), Promised: 50})
	promise := ask(3, 10)
	promise.Class, promise.At = ClassFixTime, at(10)
	if _, reason := p.Quote(at(0), promise); reason != grid.ReasonQuota {
		t.Errorf("3 of 4 promised: %v", reason)
	}
	promise.Need = cores(2)
	q := quote(t, p, 0, promise)
	put(t, p, 0, draft(commitmentOf(1, promise, q)))
	if _, reason := p.Quote(at(0), promise); reason != grid.ReasonQuota {
		t.Errorf("promised twice: %v", reason)
	}
	put(t, p, 0, task(2, ClassVarTime, 2, 0, 100)) // best effort has the buffer
	p.SetOutage(cores(2), at(50))
	p.Advance(at(0))
	changes := p.Advance(at(10))
	if !cmp.Equal(numbers(changes.Started), []int{1}) ||
		!cmp.Equal(numbers(changes.Suspended), []int{2}) {
		t.Errorf("changes %+v: best effort is displaced", changes)
	}
	p.Release(attempt(1))
	if changes = p.Advance(at(20)); !cmp.Equal(numbers(changes.Resumed), []int{2}) {
		t.Errorf("changes %+v: it goes on", changes)
	}
	if c, _ := p.Commitment(attempt(2)); !c.End.Equal(at(110)) {
		t.Errorf("it ends at %v, want 110 s: it was suspended for 10", c.End.Sub(start))
	}
	check(t, p)
}

// "the checkpoint and restart mechanisms will be used for suspending the execution of
// running jobs with respect to their SLA, thus freeing allocated resources for
// restarting outage affected jobs".
func TestPaperRunningJobWithSlackMakesRoom(t *testing.T) {
	for _, c := range []struct {
		deadline int
		want     []int
	}{{200, []int{2}}, {60, nil}} {
		p := New(Config{Total: cores(4)})
		put(t, p, 0, task(1, ClassDeadline, 2, 0, 50).with(func(k *Commitment) {
			k.Deadline = at(c.deadline)
		}))
		put(t, p, 0, task(2, ClassFixTime, 2, 10, 30))
		p.SetOutage(cores(2), at(40))
		lost := numbers(p.Advance(at(0)).Lost)
		changes := p.Advance(at(10))
		if c.want == nil {
			if !cmp.Equal(lost, []int{2}) {
				t.Errorf("without slack: lost %v, %+v", lost, changes)
			}
			continue
		}
		if !cmp.Equal(numbers(changes.Started), c.want) ||
			!cmp.Equal(numbers(changes.Suspended), []int{1}) {
			t.Errorf("%+v", changes)
		}
		wantStarts(t, p, []int{30}, 1) // goes on then
	}
}

// "assigning other waiting jobs to the pending job's resources": who can be suspended,
// and fits by memory.
func TestPaperLateStageIn(t *testing.T) {
	p := New(Config{Total: grid.Resources{MilliCPUs: 4, MemoryBytes: 4}})
	with := func(memory int64, allows grid.Overrun) func(*Commitment) {
		return func(c *Commitment) { c.Give.MemoryBytes, c.Overrun = memory, allows }
	}
	put(t, p, 0,
		task(1, ClassFixTime, 4, 10, 60).with(with(2, grid.OverrunSuspend)).with(func(c *Commitment) {
			c.AwaitsData = true
		}))
	put(t, p, 0, task(2, ClassVarTime, 3, 60, 70).with(with(2, grid.OverrunStop)))
	put(t, p, 0, task(3, ClassVarTime, 3, 70, 80).with(with(3, grid.OverrunSuspend)))
	put(t, p, 0, task(4, ClassVarTime, 3, 80, 90).with(with(2, grid.OverrunSuspend)))
	put(t, p, 0, task(5, ClassVarTime, 3, 90, 95).with(with(0, grid.OverrunSuspend)))
	if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Started), []int{4}) {
		t.Errorf("started %v, want the one that can be suspended and fits", numbers(changes.Started))
	}
	if c, _ := p.Commitment(attempt(4)); !c.Borrows {
		t.Errorf("%+v does not borrow", c)
	}
	wantStarts(t, p, []int{10}, 1) // keeps its place
	p.Release(attempt(4))
	if changes := p.Advance(at(12)); !cmp.Equal(numbers(changes.Started), []int{5}) {
		t.Errorf("started %v, want the next", numbers(changes.Started))
	}
	check(t, p)
}

// "executing the pending job as soon as stage-in is completed"; "setting the end of node
// allocation to the minimum of specified deadline and current time plus estimated job
// runtime".
func TestPaperBorrowerStandsStill(t *testing.T) {
	for _, c := range []struct{ deadline, end int }{{100, 35}, {33, 33}} {
		p := New(Config{Total: cores(4)})
		put(t, p, 0, task(1, ClassDeadline, 4, 10, 30).with(func(k *Commitment) {
			k.Deadline, k.AwaitsData = at(c.deadline), true
		}))
		put(t, p, 0, task(2, ClassVarTime, 4, 30, 50))
		if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Started), []int{2}) {
			t.Fatalf("%+v", changes)
		}
		p.Ready(at(15), attempt(1))
		changes := p.Advance(at(15))
		if !cmp.Equal(numbers(changes.Started), []int{1}) ||
			!cmp.Equal(numbers(changes.Suspended), []int{2}) {
			t.Errorf("%+v", changes)
		}
		if k, _ := p.Commitment(attempt(1)); !k.End.Equal(at(c.end)) || !k.Running {
			t.Errorf("%+v ends at %v, want %d s", k, k.End.Sub(start), c.end)
		}
		p.Release(attempt(1))
		if changes = p.Advance(at(c.end)); !cmp.Equal(numbers(changes.Resumed), []int{2}) {
			t.Errorf("%+v", changes)
		}
		// "subtracting the already executed runtime of the preempted jobs from their
		// estimated runtime": 5 of 20 seconds.
		if k, _ := p.Commitment(attempt(2)); !k.End.Equal(at(c.end + 15)) {
			t.Errorf("the other ends at %v", k.End.Sub(start))
		}
		check(t, p)
	}
}

// Migol, section 4: "New reservations are only accepted if the start time is greater
// than the expected end time of all queued jobs."
func TestPaperFairshare(t *testing.T) {
	p := New(Config{Total: cores(4), Fairshare: true})
	put(t, p, 0, task(1, ClassVarTime, 1, 0, 500))
	put(t, p, 0, task(2, ClassVarTime, 4, 500, 600))
	a := ask(1, 10)
	a.Class = ClassFixTime
	for second, want := range map[int]grid.Reason{
		10: grid.ReasonWindow, 599: grid.ReasonWindow, 600: grid.ReasonNone,
	} {
		a.At = at(second)
		if _, reason := p.Quote(at(0), a); reason != want {
			t.Errorf("at %d s: %v, want %v", second, reason, want)
		}
	}
	if q, reason := p.EarliestStart(at(0), a); reason != grid.ReasonNone || !q.Start.Equal(at(600)) {
		t.Errorf("the earliest: %+v, %v", q, reason)
	}
}

// "If the request cannot be realized ... the job is rejected. In this situation, the
// user can query the system for the earliest possible time to start the job request."
func TestPaperEarliestStart(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassFixTime, 4, 10, 50))
	a := ask(2, 20)
	a.Class, a.Window.Deadline = ClassDeadline, at(40)
	if _, reason := p.Quote(at(0), a); reason != grid.ReasonWindow {
		t.Errorf("a deadline that cannot be met: %v", reason)
	}
	if q, reason := p.EarliestStart(at(0), a); reason != grid.ReasonNone || !q.Start.Equal(at(50)) {
		t.Errorf("the earliest: %+v, %v", q, reason)
	}
	a.Window.Deadline = at(90)
	if q := quote(t, p, 0, a); !q.Start.Equal(at(50)) || !q.LatestStart.Equal(at(70)) {
		t.Errorf("%+v, want a start at 50, at the latest at 70", q)
	}
	a.Class, a.At, a.Window.Deadline = ClassFixTime, at(45), time.Time{}
	if _, reason := p.Quote(at(0), a); reason != grid.ReasonWindow {
		t.Errorf("a time that is taken: %v", reason)
	}
	a.At = at(50)
	if q := quote(t, p, 0, a); !q.LatestStart.Equal(at(50)) {
		t.Errorf("%+v", q)
	}
}

// "Generally assuming the specified runtime to be overestimated allows to postpone the
// point of latest ressource allocation by the assumed amount of overestimation."
func TestPaperOverestimate(t *testing.T) {
	p := New(Config{Total: cores(4), Overestimate: .5})
	put(t, p, 0, task(1, ClassFixTime, 4, 0, 30))
	a := ask(4, 20)
	a.Class, a.Window.Deadline = ClassDeadline, at(40)
	q := quote(t, p, 0, a)
	if !q.Start.Equal(at(30)) || !q.LatestStart.Equal(at(30)) {
		t.Errorf("%+v, want a start at 30: half of 20 seconds are enough", q)
	}
	put(t, p, 0, draft(commitmentOf(2, a, q)))
	c := commitmentOf(3, a, q)
	if c.Start, c.End = at(50), at(70); !errors.Is(p.Commit(at(0), c, 0), errDeadline) {
		t.Error("a start after the latest one is committed")
	}
}

// What one borrows of a place whose inputs are late does not count against a third: it begins
// in its own place, and nobody is suspended for it.
func TestALoanHindersNobodyElse(t *testing.T) {
	p := New(Config{Total: cores(4)})
	put(t, p, 0, task(1, ClassFixTime, 2, 10, 60).with(func(c *Commitment) { c.AwaitsData = true }))
	put(t, p, 0, task(2, ClassVarTime, 2, 60, 90))
	put(t, p, 0, task(3, ClassFixTime, 2, 20, 40))
	if changes := p.Advance(at(10)); !cmp.Equal(numbers(changes.Started), []int{2}) {
		t.Fatalf("at 10 s: %+v, want a loan", changes)
	}
	changes := p.Advance(at(20))
	if !cmp.Equal(numbers(changes.Started), []int{3}) || len(changes.Suspended) > 0 {
		t.Errorf("at 20 s: %+v, want that it starts and nobody is suspended", changes)
	}
	check(t, p)
}
