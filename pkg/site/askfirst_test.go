package site

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// rival announces and awards a task that others queue, too, and that waits behind
// another for all cores of the site if it is to be queued.
func rival(r *rig, queued bool) grid.AttemptID {
	r.t.Helper()
	all := func(s *grid.Spec) { s.Need.MilliCPUs, s.Need.MFLOPS, s.Map = 4_000, 0, grid.MapSeconds }
	if queued {
		before := announcement(job2, bob, all)
		r.receive(bob, before)
		r.receive(bob, award(job2, one[protocol.Bid](r, bob).Offer, 1, 1, all))
		// While it waits for its data another may borrow its place.
		r.step(step.Staged{Attempt: attemptID(job2, 0, 1)})
	}
	r.receive(alice, announcement(job1, alice, all))
	msg := award(job1, one[protocol.Bid](r, alice).Offer, 1, 2, all)
	msg.AskFirst = true
	r.receive(alice, msg)
	if got := one[protocol.Accepted](r, alice).Attempts; len(got) != 1 {
		r.t.Fatalf("accepted %v", got)
	}
	return attemptID(job1, 0, 2)
}

func TestARivalAsksWhenItsTurnHasCome(t *testing.T) {
	r := newRig(t)
	id := rival(r, true)
	r.step(step.Staged{Attempt: id})
	none[protocol.MayStart](r)
	effects := r.advance(59 * time.Second) // what was there before keeps its place
	if len(sent[protocol.MayStart](effects, alice)) > 0 ||
		len(sent[protocol.Renew](effects, alice)) > 0 {
		t.Fatal("it asked for a lease while it waited")
	}
	if len(r.m.roster.ofTask(id.Task)) == 0 {
		t.Fatal("it was given up while it waited")
	}
	r.receive(bob, protocol.Cancel{Job: job2})
	r.step(step.AttemptExited{
		Attempt: attemptID(job2, 0, 1), Exit: grid.Exit{Cause: grid.CauseStopped},
	})
	ask := one[protocol.MayStart](r, alice)
	if len(only[step.StartAttempt](r.out)) > 0 || ask.Attempts[0] != id {
		t.Fatalf("asks for %v; it must not start before the answer", ask.Attempts)
	}
	again := sent[protocol.MayStart](r.advance(r.m.cfg.RenewRetry), alice)
	if len(again) != 1 || again[0].Renewal == ask.Renewal {
		t.Fatalf("repeated as %+v, want once with a number of its own", again)
	}
	r.receive(alice, protocol.Lease{
		Renewal: again[0].Renewal, Attempts: ask.Attempts, Duration: lease,
	})
	if started := only[step.StartAttempt](r.out); len(started) != 1 ||
		!started[0].LeaseUntil.Equal(r.now.Add(lease)) {
		t.Fatalf("started %+v", started)
	}
	r.step(step.AttemptStarted{Attempt: id})
	effects = r.advance(2 * time.Second)
	if len(sent[protocol.Renew](effects, alice)) == 0 ||
		len(sent[protocol.MayStart](effects, alice)) > 0 {
		t.Error("what has started renews its lease, and asks no more")
	}
}

func TestARivalWaitsForItsInputs(t *testing.T) {
	r := newRig(t)
	id := rival(r, false)
	if len(only[step.Stage](r.out)) != 1 {
		t.Error("its inputs are not fetched ahead of time")
	}
	none[protocol.MayStart](r)
	r.step(step.Staged{Attempt: id})
	if one[protocol.MayStart](r, alice).Attempts[0] != id {
		t.Error("asks for another")
	}
}

func TestARivalThatIsToldToStop(t *testing.T) {
	r := newRig(t)
	id := rival(r, false)
	r.step(step.Staged{Attempt: id})
	r.receive(alice, protocol.Fence{Below: []grid.AttemptID{{Task: id.Task, Token: 4}}})
	if stops := only[step.StopAttempt](r.out); len(stops) != 1 {
		t.Fatalf("stopped %v", stops)
	}
	r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
	none[protocol.Exited](r)
	if effects := r.advance(time.Minute); len(sent[protocol.MayStart](effects, alice)) > 0 {
		t.Error("it asks still")
	}
}

func TestARivalWithoutAnAnswerIsGivenUp(t *testing.T) {
	r := newRig(t)
	id := rival(r, false)
	r.step(step.Staged{Attempt: id})
	effects := r.advance(r.m.cfg.GiveUp)
	if asked := len(sent[protocol.MayStart](effects, alice)); asked < 20 {
		t.Errorf("asked %d times more, want one a second", asked)
	}
	if len(only[step.StopAttempt](effects)) != 1 {
		t.Fatal("it is not given up")
	}
	r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
	if one[protocol.Exited](r, alice).Attempt != id {
		t.Error("its submitter does not hear of it")
	}
}

func TestARivalDoesNotAskWhileTheOwnerIsBusy(t *testing.T) {
	r := newRig(t)
	id := rival(r, false)
	r.step(step.OwnerBusy{})
	r.step(step.Staged{Attempt: id})
	none[protocol.MayStart](r)
	r.step(step.OwnerAway{})
	one[protocol.MayStart](r, alice)
}
