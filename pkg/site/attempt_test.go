package site

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func TestLifeOfAnAttempt(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	if got := one[protocol.Progress](r, alice); got.Phase != grid.PhaseRunning {
		t.Errorf("started: progress %+v", got)
	}
	r.exited(id)
	exit := one[protocol.Exited](r, alice)
	if exit.Attempt != id || exit.Exit.Cause != grid.CauseExited {
		t.Errorf("exited %+v", exit)
	}
	if got := r.m.Status().Free.MilliCPUs; got != 4_000 {
		t.Errorf("free after the end: %d", got)
	}
	r.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	want := []step.Discard{{Attempt: id, Outputs: []grid.CID{"bout", "bstdout"}}}
	if diff := cmp.Diff(want, only[step.Discard](r.out)); diff != "" {
		t.Errorf("discards (-want +got):\n%s", diff)
	}
	if got := len(r.facts.All()); got != 0 {
		t.Errorf("%d facts left", got)
	}
}

// Exited is repeated after 1, 2, 4, ... 30 s until it is acknowledged.
func TestExitedIsRepeated(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	r.exited(id)
	var at []time.Duration
	for range 120 {
		if len(sent[protocol.Exited](r.advance(time.Second), alice)) > 0 {
			at = append(at, r.now.Sub(epoch()))
		}
	}
	want := []time.Duration{1, 3, 7, 15, 31, 61, 91}
	for i := range want {
		want[i] = time.Duration(int64(want[i]) * int64(time.Second))
	}
	if !slices.Equal(at, want) {
		t.Errorf("repeated at %v, want %v", at, want)
	}
}

func TestResultIsKeptForAWhile(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ResultHold = time.Minute })
	id := r.running(job1, alice, 1)[0]
	r.exited(id)
	r.advance(59 * time.Second)
	if len(r.m.Status().Attempts) != 1 {
		t.Fatal("the result is gone too early")
	}
	r.advance(2 * time.Second)
	if got := only[step.Discard](r.out); len(got) != 1 || len(r.m.Status().Attempts) != 0 {
		t.Errorf("discards %v", got)
	}
}

func TestAcknowledgementsThatDoNotCount(t *testing.T) {
	r := newRig(t)
	running := r.running(job1, alice, 1)[0]
	ended := r.running(job2, alice, 1)[0]
	r.exited(ended)
	for _, tt := range []struct {
		from  grid.SiteID
		id    grid.AttemptID
		event string
	}{
		{bob, ended, eventNotSubmitter},
		{alice, running, eventPrematureAck},
		{alice, attemptID(job3, 0, 1), eventUnknownAttempt},
	} {
		r.receive(tt.from, protocol.ExitAck{Attempts: []grid.AttemptID{tt.id}})
		r.reported(tt.event)
	}
	if got := len(r.m.Status().Attempts); got != 2 {
		t.Errorf("%d attempts left, want 2", got)
	}
}

func TestStagingFails(t *testing.T) {
	r := newRig(t)
	id := r.accepted(job1, alice, 1)[0]
	r.step(step.Staged{Attempt: id, Problem: "no holder answered"})
	got := one[protocol.Exited](r, alice).Exit
	if got.Cause != grid.CauseData || got.Text != "no holder answered" {
		t.Errorf("exit %+v", got)
	}
	if r.m.Status().Free.MilliCPUs != 4_000 {
		t.Errorf("its capacity is not free")
	}
}

// Staging is told twice a second at most, and its end always.
func TestStageProgressIsLimited(t *testing.T) {
	r := newRig(t)
	id := r.accepted(job1, alice, 1)[0]
	var told []int64
	for i := range 10 {
		r.step(step.StageProgress{Attempt: id, Done: int64(i+1) * 10, Total: 100})
		for _, p := range sent[protocol.Progress](r.out, alice) {
			told = append(told, p.Done)
		}
		r.now = r.now.Add(200 * time.Millisecond)
	}
	if want := []int64{10, 40, 70, 100}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// A program that is compiled first is said to be, until it begins.
func TestPreparingIsTold(t *testing.T) {
	r := newRig(t)
	run := r.running(job1, alice, 1)[0]
	for _, preparing := range []bool{true, false} {
		r.step(step.AttemptStarted{Attempt: run, Preparing: preparing})
		want := protocol.Progress{Attempt: run, Phase: grid.PhaseRunning}
		if preparing {
			want.Reason = grid.ReasonPreparing
		}
		sent := only[step.Send](r.out)
		if len(sent) != 1 || sent[0].To != alice || sent[0].Message != protocol.Message(want) {
			t.Errorf("preparing %t: told %+v, want %+v", preparing, sent, want)
		}
	}
}

// Inputs that come too late, twice, or for nobody change nothing.
func TestInputsOutOfPlace(t *testing.T) {
	r := newRig(t)
	run := r.running(job1, alice, 1)[0]
	unknown := attemptID(job3, 0, 1)
	for _, tt := range []struct {
		in    step.Input
		event string
	}{
		{step.Staged{Attempt: run}, eventStale},
		{step.StageProgress{Attempt: run}, eventStale},
		{step.AttemptStarted{Attempt: run}, eventStale},
		{step.AttemptResumed{Attempt: run}, eventStale},
		{step.Staged{Attempt: unknown}, eventUnknownAttempt},
		{step.AttemptExited{Attempt: unknown}, eventUnknownAttempt},
		{step.AttemptFrozen{Attempt: unknown}, eventUnknownAttempt},
		{step.TimerFired{Key: step.TimerKey{Name: timerWatch, ID: unknown.String()}}, eventStale},
		{step.TimerFired{Key: step.TimerKey{Name: timerExited, ID: run.String()}}, eventStale},
		{step.TimerFired{Key: step.TimerKey{Name: timerExited, ID: "nonsense"}}, eventStale},
		{step.TimerFired{Key: step.TimerKey{Name: timerRenew, ID: "nobody"}}, eventStale},
		{step.TimerFired{Key: step.TimerKey{Name: timerVacancy}}, eventStale},
		{step.TimerFired{Key: step.TimerKey{Name: timerPause}}, eventStale},
		{step.TimerFired{Key: step.TimerKey{Name: "of another version"}}, eventStale},
		{step.Resume{}, eventStale},
		{step.Pause{Until: epoch()}, eventStale},
		{step.Submit{}, eventNotForSite},
		{step.Boot{Incarnation: 2}, eventBootedTwice},
	} {
		before := r.m.Status()
		r.step(tt.in)
		r.reported(tt.event)
		if diff := cmp.Diff(before, r.m.Status()); diff != "" {
			t.Errorf("%T changed the site:\n%s", tt.in, diff)
		}
		if len(only[step.Send](r.out)) > 0 {
			t.Errorf("%T sends %+v", tt.in, r.out)
		}
	}
}

func TestInputBeforeBoot(t *testing.T) {
	r := unbooted(t)
	r.receive(alice, announcement(job1, alice))
	r.reported(eventNotBooted)
	if len(r.out) != 1 {
		t.Errorf("effects %+v", r.out)
	}
}

// Whatever a sandbox reports, what is sent is valid.
func TestExitIsPresentable(t *testing.T) {
	for name, exit := range map[string]grid.Exit{
		"no cause":      {},
		"long text":     {Cause: grid.CauseMemory, Text: strings.Repeat("ä", 1_000)},
		"no text":       {Cause: grid.CauseMemory, Text: "\xff\xfe"},
		"negative time": {Cause: grid.CauseExited, Wall: -1},
		"outside":       {Cause: grid.CauseExited, Outputs: []grid.Produced{{Path: "../x", CID: "b"}}},
	} {
		r := newRig(t)
		id := r.running(job1, alice, 1)[0]
		r.step(step.AttemptExited{Attempt: id, Exit: exit}) // the rig validates what is sent
		if got := one[protocol.Exited](r, alice).Exit; got.Cause == 0 {
			t.Errorf("%s: exit %+v", name, got)
		}
	}
}

func TestFenceAndCancel(t *testing.T) {
	fence := func(token grid.Token) protocol.Message {
		return protocol.Fence{Below: []grid.AttemptID{attemptID(job1, 0, token)}}
	}
	for _, tt := range []struct {
		name  string
		from  grid.SiteID
		msg   protocol.Message
		stops bool
	}{
		{"fence above", alice, fence(2), true},
		{"fence at", alice, fence(1), false},
		{"fence by another", bob, fence(2), false},
		{"cancel", alice, protocol.Cancel{Job: job1}, true},
		{"cancel by another", bob, protocol.Cancel{Job: job1}, false},
		{"cancel of an unknown job", alice, protocol.Cancel{Job: job2}, false},
		{"ended", alice, protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearEnded}, true},
		{"placed", alice, protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearPlaced}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			id := r.running(job1, alice, 1)[0]
			r.receive(tt.from, tt.msg)
			if got := only[step.StopAttempt](r.out); (len(got) == 1) != tt.stops {
				t.Fatalf("stops %v, want %v", got, tt.stops)
			}
			if tt.from == bob {
				r.reported(eventNotSubmitter)
			}
			if !tt.stops {
				return
			}
			r.exited(id) // it was quicker: that interests nobody any more
			none[protocol.Exited](r)
			if got := only[step.Discard](r.out); len(got) != 1 || len(got[0].Outputs) != 2 {
				t.Errorf("discards %+v", got)
			}
			if len(r.facts.All()) != 0 || len(r.m.Status().Attempts) != 0 {
				t.Errorf("something is left: %+v", r.m.Status().Attempts)
			}
		})
	}
}

// An award that a fence has overtaken is stale; the fence's own token is not.
func TestLateAwardAfterAFence(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice))
	r.receive(alice, protocol.Fence{Below: []grid.AttemptID{attemptID(job1, 0, 3)}})
	r.receive(alice, award(job1, offer, 1, 2))
	r.declinedWith(alice, grid.ReasonStale, attemptID(job1, 0, 2))
	r.receive(alice, award(job1, offer, 1, 3))
	one[protocol.Accepted](r, alice)
}

// An ended attempt that waits for its acknowledgement is dropped by a fence immediately.
func TestFenceDropsAnEnd(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	r.exited(id)
	r.receive(alice, protocol.Fence{Below: []grid.AttemptID{attemptID(job1, 0, 2)}})
	if got := only[step.Discard](r.out); len(got) != 1 || len(r.m.Status().Attempts) != 0 {
		t.Errorf("discards %v", got)
	}
	if got := sent[protocol.Exited](r.advance(time.Minute), alice); len(got) != 0 {
		t.Errorf("still says %v", got)
	}
}

// A submitter that was restarted knows only that it awarded its attempts.
func TestReturningSubmitterHearsOfItsAttempts(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	r.step(step.PeerSeen{Site: bob})
	none[protocol.Renew](r)
	none[protocol.Progress](r)
	for _, want := range []grid.Phase{grid.PhaseRunning, grid.PhaseFrozen} {
		if want == grid.PhaseFrozen {
			r.step(step.AttemptFrozen{Attempt: id})
		}
		r.step(step.PeerSeen{Site: alice})
		if got := one[protocol.Renew](r, alice).Attempts; len(got) != 1 || got[0] != id {
			t.Errorf("asks for the leases of %v, want %s", got, id)
		}
		if got := one[protocol.Progress](r, alice); got.Attempt != id || got.Phase != want {
			t.Errorf("tells %+v, want that %s is %s", got, id, want)
		}
	}
}
