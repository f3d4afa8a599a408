package site

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// No attempt starts before it has both its inputs and a lease, in whatever order
// they come.
func TestStartWantsInputsAndLease(t *testing.T) {
	for _, leaseFirst := range []bool{true, false} {
		r := newRig(t)
		list := r.accepted(job1, alice, 1)
		inputs := []func(){
			func() { r.lease(alice, list, lease) },
			func() { r.step(step.Staged{Attempt: list[0]}) },
		}
		if !leaseFirst {
			slices.Reverse(inputs)
		}
		inputs[0]()
		if got := only[step.StartAttempt](r.out); len(got) != 0 {
			t.Errorf("lease first %v: started too early", leaseFirst)
		}
		inputs[1]()
		got := only[step.StartAttempt](r.out)
		if len(got) != 1 || !got[0].LeaseUntil.Equal(epoch().Add(lease)) {
			t.Errorf("lease first %v: started %+v", leaseFirst, got)
		}
		// It is a fact before the sandbox is asked for.
		persist := slices.IndexFunc(r.out, func(e step.Effect) bool {
			_, is := e.(step.Persist)
			return is
		})
		start := slices.IndexFunc(r.out, func(e step.Effect) bool {
			_, is := e.(step.StartAttempt)
			return is
		})
		if persist < 0 || persist > start {
			t.Errorf("persisted at %d, started at %d", persist, start)
		}
	}
}

// A lease counts from the sending of the request that it answers.
func TestLeaseCountsFromTheRequest(t *testing.T) {
	r := newRig(t)
	list := r.accepted(job1, alice, 1)
	r.step(step.Staged{Attempt: list[0]})
	r.now = r.now.Add(900 * time.Millisecond)
	r.lease(alice, list, lease)
	if got := only[step.StartAttempt](r.out)[0].LeaseUntil; !got.Equal(epoch().Add(lease)) {
		t.Errorf("lease until %s, want %s", got, epoch().Add(lease))
	}
}

func TestLeaseThatComesTooLateStartsNothing(t *testing.T) {
	r := newRig(t)
	list := r.accepted(job1, alice, 1)
	n := r.m.submitters.requests.last
	r.step(step.Staged{Attempt: list[0]})
	r.advance(lease)
	r.receive(alice, protocol.Lease{Renewal: n, Attempts: list, Duration: lease})
	if got := only[step.StartAttempt](r.out); len(got) != 0 {
		t.Errorf("started %+v under a lease that is over", got)
	}
}

// The end of a lease never moves backwards, however messages overtake each other.
func TestLeaseNeverMovesBackwards(t *testing.T) {
	r := newRig(t)
	list := r.running(job1, alice, 1)
	first := r.m.submitters.requests.last
	r.advance(time.Second)
	r.lease(alice, list, lease)
	if got := only[step.ExtendLease](r.out); len(got) != 1 ||
		!got[0].LeaseUntil.Equal(r.now.Add(lease)) {
		t.Fatalf("extended %+v, want until %s", got, r.now.Add(lease))
	}
	r.receive(alice, protocol.Lease{Renewal: first, Attempts: list, Duration: lease})
	r.reported(eventStale)
	if got := r.m.Status().Attempts[0].LeaseUntil; !got.Equal(r.now.Add(lease)) {
		t.Errorf("lease until %s, want %s", got, r.now.Add(lease))
	}
}

func TestLeasesThatDoNotCount(t *testing.T) {
	for _, tt := range []struct {
		name    string
		from    grid.SiteID
		renewal uint64
		attempt grid.AttemptID
		event   string
	}{
		{"for no request of ours", alice, 1 << 40, attemptID(job1, 0, 1), eventUnknownRenewal},
		{"by another site", bob, 0, attemptID(job1, 0, 1), eventUnknownRenewal},
		{"for an unknown attempt", alice, 0, attemptID(job1, 0, 9), eventUnknownAttempt},
		{"for another's attempt", alice, 0, attemptID(job2, 0, 1), eventNotSubmitter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.accepted(job2, bob, 1)
			r.step(step.Staged{Attempt: attemptID(job2, 0, 1)})
			r.accepted(job1, alice, 1)
			r.step(step.Staged{Attempt: attemptID(job1, 0, 1)})
			n := tt.renewal
			if n == 0 {
				n = r.m.submitters.requests.last
			}
			r.receive(tt.from, protocol.Lease{
				Renewal: n, Attempts: []grid.AttemptID{tt.attempt}, Duration: lease,
			})
			r.reported(tt.event)
			if got := only[step.StartAttempt](r.out); len(got) > 0 {
				t.Errorf("started %+v", got)
			}
		})
	}
}

// While an attempt has no lease it is asked for every RenewRetry; with leases, one
// message for all attempts of a submitter every third of the lease.
func TestRenewal(t *testing.T) {
	r := newRig(t)
	list := append(r.accepted(job1, alice, 2), r.accepted(job2, alice, 1)...)
	r.accepted(job3, bob, 1)

	unleased := sent[protocol.Renew](r.advance(5*time.Second), alice)
	if len(unleased) != 5 || !slices.Equal(unleased[0].Attempts, list) {
		t.Errorf("unleased: %d requests, the first for %v, want 5 for %v",
			len(unleased), unleased[0].Attempts, list)
	}
	repeats := func(n protocol.Renew) bool { return n.Renewal <= unleased[0].Renewal }
	if slices.ContainsFunc(unleased[1:], repeats) {
		t.Errorf("request numbers do not grow: %+v", unleased)
	}
	r.receive(alice, protocol.Lease{
		Renewal: unleased[4].Renewal, Attempts: list, Duration: 30 * time.Second,
	})
	if got := sent[protocol.Renew](r.advance(29*time.Second), alice); len(got) != 2 {
		t.Errorf("with leases of 30 s: %d requests in 29 s, want 2", len(got))
	}
}

func TestRenewalIsSplit(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.MaxAttempts = 16_384
		c.Capability.Total.MilliCPUs, c.Capability.Total.MemoryBytes = 64_000, 64<<30
	})
	small := func(s *grid.Spec) { s.Need = grid.Resources{} }
	for i, job := range []grid.JobID{job1, job2} {
		a := announcement(job, alice, small)
		a.Count = 1_000
		r.receive(alice, award(job, r.bid(a), 1_000, 1, small))
		if got := len(one[protocol.Accepted](r, alice).Attempts); got != 1_000 {
			t.Fatalf("job %d: accepted %d of 1000", i, got)
		}
	}
	renewals := sent[protocol.Renew](r.advance(time.Second), alice)
	if len(renewals) != 2 || len(renewals[0].Attempts) != protocol.MaxAttempts ||
		len(renewals[1].Attempts) != 2_000-protocol.MaxAttempts {
		t.Fatalf("%d requests", len(renewals))
	}
	// Together they are the full list: each attempt is in the range of the request that names it,
	// and in no other.
	for i, msg := range renewals {
		for _, id := range msg.Attempts {
			if !msg.List.Holds(id) || renewals[1-i].List.Holds(id) {
				t.Fatalf("request %d names %s, which is not in its range alone", i, id)
			}
		}
	}
	first, last := attemptID("2222222222222222", 0, 1), attemptID(job3, 0, 1)
	if !renewals[0].List.Holds(first) || !renewals[1].List.Holds(last) {
		t.Errorf("the ranges have ends: %+v and %+v", renewals[0].List, renewals[1].List)
	}
}

// A request tells how long each lease has left, and what else the site has of the submitter.
func TestARequestTellsAllThatTheSiteHas(t *testing.T) {
	r := newRig(t)
	running := r.running(job1, alice, 1)[0]
	ended := r.running(job2, alice, 1)[0]
	r.accepted(job3, bob, 1)
	r.exited(ended)
	msg := sent[protocol.Renew](r.advance(time.Second), alice)[0]
	want := []time.Duration{lease - r.now.Sub(epoch())}
	if !slices.Equal(msg.Attempts, []grid.AttemptID{running}) || !slices.Equal(msg.Left, want) {
		t.Errorf("asks for %v, which have %v left, want %s and %v", msg.Attempts, msg.Left, running, want)
	}
	if !slices.Equal(msg.List.Also, []grid.AttemptID{ended}) {
		t.Errorf("lists %v, want what has ended and was not acknowledged", msg.List.Also)
	}
	later := sent[protocol.Renew](r.advance(lease), alice)
	if last := later[len(later)-1]; last.Left[0] != 0 {
		t.Errorf("a lease that is over has %s left", last.Left[0])
	}
}

// A lease that answers a request which a later one has followed counts for a minute at most:
// the later one has told what was left without it.
func TestALateLeaseIsShort(t *testing.T) {
	for _, d := range []time.Duration{lease, 8 * time.Hour} {
		r := newRig(t)
		list := r.running(job1, alice, 1)
		first, sentAt := r.m.submitters.requests.last, epoch()
		r.advance(time.Second)
		second := r.m.submitters.requests.last
		r.receive(alice, protocol.Lease{Renewal: first, Attempts: list, Duration: d})
		until := r.m.Status().Attempts[0].LeaseUntil
		if want := sentAt.Add(min(d, protocol.MaxLateLease)); !until.Equal(want) {
			t.Errorf("a late lease of %s counts until %s, want %s", d, until, want)
		}
		r.receive(alice, protocol.Lease{Renewal: second, Attempts: list, Duration: d})
		if until = r.m.Status().Attempts[0].LeaseUntil; !until.Equal(r.now.Add(d)) {
			t.Errorf("a lease of %s in time counts until %s, want %s", d, until, r.now.Add(d))
		}
	}
}

// Accepted but never leased: ended after GiveUp, and told until the submitter has heard it. It
// may count on the attempt, under a lease that was lost on the way.
func TestGiveUp(t *testing.T) {
	r := newRig(t)
	id := r.accepted(job1, alice, 1)[0]
	r.step(step.Staged{Attempt: id})
	stops := only[step.StopAttempt](r.advance(31 * time.Second))
	if len(stops) != 1 || stops[0].Attempt != id {
		t.Fatalf("stops %v, want %s", stops, id)
	}
	r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
	got := one[protocol.Exited](r, alice)
	if got.Attempt != id || got.Exit.Cause != grid.CauseStopped {
		t.Fatalf("told %+v, want that it was stopped", got)
	}
	if got := sent[protocol.Exited](r.advance(10*time.Second), alice); len(got) < 2 {
		t.Errorf("told again %d times in 10 s", len(got))
	}
	r.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	if s := r.m.Status(); len(s.Attempts) != 0 || s.Free.MilliCPUs != 4_000 {
		t.Errorf("left: %+v", s.Attempts)
	}
	if got := len(r.facts.All()); got != 0 {
		t.Errorf("%d facts left", got)
	}
}

// One that its submitter would not want any more is stopped soon after its lease has ended.
func TestAnUnwantedAttemptIsStoppedSoon(t *testing.T) {
	r := newRig(t, func(c *Config) { c.GiveUp = 20 * time.Second })
	id := r.running(job1, alice, 1, func(s *grid.Spec) { s.Unattended = grid.UnattendedStop })[0]
	r.wantStoppedWithoutLease(id, 20*time.Second)
}

// wantStoppedWithoutLease lets the lease of a running attempt end, and wants it to be stopped when
// that was so long ago, and not before.
func (r *rig) wantStoppedWithoutLease(id grid.AttemptID, limit time.Duration) {
	r.t.Helper()
	r.advance(lease)
	r.step(step.AttemptFrozen{Attempt: id})
	if got := only[step.StopAttempt](r.advance(limit - time.Second)); len(got) != 0 {
		r.t.Errorf("stopped before the limit")
	}
	if got := only[step.StopAttempt](r.advance(2 * time.Second)); len(got) != 1 {
		r.t.Fatalf("stops %v, want %s", got, id)
	}
}

// A frozen attempt keeps asking, thaws under a new lease, and is stopped after
// FrozenLimit, which its submitter is told.
func TestFrozen(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FrozenLimit = time.Minute })
	id := r.running(job1, alice, 1)[0]
	r.advance(lease)
	r.step(step.AttemptFrozen{Attempt: id})
	if got := one[protocol.Progress](r, alice); got.Phase != grid.PhaseFrozen || got.Attempt != id {
		t.Errorf("progress %+v, want frozen", got)
	}
	if got := sent[protocol.Renew](r.advance(10*time.Second), alice); len(got) < 3 {
		t.Errorf("frozen, it asked %d times in 10 s", len(got))
	}
	r.lease(alice, []grid.AttemptID{id}, lease)
	if got := only[step.ExtendLease](r.out); len(got) != 1 {
		t.Fatalf("extends %v", got)
	}
	r.step(step.AttemptResumed{Attempt: id})
	if got := one[protocol.Progress](r, alice); got.Phase != grid.PhaseRunning {
		t.Errorf("progress %+v, want running", got)
	}

	r.wantStoppedWithoutLease(id, time.Minute)
	r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
	if got := one[protocol.Exited](r, alice); got.Exit.Cause != grid.CauseStopped {
		t.Errorf("exited %+v", got)
	}
}

// Leases that a submitter gives for nanoseconds do not make the site spin.
func TestTinyLeases(t *testing.T) {
	r := newRig(t)
	list := r.running(job1, alice, 1)
	r.lease(alice, list, 1)
	if got := len(sent[protocol.Renew](r.advance(time.Second), alice)); got > 10 {
		t.Errorf("%d requests in a second", got)
	}
}

// A site without a continuous clock takes a short part of a long lease, and asks again in
// its time.
func TestALongLeaseIsTakenInPart(t *testing.T) {
	const most = 3 * lease
	r := newRig(t, func(c *Config) { c.LongestLease = most })
	list := r.running(job1, alice, 1)
	if got := r.m.Status().Attempts[0].LeaseUntil; !got.Equal(r.now.Add(lease)) {
		t.Errorf("a short lease until %s, want %s", got, r.now.Add(lease))
	}
	r.advance(time.Second)
	r.lease(alice, list, time.Hour)
	if got := r.m.Status().Attempts[0].LeaseUntil; !got.Equal(r.now.Add(most)) {
		t.Errorf("a long lease until %s, want %s", got, r.now.Add(most))
	}
	if renewals := only[step.Send](r.advance(most)); len(renewals) == 0 {
		t.Error("no lease was asked for before that was over")
	}
}

// First leases of new attempts do not put off the renewal of those that a submitter has
// already, however many come and however fast.
func TestNewAttemptsDoNotPutOffRenewals(t *testing.T) {
	r := newRig(t)
	long := r.running(job1, alice, 1)[0]
	asked, longest := r.now, time.Duration(0)
	for n := range 40 {
		for _, msg := range sent[protocol.Renew](r.advance(lease/10), alice) {
			if slices.Contains(msg.Attempts, long) {
				longest, asked = max(longest, r.now.Sub(asked)), r.now
				r.receive(alice, protocol.Lease{
					Renewal: msg.Renewal, Attempts: msg.Attempts, Duration: lease,
				})
			}
		}
		short := r.running(grid.JobID(fmt.Sprintf("bbbbbbbbbbbbbb%c%c", 'a'+n/8, 'a'+n%8)), alice, 1)[0]
		r.exited(short)
		r.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{short}})
	}
	if longest = max(longest, r.now.Sub(asked)); longest > lease/2 {
		t.Errorf("%s between two requests for a lease of %s", longest, lease)
	}
}
