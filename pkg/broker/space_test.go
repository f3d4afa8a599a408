package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A submitter's full disk is no fault of the site that has the result: it is left there for
// as long as it takes, and fetched when there is space.
func TestAFullDiskBlamesNobodyAndLosesNothing(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	b.hear("a", protocol.Exited{Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{
		Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/out", CID: "bout", Bytes: 1},
	}})
	full := step.Collected{Attempt: attemptOf(id, 0, 1), Problem: "the disk is full", Local: true}
	for range 60 { // far beyond CollectGiveUp
		b.do(full)
		if _, acks := sent[protocol.ExitAck](b.last); len(acks) > 0 {
			t.Fatal("the site was told that it may forget the result")
		}
		b.wantPhase(id, 0, grid.PhaseCollecting)
		if got := count[step.Collect](b.pass(time.Minute)); got != 1 {
			t.Fatalf("fetched %d times within a minute, want 1: the last answer is awaited", got)
		}
	}
	if s, _ := b.m.Job(id); s.Tasks[0].Standing != grid.ReasonDiskFull {
		t.Errorf("the task stands for %q, want the reason", s.Tasks[0].Standing)
	}
	if n := b.faultIndex("a"); n != 0 {
		t.Errorf("the fault index of the site is %d, want 0", n)
	}
	b.do(full)
	if got := count[step.Collect](b.do(step.SpaceChanged{})); got != 1 {
		t.Fatalf("with space again fetched %d times, want 1", got)
	}
	b.do(step.Collected{Attempt: attemptOf(id, 0, 1)})
	b.wantPhase(id, 0, grid.PhaseDone)
}

// The time in which outputs must be had counts from when they could be stored.
func TestAfterAFullDiskTheFetchHasItsTime(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	b.hear("a", protocol.Exited{Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{
		Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/out", CID: "bout", Bytes: 1},
	}})
	for range 30 {
		b.do(step.Collected{Attempt: attemptOf(id, 0, 1), Problem: "the disk is full", Local: true})
		b.pass(spaceRetry)
	}
	b.do(step.Collected{Attempt: attemptOf(id, 0, 1), Problem: "unreachable"})
	b.wantPhase(id, 0, grid.PhaseCollecting)
	if s, _ := b.m.Job(id); s.Tasks[0].Standing != grid.ReasonNone {
		t.Errorf("the task stands for %q, want nothing: there is space", s.Tasks[0].Standing)
	}
}

func TestAFullDiskRefusesNewJobs(t *testing.T) {
	b := newBench(t, nil, "a")
	b.do(step.SpaceChanged{Full: true})
	effects := b.do(step.Submit{Command: 1, Job: testJob(1)})
	r, is := effects[0].(step.Reply)
	if !is || len(effects) != 1 || !errors.Is(r.Err, step.ErrNoSpace) {
		t.Fatalf("%v, want a reply with ErrNoSpace alone", effects)
	}
	b.do(step.SpaceChanged{})
	b.submit(testJob(1))
}

// count counts the effects of one type.
func count[E step.Effect](effects []step.Effect) (n int) {
	for _, e := range effects {
		if _, is := e.(E); is {
			n++
		}
	}
	return n
}
