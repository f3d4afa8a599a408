package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// met lets a bench see a site in a line of runs.
func (b *bench) met(site grid.SiteID, line uint64) {
	b.Helper()
	b.do(step.PeerGone{Site: site, Refusing: true})
	b.do(step.PeerSeen{Site: site, Name: string(site), Line: line})
}

// runningIn is a bench with a task that runs under a lease at site a, in line 7.
func runningIn(t *testing.T) (*bench, grid.AttemptID) {
	t.Helper()
	b := newBench(t, nil, "a", "b")
	b.met("a", 7)
	id := b.started(1)
	return b, attemptOf(id, 0, 1)
}

// Whatever another machine with a site's identity says of an attempt, and whatever it asks for:
// the task stays where it may run until its lease has ended.
func TestAnotherLineOfASiteEndsNoLease(t *testing.T) {
	stopped := grid.Exit{Cause: grid.CauseSiteRestart}
	for name, msg := range map[string]func(grid.AttemptID) protocol.Message{
		"an end": func(a grid.AttemptID) protocol.Message {
			return protocol.Exited{Attempt: a, Exit: stopped}
		},
		"a demand": func(a grid.AttemptID) protocol.Message { return renewOf(5, a) },
		"an answer": func(a grid.AttemptID) protocol.Message {
			return protocol.Accepted{Renewal: 5, Attempts: []grid.AttemptID{a}}
		},
		"a list without it": func(grid.AttemptID) protocol.Message {
			return protocol.Renew{Renewal: 1 << 40, Attempts: []grid.AttemptID{
				attemptOf("zzzzzzzzzzzzzzzz", 0, 1),
			}, List: &protocol.Listing{}}
		},
		"nothing left": func(a grid.AttemptID) protocol.Message {
			return protocol.Renew{
				Renewal: 1 << 40, Attempts: []grid.AttemptID{a}, Left: []time.Duration{0},
			}
		},
		"a decline": func(a grid.AttemptID) protocol.Message {
			return protocol.Declined{
				Attempts: []grid.AttemptID{a}, Refusal: grid.Refusal{Reason: grid.ReasonStale},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, attempt := runningIn(t)
			_, before := b.m.jobs.task(attempt.Task)
			end := before.leaseEnd
			b.met("a", 8)
			for _, e := range b.hear("a", msg(attempt)) {
				send, is := e.(step.Send)
				if _, granted := send.Message.(protocol.Lease); is && granted {
					t.Errorf("it is granted %+v", send.Message)
				}
				if _, awarded := send.Message.(protocol.Award); is && awarded {
					t.Errorf("the task moves: %+v", send.Message)
				}
			}
			if s, _ := b.m.Job(attempt.Task.Job); !s.Tasks[0].Astray.Equal(end) {
				t.Errorf("it is shown as astray until %s, want %s", s.Tasks[0].Astray, end)
			}
			_, now := b.m.jobs.task(attempt.Task)
			if !now.active() || now.token != attempt.Token || !now.leaseEnd.Equal(end) {
				t.Errorf("the task is %s with token %d until %s, want it untouched until %s",
					now.phase, now.token, now.leaseEnd, end)
			}
		})
	}
}

func renewOf(renewal uint64, attempts ...grid.AttemptID) protocol.Renew {
	return protocol.Renew{Renewal: renewal, Attempts: attempts}
}

// A later run in the same line knows that the earlier one has ended: the task moves
// immediately. So it does after a certificate, and when the lease has ended.
func TestWhatEndsALeaseAfterAnotherRun(t *testing.T) {
	restarted := func(a grid.AttemptID) step.Input {
		return step.MessageReceived{From: "a", Message: protocol.Exited{
			Attempt: a, Exit: grid.Exit{Cause: grid.CauseSiteRestart},
		}}
	}
	for name, c := range map[string]struct {
		line uint64
		in   func(grid.AttemptID) step.Input
		wait time.Duration
	}{
		"a restart":   {7, restarted, 0},
		"an old peer": {0, restarted, 0},
		"a certificate": {8, func(a grid.AttemptID) step.Input {
			return step.AttemptsDied{Site: "a", Attempts: []grid.AttemptID{a}}
		}, 0},
		"the lease's end": {8, restarted, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b, attempt := runningIn(t)
			b.met("a", c.line)
			b.do(c.in(attempt))
			if c.wait > 0 {
				b.pass(c.wait)
			}
			_, task := b.m.jobs.task(attempt.Task)
			if task.active() && task.token == attempt.Token {
				t.Errorf("the task is still %s at %s", task.phase, task.site)
			}
			if task.silent || !task.away.IsZero() || b.m.peers.silent("a") {
				t.Error("the attempt is waited for, or its site's answers are not")
			}
		})
	}
}

// A result that had come before the state was copied counts.
func TestAResultCountsInAnyLine(t *testing.T) {
	b, attempt := runningIn(t)
	b.met("a", 8)
	b.hear("a", protocol.Exited{Attempt: attempt, Exit: grid.Exit{Cause: grid.CauseExited}})
	b.wantPhase(attempt.Task.Job, 0, grid.PhaseDone)
}

// A restarted submitter knows which line it has granted to.
func TestTheLineOfALeaseSurvivesARestart(t *testing.T) {
	b, attempt := runningIn(t)
	again := New(Default(self))
	if err := again.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if _, task := again.jobs.task(attempt.Task); task.line != 7 {
		t.Errorf("line %d, want 7", task.line)
	}
}

// awardedHere brings a job's task to be awarded to the submitter's own site.
func (b *bench) awardedHere(id grid.JobID) grid.AttemptID {
	b.Helper()
	_, awards := sent[protocol.Award](b.offers(id, 1, self))
	for end := b.now.Add(time.Second); len(awards) == 0 && b.now.Before(end); {
		_, awards = sent[protocol.Award](b.pass(time.Millisecond))
	}
	if len(awards) != 1 {
		b.Fatalf("awarded %d times, want once", len(awards))
	}
	return attemptOf(id, 0, awards[0].Tasks[0].Token)
}

// leasesHere counts the leases that its own site gets when it asks for one.
func (b *bench) leasesHere(msg protocol.Message) int {
	b.Helper()
	_, leases := sent[protocol.Lease](b.hear(self, msg))
	return len(leases)
}

// A copy of this machine that ran while it was down knows its jobs, and is told that it is the
// site no more when a member has met this run: until then nothing of them starts here.
func TestAfterAStartACopyHasTimeToBeTold(t *testing.T) {
	const before = time.Millisecond
	for name, c := range map[string]struct {
		known, back []grid.SiteID
		wait        time.Duration
	}{
		"a member is met":    {[]grid.SiteID{"b"}, []grid.SiteID{"b"}, toldWithin},
		"none is met":        {[]grid.SiteID{"b"}, nil, Default(self).BootGrace},
		"there is no member": {nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, c.known...)
			old := b.awardedHere(b.submit(testJob(1)))
			b.restart(c.back...)
			if c.wait > 0 {
				b.pass(c.wait - before)
				if b.leasesHere(renewOf(2, old)) != 0 {
					t.Errorf("%s after the start it gets a lease", c.wait-before)
				}
				b.pass(before)
			}
			if b.leasesHere(renewOf(3, old)) != 1 {
				t.Errorf("%s after the start it gets no lease", c.wait)
			}
		})
	}
}

// What is awarded after a start is no different if its job is older, and nobody else gets it
// meanwhile. No copy knows a younger job.
func TestAfterAStartAnAwardOfAnOlderJobWaits(t *testing.T) {
	b := newBench(t, nil, "b")
	old := b.submit(testJob(1))
	b.pass(time.Millisecond)
	b.restart()
	b.pass(b.m.cfg.BackoffMin)
	waiting := b.awardedHere(old)
	if b.leasesHere(protocol.Accepted{Attempts: []grid.AttemptID{waiting}, Renewal: 1}) != 0 {
		t.Error("it gets a lease immediately")
	}
	young := b.awardedHere(b.submit(testJob(1)))
	if b.leasesHere(protocol.Accepted{Attempts: []grid.AttemptID{young}, Renewal: 2}) != 1 {
		t.Error("a job of this run gets no lease")
	}
	b.pass(b.m.cfg.BootGrace - b.now.Sub(b.m.bootedAt))
	if b.leasesHere(renewOf(3, waiting)) != 1 {
		t.Error("it gets no lease")
	}
	b.wantSite(old, 0, self, waiting.Token)
}
