package site

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func ownerBusy() step.OwnerBusy {
	return step.OwnerBusy{Reason: grid.ReasonOwnerBusy, Text: "others use 3.5 of 4 cores"}
}

// A running attempt is suspended while the owner needs the machine, its leases are
// renewed, its submitter knows why, and it runs on afterwards.
func TestOwnerBusyFreezesAndOwnerAwayLetsRunOn(t *testing.T) {
	r := newRig(t)
	id, began := r.running(job1, alice, 1)[0], r.now
	r.step(ownerBusy())
	if got := only[step.SuspendAttempt](r.out); !cmp.Equal(got, []step.SuspendAttempt{{Attempt: id}}) {
		t.Fatalf("suspends %v, want %s", got, id)
	}
	r.reported(eventOwnerBusy)
	r.step(step.AttemptFrozen{Attempt: id})
	want := protocol.Progress{Attempt: id, Phase: grid.PhaseFrozen, Reason: grid.ReasonOwnerBusy}
	if got := one[protocol.Progress](r, alice); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
	if s := r.m.Status(); s.Owned != grid.ReasonOwnerBusy || !s.Attempts[0].Suspended {
		t.Errorf("status %+v", s)
	}
	for range 5 { // leases go on
		renewals := sent[protocol.Renew](r.advance(lease/2), alice)
		if len(renewals) == 0 {
			t.Fatal("no lease was asked for while the owner was busy")
		}
		r.receive(alice, protocol.Lease{
			Renewal: renewals[len(renewals)-1].Renewal, Attempts: []grid.AttemptID{id}, Duration: lease,
		})
	}
	r.step(step.OwnerAway{})
	continued := []step.ContinueAttempt{{Attempt: id}}
	if got := only[step.ContinueAttempt](r.out); !cmp.Equal(got, continued) {
		t.Fatalf("continues %v, want %s", got, id)
	}
	r.step(step.AttemptResumed{Attempt: id})
	running := protocol.Progress{
		Attempt: id, Phase: grid.PhaseRunning, StartedAgo: r.now.Sub(began),
	}
	if got := one[protocol.Progress](r, alice); got != running {
		t.Errorf("progress %+v, want running", got)
	}
	r.exited(id)
	one[protocol.Exited](r, alice)
}

// A full disk freezes running jobs, refuses what comes, and says so in both cases.
func TestFullDiskFreezesAndRefuses(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	r.step(step.SpaceChanged{Full: true})
	if got := only[step.SuspendAttempt](r.out); !cmp.Equal(got, []step.SuspendAttempt{{Attempt: id}}) {
		t.Fatalf("suspends %v, want %s", got, id)
	}
	r.step(step.AttemptFrozen{Attempt: id})
	want := protocol.Progress{Attempt: id, Phase: grid.PhaseFrozen, Reason: grid.ReasonDiskFull}
	if got := one[protocol.Progress](r, alice); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
	if refusal, closed := r.m.owner.closed(); !closed || refusal.Reason != grid.ReasonDiskFull {
		t.Errorf("closed %t for %v, want for the disk", closed, refusal)
	}
}

// An owner and a full disk each keep the site closed, whichever ends first, and the disk is told
// of as long as it is full.
func TestFullDiskAndOwnerBusy(t *testing.T) {
	owner, disk := step.Input(ownerBusy()), step.Input(step.SpaceChanged{Full: true})
	for _, c := range []struct {
		name               string
		first, second, end step.Input
		left               grid.Reason
	}{
		{"the owner goes first", owner, disk, step.OwnerAway{}, grid.ReasonDiskFull},
		{"space comes first", disk, owner, step.SpaceChanged{}, grid.ReasonOwnerBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			id := r.running(job1, alice, 1)[0]
			r.step(c.first)
			r.step(step.AttemptFrozen{Attempt: id})
			r.step(c.second)
			if refusal, _ := r.m.owner.closed(); refusal.Reason != grid.ReasonDiskFull {
				t.Errorf("closed for %v, want for the disk", refusal)
			}
			r.step(c.end)
			if got := only[step.ContinueAttempt](r.out); len(got) != 0 {
				t.Errorf("%v goes on", got)
			}
			if refusal, _ := r.m.owner.closed(); refusal.Reason != c.left {
				t.Errorf("closed for %v, want %v", refusal, c.left)
			}
			for _, in := range []step.Input{step.OwnerAway{}, step.SpaceChanged{}} {
				r.step(in)
				if len(only[step.ContinueAttempt](r.out)) == 1 {
					return
				}
			}
			t.Error("it does not go on")
		})
	}
}

// A task whose inputs find no space at a site was only stopped there; one whose inputs no holder
// has was tried.
func TestStagingWithoutSpace(t *testing.T) {
	for _, c := range []struct {
		local bool
		want  grid.ExitCause
	}{{true, grid.CauseStopped}, {false, grid.CauseData}} {
		r := newRig(t)
		id := r.accepted(job1, alice, 1)[0]
		r.step(step.Staged{Attempt: id, Problem: "disk full", Local: c.local})
		if got := one[protocol.Exited](r, alice).Exit; got.Cause != c.want || got.Text != "disk full" {
			t.Errorf("local %t: exit %+v, want %v", c.local, got, c.want)
		}
	}
}

// What was accepted and not started waits, and starts when the owner is away.
func TestOwnerBusyStartsNothing(t *testing.T) {
	r := newRig(t)
	list := r.accepted(job1, alice, 1)
	r.step(ownerBusy())
	r.step(step.Staged{Attempt: list[0]})
	r.lease(alice, list, time.Hour)
	if got := only[step.StartAttempt](r.out); len(got) != 0 {
		t.Fatalf("started %v while the owner was busy", got)
	}
	r.step(step.OwnerAway{})
	if got := only[step.StartAttempt](r.out); len(got) != 1 {
		t.Errorf("starts %v, want %s", got, list[0])
	}
	if got := only[step.ContinueAttempt](r.out); len(got) != 0 {
		t.Errorf("continues %v, which was never suspended", got)
	}
}

// An owner who stays has the machine alone after the site's patience; the
// tasks move because their submitters hear of it.
func TestOwnerStays(t *testing.T) {
	r := newRig(t, func(c *Config) { c.OwnerPatience = time.Minute })
	list := r.running(job1, alice, 1)
	r.lease(alice, list, time.Hour)
	r.step(ownerBusy())
	r.step(step.AttemptFrozen{Attempt: list[0]})
	if got := only[step.StopAttempt](r.advance(59 * time.Second)); len(got) != 0 {
		t.Errorf("stopped %v before the patience ended", got)
	}
	if got := only[step.StopAttempt](r.advance(2 * time.Second)); len(got) != 1 {
		t.Fatalf("stops %v, want %s", got, list[0])
	}
	r.step(step.AttemptExited{Attempt: list[0], Exit: grid.Exit{Cause: grid.CauseStopped}})
	if got := one[protocol.Exited](r, alice); got.Exit.Cause != grid.CauseStopped {
		t.Errorf("exited %+v", got)
	}
	r.step(step.OwnerAway{})
	r.advance(time.Hour)
	r.step(ownerBusy()) // with nothing that runs: no harm
}

// A reason that changes, and words that come twice, change nothing but what is
// told.
func TestOwnerBusyAgain(t *testing.T) {
	r := newRig(t, func(c *Config) { c.OwnerPatience = time.Minute })
	list := r.running(job1, alice, 1)
	r.lease(alice, list, time.Hour)
	r.step(step.OwnerAway{})
	r.reported(eventStale)
	r.step(ownerBusy())
	r.step(step.AttemptFrozen{Attempt: list[0]})
	r.step(ownerBusy())
	r.reported(eventStale)
	r.advance(30 * time.Second)
	r.step(step.OwnerBusy{Reason: grid.ReasonOwnerHours})
	if got := only[step.SuspendAttempt](r.out); len(got) != 0 {
		t.Errorf("suspended twice: %v", got)
	}
	if got := one[protocol.Progress](r, alice); got.Reason != grid.ReasonOwnerHours {
		t.Errorf("progress %+v, want the new reason", got)
	}
	if got := only[step.StopAttempt](r.advance(31 * time.Second)); len(got) != 1 {
		t.Errorf("the patience began anew with the new reason")
	}
}

// A lease that ends meanwhile is told, so that the reason shown is the true one.
func TestLeaseEndsWhileTheOwnerIsBusy(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	r.step(ownerBusy())
	r.step(step.AttemptFrozen{Attempt: id})
	r.advance(2 * lease)
	r.step(step.OwnerAway{})
	if got := one[protocol.Progress](r, alice); got.Phase != grid.PhaseFrozen ||
		got.Reason != grid.ReasonNone {
		t.Errorf("progress %+v, want frozen without a reason", got)
	}
}
