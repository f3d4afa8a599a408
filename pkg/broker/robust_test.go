package broker

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// heavyJob has items that fill the awards.
func heavyJob(count, inputs, path int) grid.Job {
	j := testJob(uint32(count))
	for i := range count {
		var item grid.Item
		for n := range inputs {
			name := fmt.Sprintf("/in/%d-%d-", i, n)
			item.Inputs = append(item.Inputs, grid.Input{
				Path: name + strings.Repeat("x", path), CID: "bdata", Bytes: math.MaxInt32,
			})
		}
		j.Items = append(j.Items, item)
	}
	return j
}

func TestAwardsKeepToTheLimits(t *testing.T) {
	for name, job := range map[string]grid.Job{
		"many tasks": testJob(3000), "long items": heavyJob(40, 10, 3000),
		"items that fit alone": heavyJob(4, 60, 3900),
	} {
		b := newBench(t, func(c *Config) { c.Requote = false }, "a")
		job.Spec.Args = []string{strings.Repeat("y", 10_000)}
		id := b.submit(job)
		b.offers(id, job.Count, "a")
		_, awards := sent[protocol.Award](append(b.refusal(id, self, true), b.pass(0)...))
		tasks := 0
		for _, a := range awards {
			if _, err := protocol.Encode(a); err != nil {
				t.Fatalf("%s: an award that cannot be sent: %v", name, err)
			}
			tasks += len(a.Tasks)
		}
		if tasks != int(job.Count) {
			t.Errorf("%s: %d of %d tasks were awarded, in %d messages", name, tasks, job.Count, len(awards))
		}
	}
}

func TestJobsThatCannotBeSaidAreRefused(t *testing.T) {
	manyInputs := testJob(1)
	for n := range 1000 {
		path := fmt.Sprintf("/in/%d%s", n, strings.Repeat("x", 400))
		manyInputs.Spec.Inputs = append(manyInputs.Spec.Inputs, grid.Input{Path: path, CID: "bdata"})
	}
	noText := testJob(1)
	noText.Items = []grid.Item{{Value: "\xff"}}
	for name, job := range map[string]grid.Job{
		"inputs": manyInputs, "item": heavyJob(1, 80, 3900), "UTF-8": noText,
	} {
		b := newBench(t, nil, "a")
		effects := b.do(step.Submit{Command: 1, Job: job})
		r, is := effects[0].(step.Reply)
		if !is || len(effects) != 1 || !errors.Is(r.Err, grid.ErrInvalid) {
			t.Errorf("%s: %v, want a reply with grid.ErrInvalid alone", name, effects)
		}
	}
}

// A site repeats an end until it is acknowledged. That is one failure.
func TestRepeatedFailureCountsOnce(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	end := protocol.Exited{Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{Cause: grid.CauseSandbox}}
	b.hear("a", end)
	b.hear("b", protocol.Declined{
		Attempts: []grid.AttemptID{attemptOf(id, 0, 2)}, Refusal: grid.Refusal{Reason: grid.ReasonCPUs},
	})
	b.hear(self, protocol.Declined{
		Attempts: []grid.AttemptID{attemptOf(id, 0, 3)}, Refusal: grid.Refusal{Reason: grid.ReasonCPUs},
	})
	for range 5 {
		one[protocol.ExitAck](t, b.hear("a", end))
	}
	if got := b.m.jobs.all[id].tasks[0]; b.faultIndex("a") != 1 || got.failures != 1 {
		t.Errorf("fault index %d, %d failures, want 1 and 1", b.faultIndex("a"), got.failures)
	}
}

// Declined awards say that the mesh is busy; they do not use up a task's tries.
func TestDeclinedAwardsAreNoFailures(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxTries = 2 }, "a")
	id := b.submit(testJob(1))
	for n := range 10 {
		b.m.jobs.all[id].answers = map[grid.SiteID]Answer{}
		b.hear("a", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(uint64(n+1), 1, 1)})
		b.refusal(id, self, true)
		b.hear("a", protocol.Declined{
			Attempts: []grid.AttemptID{attemptOf(id, 0, b.m.jobs.all[id].tasks[0].token)},
			Refusal:  grid.Refusal{Reason: grid.ReasonCPUs},
		})
	}
	b.hear("a", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(99, 1, 1)})
	b.pass(time.Second)
	token := b.m.jobs.all[id].tasks[0].token
	if token < 10 {
		t.Fatalf("token %d: the award was not repeated", token)
	}
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 0, token)}})
	b.hear("a", protocol.Exited{
		Attempt: attemptOf(id, 0, token), Exit: grid.Exit{Cause: grid.CauseSandbox},
	})
	if got := b.phase(id, 0); got.Ended() {
		t.Errorf("given up as %s after one failure", got)
	}
}

// A site that declines and quotes the same again would go on forever.
func TestDecliningWithTheSameQuoteIsNoOffer(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.offers(id, 1, "a")
	b.refusal(id, "b", false)
	b.refusal(id, self, true)
	quote := offer(9, 1, 1)
	b.hear("a", protocol.Declined{
		Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}, Refusal: grid.Refusal{Reason: grid.ReasonWorse},
		Quote: &quote,
	})
	if _, awards := sent[protocol.Award](b.last); len(awards) != 0 {
		t.Error("awarded right away to the site that has just declined the same")
	}
	b.wantPhase(id, 0, grid.PhaseWaiting)
}

// A late answer may serve waiting tasks; it does not make all sites be asked again.
func TestLateAnswersOpenNoRound(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.refusal(id, "a", false)
	b.refusal(id, self, false)
	b.pass(time.Second)
	b.wantPhase(id, 0, grid.PhaseWaiting)
	seq := b.m.jobs.all[id].seq
	b.refusal(id, "b", false)
	if b.m.jobs.all[id].round() != nil || b.m.jobs.all[id].seq != seq {
		t.Error("a late refusal opened a round")
	}
	b.hear("b", protocol.Bid{Job: id, Seq: seq, Offer: offer(3, 1, 1)})
	if to, _ := one[protocol.Award](t, b.last); to != "b" {
		t.Errorf("the late offer went unused: awarded to %q", to)
	}
}

// An answer to an earlier announcement does not end the round of a later one.
func TestOvertakenAnswersEndNoRound(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.pass(5 * time.Second)
	for b.m.jobs.all[id].round() == nil {
		b.pass(100 * time.Millisecond)
	}
	seq := b.m.jobs.all[id].seq
	refusal := grid.Refusal{Reason: grid.ReasonMemory, Want: 2, Have: 1}
	b.hear("a", protocol.Bid{Job: id, Seq: seq, Offer: offer(3, 1, 1)})
	b.hear("a", protocol.Refuse{Job: id, Seq: seq - 1, Refusal: refusal})
	if b.m.jobs.all[id].offers["a"] == nil {
		t.Error("an overtaken refusal took a newer offer away")
	}
}

// A run counts its announcements where no site has answered them before.
func TestAnnouncementNumbersGoOnAfterARestart(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.submit(testJob(1))
	b.pass(10 * time.Second)
	before := b.m.jobs.all[id].seq
	again := New(b.m.cfg)
	if err := again.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	b.m, b.timers = again, make(map[step.TimerKey]time.Time)
	b.do(step.Boot{Incarnation: 2})
	_, announce := one[protocol.Announce](t, b.pass(2*time.Second))
	if announce.Seq < before+64 {
		t.Errorf("announced with number %d after %d: sites that keep the last 64 would not answer",
			announce.Seq, before)
	}
}

func TestGreatestTokenIsFenced(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.started(1)
	_, fence := one[protocol.Fence](t, b.hear("a", protocol.Renew{
		Attempts: []grid.AttemptID{attemptOf(id, 0, math.MaxUint64)},
	}))
	if err := fence.Validate(); err != nil {
		t.Error(err)
	}
}

func TestNonsenseIsCountedAndHarmless(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.started(1)
	for _, in := range []step.Input{
		step.MessageReceived{From: "", Message: protocol.Vacancy{Jobs: []grid.JobID{id}}},
		step.MessageReceived{From: "a", Message: protocol.Bid{Job: id, Seq: 1, Offer: grid.Offer{ID: 1}}},
		step.MessageReceived{From: "a", Message: protocol.Accepted{}},
		step.PeerSeen{Site: "c", Capability: grid.Capability{DownBps: -1}},
		step.CapacityChanged{Capability: grid.Capability{UpBps: -1}},
	} {
		effects := b.do(in)
		r, is := effects[0].(step.Report)
		if len(effects) != 1 || !is || r.Event != "invalid" {
			t.Errorf("%+v: %+v, want one report of something invalid", in, effects)
		}
	}
	b.do(step.MessageReceived{From: "a"})
	b.wantPhase(id, 0, grid.PhaseRunning)
}
