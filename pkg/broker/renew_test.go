package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// unattended brings a job that may run on alone to site a, which has just accepted it.
func (b *bench) unattended() (grid.JobID, grid.AttemptID) {
	b.Helper()
	job := testJob(1)
	job.Spec.Unattended = grid.UnattendedFinish
	id := b.submit(job)
	b.offers(id, 1, "a", "b", self)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}, Renewal: 1})
	return id, attemptOf(id, 0, 1)
}

// renew is a request of a site that says how long its leases have left, and lists all it has.
func renew(number uint64, left time.Duration, attempts ...grid.AttemptID) protocol.Renew {
	return protocol.Renew{
		Renewal: number, Attempts: attempts, List: &protocol.Listing{},
		Left: slices.Repeat([]time.Duration{left}, len(attempts)),
	}
}

// leased is the lease that the last input was answered with.
func (b *bench) leased() time.Duration {
	b.Helper()
	_, lease := one[protocol.Lease](b.T, b.last)
	return lease.Duration
}

// end is when what was promised of a task ends, from now.
func (b *bench) end(id grid.JobID, index int) time.Duration {
	return b.m.jobs.all[id].tasks[index].leaseEnd.Sub(b.now)
}

// A lease of hours is granted when the site holds a short one, so that one that gets lost with
// a cut that follows holds the task for seconds.
func TestALongLeaseFollowsAShortOneThatArrived(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, attempt := b.unattended()
	if got := b.leased(); got != b.m.cfg.Lease {
		t.Fatalf("the first lease is %s, want the short one", got)
	}
	b.pass(time.Second)
	b.hear("a", protocol.Renew{Renewal: 2, Attempts: []grid.AttemptID{attempt}})
	if got := b.leased(); got != b.m.cfg.Lease {
		t.Errorf("a site that does not say what it holds is granted %s", got)
	}
	b.pass(time.Second)
	b.hear("a", renew(3, 0, attempt))
	if got := b.leased(); got != b.m.cfg.Lease {
		t.Errorf("a site that holds no lease is granted %s", got)
	}
	b.pass(time.Second)
	b.hear("a", protocol.Progress{Attempt: attempt, Phase: grid.PhaseRunning})
	b.hear("a", renew(4, 2*time.Second, attempt))
	if got := b.leased(); got != b.m.cfg.LongLease {
		t.Errorf("a site that holds its lease is granted %s, want the long one", got)
	}
	if want := b.m.cfg.LongLease + b.m.cfg.LongLease/1000; b.end(id, 0) != want {
		t.Errorf("the task may move after %s, want %s: a thousandth more", b.end(id, 0), want)
	}
}

// A long lease that did not arrive is taken back as soon as a later request shows it: what is
// on its way by then counts for a minute at most.
func TestALongLeaseThatDidNotArriveIsTakenBack(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, attempt := b.unattended()
	b.hear("a", protocol.Progress{Attempt: attempt, Phase: grid.PhaseRunning})
	b.pass(time.Second)
	b.hear("a", renew(5, 2*time.Second, attempt)) // is granted the long one
	b.hear("a", renew(4, 0, attempt))             // sent before, came late: it shows nothing
	if got := b.end(id, 0); got < b.m.cfg.LongLease {
		t.Fatalf("a request that was sent before took the lease back: it ends in %s", got)
	}
	b.pass(time.Second)
	b.hear("a", renew(6, time.Second, attempt))
	if got := b.leased(); got != b.m.cfg.Lease {
		t.Errorf("granted %s to a site that did not get its last lease", got)
	}
	want := protocol.MaxLateLease + b.m.cfg.margin(protocol.MaxLateLease)
	if got := b.end(id, 0); got != want {
		t.Fatalf("the task may move after %s, want %s", got, want)
	}
	b.pass(time.Second)
	b.hear("a", renew(7, 2*time.Second, attempt)) // it hears again
	if got := b.leased(); got != b.m.cfg.LongLease {
		t.Errorf("granted %s to a site that hears again", got)
	}
	b.pass(time.Hour)
	b.hear("a", renew(8, b.m.cfg.LongLease-time.Hour, attempt))
	if got := b.leased(); got != b.m.cfg.LongLease {
		t.Errorf("granted %s to a site that has its long lease", got)
	}
}

// A site that asks for leases and hears none of them keeps the task for a few leases and not
// for as long as it asks.
func TestADeafSiteIsGrantedLittle(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	attempt := attemptOf(id, 0, 1)
	granted, since := 0, b.now
	for n := uint64(2); n < 60; n++ {
		b.pass(time.Second)
		b.hear("a", renew(n, 0, attempt))
		_, leases := sent[protocol.Lease](b.last)
		granted += len(leases)
		if _, fences := sent[protocol.Fence](b.last); len(fences) > 0 {
			break
		}
	}
	if took := b.now.Sub(since); granted > maxVain || took > 15*time.Second {
		t.Errorf("granted %d leases that did not arrive, given up after %s; want at most %d in 15 s",
			granted, took, maxVain)
	}
	tries := b.m.jobs.all[id].tasks[0].tries
	if len(tries) != 1 || !strings.Contains(tries[0].Outcome, "does not hear") {
		t.Errorf("the outcome is %+v, want why", tries)
	}
	b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(10, 2, 1)})
	b.refusal(id, self, false)
	b.pass(2 * time.Second)
	if s, _ := b.m.Job(id); s.Tasks[0].Site != "b" || s.Tasks[0].Token != 2 {
		t.Errorf("the task is at %s with token %d, want at b", s.Tasks[0].Site, s.Tasks[0].Token)
	}
}

// A deaf site that was left does not get its task back, also when no other can have it: that
// would go on forever.
func TestADeafSiteIsNotTakenBack(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.submit(testJob(1))
	b.offers(id, 1, "a")
	b.refusal(id, self, true)
	attempt := attemptOf(id, 0, 1)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attempt}, Renewal: 1})
	for n := uint64(2); n < 20; n++ {
		b.pass(time.Second)
		b.hear("a", renew(n, 0, attempt))
	}
	if _, leases := sent[protocol.Lease](b.last); len(leases) > 0 {
		t.Errorf("it is granted leases again")
	}
	_, fence := one[protocol.Fence](t, b.last)
	if fence.Below[0] != attemptOf(id, 0, 2) || b.phase(id, 0) == grid.PhaseRunning {
		t.Errorf("fenced %v, the task is %s", fence.Below, b.phase(id, 0))
	}
}

// Leases that arrive now and then are enough, and so is a site that says nothing of them.
func TestWhoIsNotDeaf(t *testing.T) {
	for name, say := range map[string]func(n uint64, id grid.AttemptID) protocol.Renew{
		"every fourth arrives": func(n uint64, id grid.AttemptID) protocol.Renew {
			return renew(n, time.Duration(n%4/3)*time.Second, id)
		},
		"an earlier version": func(n uint64, id grid.AttemptID) protocol.Renew {
			return protocol.Renew{Renewal: n, Attempts: []grid.AttemptID{id}}
		},
		"one request over and over": func(_ uint64, id grid.AttemptID) protocol.Renew {
			return renew(2, 0, id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.started(1)
			for n := range uint64(40) {
				b.pass(time.Second)
				b.hear("a", say(n+2, attemptOf(id, 0, 1)))
				one[protocol.Lease](t, b.last)
			}
			b.wantPhase(id, 0, grid.PhaseRunning)
		})
	}
}

// What a site has named once and leaves out of a later full list it has no more: the task
// moves immediately.
func TestAnAttemptThatIsMissingMoves(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(3)
	ids := []grid.AttemptID{attemptOf(id, 0, 1), attemptOf(id, 1, 1), attemptOf(id, 2, 1)}
	msg := renew(2, time.Second, ids[0])
	msg.List.Also = ids[2:] // it has this one, and wants no lease for it
	b.hear("a", msg)
	to, award := one[protocol.Award](t, b.last)
	if to != "b" || len(award.Tasks) != 1 || award.Tasks[0].Index != 1 || award.Tasks[0].Token != 2 {
		t.Fatalf("awarded %+v to %s, want the missing task to b", award.Tasks, to)
	}
	if tries := b.m.jobs.all[id].tasks[1].tries; len(tries) != 1 ||
		!strings.Contains(tries[0].Outcome, "has it no more") {
		t.Errorf("the outcome is %+v, want why", tries)
	}
	for _, i := range []int{0, 2} {
		b.wantPhase(id, i, grid.PhaseRunning)
	}
	if index := b.faultIndex("a"); index != 1 {
		t.Errorf("the fault index is %d, want 1: the site has lost what it accepted", index)
	}
}

func TestListsThatSayNothingOfAnAttempt(t *testing.T) {
	for name, change := range map[string]func(*protocol.Renew){
		"an earlier version": func(m *protocol.Renew) { m.List = nil },
		"sent before it was": func(m *protocol.Renew) { m.Renewal = 1 },
		"another range, after": func(m *protocol.Renew) {
			m.List.After = attemptOf(m.Attempts[0].Task.Job, 1, 1)
		},
		"another range, before": func(m *protocol.Renew) { m.List.UpTo = m.Attempts[0] },
		"it is among the others": func(m *protocol.Renew) {
			m.List.Also = append(m.List.Also, attemptOf(m.Attempts[0].Task.Job, 1, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.started(3)
			msg := renew(7, time.Second, attemptOf(id, 0, 1))
			msg.List.Also = []grid.AttemptID{attemptOf(id, 2, 1)}
			change(&msg)
			b.hear("a", msg)
			b.wantPhase(id, 1, grid.PhaseRunning)
			if _, awards := sent[protocol.Award](b.last); len(awards) > 0 {
				t.Errorf("awarded %+v", awards)
			}
		})
	}
}

// A list of another site says nothing, whatever it leaves out.
func TestAListIsOfItsSiteOnly(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	other := b.submit(testJob(1))
	b.hear("b", renew(9, time.Second, attemptOf(other, 0, 1)))
	b.wantPhase(id, 0, grid.PhaseRunning)
}

// Requests that were overtaken on their way do not undo what later ones have named, in
// whatever order a thousand attempts come and go.
func TestRollsKeepTheirOrderAndTheirBound(t *testing.T) {
	id := func(n int) grid.AttemptID {
		return grid.AttemptID{
			Task:  grid.TaskID{Job: grid.JobID(fmt.Sprintf("%016d", n/100)), Index: uint32(n % 100)},
			Token: 1,
		}
	}
	r := make(rolls)
	live := func(a grid.AttemptID) bool { return a.Task.Index%10 == 0 }
	for n := 0; n < 10_000; n += 100 {
		var some []grid.AttemptID
		for i := range 100 {
			some = append(some, id(9_900-n+i))
		}
		r.enter("a", some, live)
		r.enter("a", some[10:20], live) // named again
		if ids := r["a"].ids; !slices.IsSortedFunc(ids, grid.AttemptID.Compare) ||
			len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Fatalf("after %d: out of order, or one twice", n)
		}
	}
	if n := len(r["a"].ids); n < 1_000 || n > 2*1_000+2*rollSlack {
		t.Errorf("%d entries for 1000 that are under way", n)
	}
	list := &protocol.Listing{After: id(500), UpTo: id(600)}
	missing := r.strike("a", list, []grid.AttemptID{id(510), id(511), id(600)})
	for _, m := range missing {
		if !list.Holds(m) || m == id(510) || m == id(600) {
			t.Errorf("%s is missing", m)
		}
	}
	if !slices.Contains(missing, id(520)) || slices.Contains(r["a"].ids, id(520)) ||
		!slices.Contains(r["a"].ids, id(510)) || !slices.Contains(r["a"].ids, id(500)) {
		t.Errorf("missing %v", missing)
	}
	if r.strike("a", &protocol.Listing{}, nil); len(r) != 0 {
		t.Errorf("%d rolls are left of sites that have nothing", len(r))
	}
}

// The margin is in proportion to the lease: a clock that loses one second in a thousand does
// not make a lease of hours end after the promise.
func TestTheMarginGrowsWithTheLease(t *testing.T) {
	cfg := Default(self)
	for lease, want := range map[time.Duration]time.Duration{
		cfg.Lease:              cfg.LeaseMargin,
		500 * time.Second:      500 * time.Millisecond,
		8 * time.Hour:          28_800 * time.Millisecond,
		7 * 24 * time.Hour:     604_800 * time.Millisecond,
		100 * time.Millisecond: cfg.LeaseMargin,
	} {
		if got := cfg.margin(lease); got != want {
			t.Errorf("the margin of %s is %s, want %s", lease, got, want)
		}
	}
}
