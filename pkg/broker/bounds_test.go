package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// takes accepts what site a was awarded, and returns its attempt.
func (b *bench) takes(id grid.JobID) grid.AttemptID {
	b.Helper()
	b.offers(id, 1, "a", "b", self)
	attempt := attemptOf(id, 0, 1)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attempt}, Renewal: 1})
	b.wantPhase(id, 0, grid.PhaseStaging)
	return attempt
}

// renews lets a site ask for leases every three seconds, and says after what time none came.
func (b *bench) renews(id grid.AttemptID, most time.Duration, and func()) (time.Duration, bool) {
	b.Helper()
	for passed := time.Duration(0); passed < most; passed += 3 * time.Second {
		effects := b.hear("a", protocol.Renew{Renewal: 9, Attempts: []grid.AttemptID{id}})
		if _, leases := sent[protocol.Lease](effects); len(leases) == 0 {
			return passed, true
		}
		if and != nil {
			and()
		}
		b.pass(3 * time.Second)
	}
	return most, false
}

// A site that accepts, renews and never starts loses the task, and the blame is its own.
func TestAnAttemptThatNeverStartsIsMoved(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	attempt := b.takes(b.submit(testJob(1)))
	if after, moved := b.renews(attempt, time.Hour, nil); !moved || after != startGrace {
		t.Fatalf("no lease after %s (%t), want after %s", after, moved, startGrace)
	}
	if to, fence := one[protocol.Fence](t, b.last); to != "a" || fence.Below[0].Token != 2 {
		t.Fatalf("%s is fenced off by %+v", to, fence)
	}
	b.wantPhase(attempt.Task.Job, 0, grid.PhaseStaging) // its lease may run still
	effects := b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin)
	if n := b.faultIndex("a"); n != 1 {
		t.Errorf("the fault index of the site is %d, want 1", n)
	}
	if to, _ := sent[protocol.Award](effects); slices.Contains(to, "a") {
		t.Error("it got the task again")
	}
	s, _ := b.m.Job(attempt.Task.Job)
	if tries := s.Tasks[0].Tries; len(tries) != 1 || tries[0].Outcome != "was staging for too long" {
		t.Errorf("tries: %+v", tries)
	}
	effects = b.hear("a", protocol.Renew{Renewal: 10, Attempts: []grid.AttemptID{attempt}})
	if _, leases := sent[protocol.Lease](effects); len(leases) > 0 {
		t.Error("it got a lease again")
	}
}

// A task that says its limit is moved when it has run for longer.
func TestAnAttemptThatNeverEndsIsMoved(t *testing.T) {
	job := testJob(1)
	job.Spec.TimeLimit = 5 * time.Minute
	b := newBench(t, nil, "a", "b")
	attempt := b.takes(b.submit(job))
	b.hear("a", protocol.Progress{Attempt: attempt, Phase: grid.PhaseRunning})
	want := 5*time.Minute + 30*time.Second + runGrace
	if after, moved := b.renews(attempt, time.Hour, nil); !moved || after != want {
		t.Fatalf("no lease after %s (%t), want after %s", after, moved, want)
	}
	b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin)
	if b.phase(attempt.Task.Job, 0) > grid.PhaseAwarded {
		t.Errorf("the task is %s, want it to look for another site", b.phase(attempt.Task.Job, 0))
	}
}

// Without a limit it may be the estimate that is wrong: each attempt gets twice the time.
func TestWithoutALimitTheBoundGrows(t *testing.T) {
	traits := traitsOf(testJob(1), &Config{})
	if first := traits.runBound(time.Hour, 0); first != runUnlimited*11/10+runGrace {
		t.Errorf("an hour may take %s", first)
	}
	if first := traits.runBound(10*time.Hour, 0); first != 110*time.Hour+runGrace {
		t.Errorf("ten hours may take %s", first)
	}
	if second := traits.runBound(10*time.Hour, 1); second != 220*time.Hour+runGrace {
		t.Errorf("the second time ten hours may take %s", second)
	}
	for overruns := range 100 {
		if d := traits.runBound(grid.MaxRuntime, overruns); d < grid.MaxRuntime {
			t.Fatalf("after %d overruns a year may take %s", overruns, d)
		}
	}
}

// Frozen time does not count against the limit, but has a bound of its own. An owner who
// needs the machine is no fault.
func TestFrozenTimeHasABoundOfItsOwn(t *testing.T) {
	job := testJob(1)
	job.Spec.TimeLimit = 5 * time.Minute
	b := newBench(t, nil, "a", "b")
	attempt := b.takes(b.submit(job))
	b.hear("a", protocol.Progress{Attempt: attempt, Phase: grid.PhaseRunning})
	b.renews(attempt, 4*time.Minute, nil)
	frozen := protocol.Progress{
		Attempt: attempt, Phase: grid.PhaseFrozen, Reason: grid.ReasonOwnerBusy,
	}
	b.hear("a", frozen)
	if after, moved := b.renews(attempt, time.Hour, nil); moved {
		t.Fatalf("frozen for its owner's sake it has lost its lease after %s", after)
	}
	b.hear("a", protocol.Progress{Attempt: attempt, Phase: grid.PhaseRunning})
	if after, moved := b.renews(attempt, time.Hour, nil); !moved || after > 4*time.Minute {
		t.Fatalf("it ran on for %s (%t), want what its limit has left", after, moved)
	}

	b = newBench(t, nil, "a", "b")
	attempt = b.takes(b.submit(job))
	b.hear("a", protocol.Progress{Attempt: attempt, Phase: grid.PhaseRunning})
	b.hear("a", frozen)
	if after, moved := b.renews(attempt, 3*time.Hour, nil); !moved || after != frozenGrace {
		t.Fatalf("frozen forever it lost its lease after %s (%t)", after, moved)
	}
	b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin)
	if n := b.faultIndex("a"); n != 0 {
		t.Errorf("the fault index of the site is %d, want 0: its owner came first", n)
	}
}

// Data that comes slowly is progress, as long as it comes at a rate that is one.
func TestStagingThatProgressesIsNotMoved(t *testing.T) {
	job := testJob(1)
	job.Spec.Module.Bytes = 2 * 3600 * stagingFloor
	b := newBench(t, nil, "a", "b")
	attempt := b.takes(b.submit(job))
	done := int64(0)
	grows := func() {
		done++
		b.hear("a", protocol.Progress{
			Attempt: attempt, Phase: grid.PhaseStaging, Done: done, Total: job.Spec.Module.Bytes,
		})
	}
	if after, moved := b.renews(attempt, 4*time.Hour, grows); !moved ||
		after != 2*time.Hour+startGrace {
		t.Errorf("a byte each second lost its lease after %s (%t)", after, moved)
	}
}

// A start that was planned is waited for.
func TestAPlannedStartIsWaitedFor(t *testing.T) {
	for name, plan := range map[string]func(*grid.Job, *grid.Offer, time.Time){
		"quoted": func(_ *grid.Job, o *grid.Offer, _ time.Time) { o.Parts.Wait = 30 * time.Minute },
		"not before": func(j *grid.Job, _ *grid.Offer, now time.Time) {
			j.Spec.Window.NotBefore = now.Add(2 * time.Hour)
		},
	} {
		b := newBench(t, nil, "a")
		job, o := testJob(1), offer(1, 1, 1)
		plan(&job, &o, b.now)
		id := b.submit(job)
		b.refusal(id, self, true)
		b.hear("a", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: o})
		attempt := attemptOf(id, 0, 1)
		b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attempt}, Renewal: 1})
		after, moved := b.renews(attempt, 5*time.Hour, nil)
		if !moved || after != 2*time.Hour+startGrace {
			t.Errorf("%s: no lease after %s (%t), want after the start", name, after, moved)
		}
	}
}

// A long lease ends with the bound.
func TestALongLeaseEndsWithTheBound(t *testing.T) {
	job := testJob(1)
	job.Spec.Unattended, job.Spec.TimeLimit = grid.UnattendedFinish, time.Hour
	b := newBench(t, nil, "a", "b")
	attempt := b.takes(b.submit(job))
	b.hear("a", protocol.Progress{Attempt: attempt, Phase: grid.PhaseRunning})
	_, lease := one[protocol.Lease](t, b.hear("a", renew(2, time.Second, attempt)))
	if want := time.Hour + 6*time.Minute + runGrace; lease.Duration != want {
		t.Errorf("a lease of %s, want %s", lease.Duration, want)
	}
}

// Sites that lose a task do not use up its tries, but it waits longer and longer.
func TestLossesAreNoTries(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxTries = 2 }, "a", "b")
	id := b.submit(testJob(1))
	start := b.now
	for n := range 12 {
		var attempt grid.AttemptID
		for attempt.Token == 0 {
			if j := b.m.jobs.all[id]; j.round() != nil {
				b.offers(id, 1, "a", "b", self)
			}
			if to, awards := sent[protocol.Award](b.last); len(awards) > 0 {
				attempt = attemptOf(id, 0, awards[0].Tasks[0].Token)
				b.hear(to[0], protocol.Accepted{Attempts: []grid.AttemptID{attempt}, Renewal: 1})
				break
			}
			b.pass(time.Second)
			if b.now.Sub(start) > time.Hour {
				t.Fatalf("attempt %d is not awarded: the task is %s", n, b.phase(id, 0))
			}
		}
		b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin)
	}
	if rest := b.m.jobs.all[id].tasks[0].rest.Sub(b.now); rest != b.m.cfg.BackoffMax {
		t.Errorf("after twelve losses it rests for %s", rest)
	}
	if b.phase(id, 0).Ended() {
		t.Errorf("the task is %s", b.phase(id, 0))
	}
}

// lostAt brings an attempt to run at a, loses it, and lets b run the task.
func (b *bench) lostAt(tune func(*grid.Job)) (first, second grid.AttemptID) {
	b.Helper()
	job := testJob(1)
	if tune != nil {
		tune(&job)
	}
	first = b.takes(b.submit(job))
	id := first.Task.Job
	b.hear("a", protocol.Progress{Attempt: first, Phase: grid.PhaseRunning})
	b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin)
	b.pass(time.Millisecond)
	b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(77, 1, 1)})
	b.refusal(id, "a", false)
	b.refusal(id, self, true)
	second = attemptOf(id, 0, 2)
	if to, _ := one[protocol.Award](b.T, b.last); to != "b" {
		b.Fatalf("awarded to %s, want b", to)
	}
	b.hear("b", protocol.Accepted{Attempts: []grid.AttemptID{second}, Renewal: 1})
	b.hear("b", protocol.Progress{Attempt: second, Phase: grid.PhaseRunning})
	return first, second
}

func ended(id grid.AttemptID, outputs ...string) protocol.Exited {
	exit := grid.Exit{Cause: grid.CauseExited}
	for _, path := range outputs {
		exit.Outputs = append(exit.Outputs, grid.Produced{Path: path, CID: "bout", Bytes: 1})
	}
	return protocol.Exited{Attempt: id, Exit: exit}
}

// A good result counts although its attempt was given up: what has begun since is fenced off.
func TestALateResultCounts(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	first, second := b.lostAt(nil)
	effects := b.hear("a", ended(first))
	if to, fence := one[protocol.Fence](t, effects); to != "b" || fence.Below[0].Token != 3 {
		t.Errorf("%s is fenced off by %+v, want b", to, fence)
	}
	if to, ack := one[protocol.ExitAck](t, effects); to != "a" || ack.Attempts[0] != first {
		t.Errorf("%s is told that %v was heard, want a", to, ack.Attempts)
	}
	b.wantPhase(first.Task.Job, 0, grid.PhaseDone)
	if s, _ := b.m.Job(first.Task.Job); s.Tasks[0].Site != "a" {
		t.Errorf("the result is that of %s, want a", s.Tasks[0].Site)
	}
	one[protocol.ExitAck](t, b.hear("b", ended(second)))
}

// A late result that cannot be had starts nothing before the attempt that was fenced off for
// it has lost its lease, also across a restart.
func TestALateResultThatIsGoneStartsNothingTwice(t *testing.T) {
	for _, restart := range []string{"never", "while it is fetched", "when it is gone"} {
		b := newBench(t, nil, "a", "b")
		first, _ := b.lostAt(func(j *grid.Job) { j.Spec.Outputs = []grid.Output{{Path: "/out"}} })
		b.do(step.PeerSeen{Site: "c"})
		b.hear("a", ended(first, "/out"))
		b.wantPhase(first.Task.Job, 0, grid.PhaseCollecting)
		free := b.now.Add(b.m.cfg.Lease)
		if restart == "while it is fetched" {
			b.restart("a", "b", "c")
		}
		b.m.jobs.all[first.Task.Job].tasks[0].collectBy = b.now
		b.do(step.Collected{Attempt: first, Problem: "gone"})
		if restart == "when it is gone" {
			b.restart("a", "b", "c")
		}
		for range 100 {
			if b.m.jobs.all[first.Task.Job].round() != nil {
				bid := protocol.Bid{Job: first.Task.Job, Seq: b.m.asked(first.Task.Job).seq}
				bid.Offer = offer(78, 1, 1)
				b.hear("c", bid)
				b.refusal(first.Task.Job, self, true)
			}
			if _, awards := sent[protocol.Award](b.last); len(awards) > 0 {
				if awards[0].Tasks[0].Token.Number() != 3 {
					t.Errorf("awarded with token %d, want 3", awards[0].Tasks[0].Token)
				}
				break
			}
			b.pass(100 * time.Millisecond)
		}
		if b.now.Before(free) || b.phase(first.Task.Job, 0) != grid.PhaseAwarded {
			t.Errorf("restart %s: awarded %s before the lease ended, the task is %s",
				restart, free.Sub(b.now), b.phase(first.Task.Job, 0))
		}
	}
}

// What fails late, or leaves nothing, does not count.
func TestALateFailureDoesNotCount(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	first, _ := b.lostAt(func(j *grid.Job) { j.Spec.Outputs = []grid.Output{{Path: "/out"}} })
	for _, late := range []protocol.Exited{
		{Attempt: first, Exit: grid.Exit{Cause: grid.CauseExited, Code: 1}},
		{Attempt: first, Exit: grid.Exit{Cause: grid.CauseStopped}},
		ended(first),
	} {
		one[protocol.ExitAck](t, b.hear("a", late))
		b.wantPhase(first.Task.Job, 0, grid.PhaseRunning)
	}
	one[protocol.ExitAck](t, b.hear("c", ended(first, "/out"))) // not its site
	b.wantPhase(first.Task.Job, 0, grid.PhaseRunning)
}

// A site that claims a good end and does not name a missing output is not believed.
func TestAMissingOutputThatIsNotNamedMovesTheTask(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxTries = 1 }, "a", "b") // a lie is none of the task's
	job := testJob(1)
	job.Spec.Outputs = []grid.Output{{Path: "/out/{{index}}"}, {Path: "/log"}}
	attempt := b.takes(b.submit(job))
	id := attempt.Task.Job
	b.hear("a", ended(attempt, "/log"))
	if b.phase(id, 0).Ended() || b.phase(id, 0) == grid.PhaseCollecting {
		t.Fatalf("the task is %s without its output", b.phase(id, 0))
	}
	if n := b.faultIndex("a"); n != 1 {
		t.Errorf("the fault index of the site is %d, want 1", n)
	}
	if s, _ := b.m.Job(id); len(s.Tasks[0].Tries) != 1 {
		t.Errorf("tries: %+v", s.Tasks[0].Tries)
	}
}

// A site that says which output was not written tells of the job's own doing.
func TestAnOutputThatWasNotWrittenFailsTheTask(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	job := testJob(1)
	job.Spec.Outputs = []grid.Output{{Path: "/out"}}
	attempt := b.takes(b.submit(job))
	b.hear("a", protocol.Exited{Attempt: attempt, Exit: grid.Exit{
		Cause: grid.CauseNoOutput, Text: "not written: /out",
	}})
	b.wantPhase(attempt.Task.Job, 0, grid.PhaseFailed)
	s, _ := b.m.Job(attempt.Task.Job)
	if s.Tasks[0].Exit.Text != "not written: /out" || b.faultIndex("a") > 0 {
		t.Errorf("exit %+v, fault index %d", s.Tasks[0].Exit, b.faultIndex("a"))
	}
}
