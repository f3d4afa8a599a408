package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// pledged submits a job of one task that site a promises a place.
func (b *bench) pledged(job grid.Job) grid.JobID {
	b.Helper()
	id := b.submit(job)
	b.offers(id, 1, "a")
	b.refusal(id, self, false)
	b.firm(id, "a", lasting(11, 1, 30*time.Minute, time.Minute))
	b.accept("a", id, 0, 1)
	return id
}

// progress lets the site tell of the first attempt.
func (b *bench) progress(id grid.JobID, p grid.Phase, ago time.Duration) []step.Effect {
	b.Helper()
	return b.hear("a", protocol.Progress{Attempt: attemptOf(id, 0, 1), Phase: p, StartedAgo: ago})
}

// ended lets the first attempt end as its site tells.
func (b *bench) ended(id grid.JobID, started, ended, wall time.Duration) []step.Effect {
	b.Helper()
	return b.hear("a", protocol.Exited{
		Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{Cause: grid.CauseExited, Wall: wall},
		StartedAgo: started, EndedAgo: ended,
	})
}

// keep renews the lease until a time from now.
func (b *bench) keep(id grid.JobID, d time.Duration) (all []step.Effect) {
	b.Helper()
	for end := b.now.Add(d); b.now.Before(end); {
		all = append(all, b.hear("a", protocol.Renew{
			Renewal: 2, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)},
		})...)
		all = append(all, b.pass(min(time.Second, end.Sub(b.now)))...)
	}
	return all
}

func reports(effects []step.Effect, event string) (all []step.Report) {
	for _, e := range effects {
		if r, is := e.(step.Report); is && r.Event == event {
			all = append(all, r)
		}
	}
	return all
}

func TestWhatBecomesOfAPromise(t *testing.T) {
	type told struct{ began, ended, wall time.Duration } // after the submission, as it was
	for name, c := range map[string]struct {
		job   func(*bench) grid.Job
		told  told
		heard time.Duration // when the end is heard, after the submission
		want  TaskState
	}{
		"a start on time": {
			(*bench).fixed1,
			told{30 * time.Minute, 31 * time.Minute, time.Minute},
			31 * time.Minute,
			TaskState{Promise: grid.PromiseKept},
		},
		"an end that is heard late": {
			(*bench).fixed1,
			told{30 * time.Minute, 31 * time.Minute, time.Minute},
			45 * time.Minute,
			TaskState{Promise: grid.PromiseKept},
		},
		"a late start": {
			(*bench).fixed1,
			told{30*time.Minute + 9*time.Second, 31 * time.Minute, 0},
			31 * time.Minute,
			TaskState{
				Promise: grid.PromiseLate, StartLate: 9 * time.Second,
				PromiseNote: "began 9s after its promised start",
			},
		},
		"in time for its deadline": {
			(*bench).due1,
			told{time.Minute, time.Hour, time.Minute},
			time.Hour + time.Minute,
			TaskState{Promise: grid.PromiseKept},
		},
		"after its deadline": {
			(*bench).due1,
			told{59 * time.Minute, time.Hour + 26*time.Second, 86 * time.Second},
			time.Hour + time.Minute,
			TaskState{
				Promise: grid.PromiseLate, EndLate: 26 * time.Second, PromiseNote: "ended 26s after its " +
					"deadline; it ran for 1m26s, and 1m0s were estimated",
			},
		},
		"an end that cannot have been": {
			(*bench).due1,
			told{time.Hour - 11*time.Second, time.Hour - 10*time.Second, time.Minute},
			time.Hour + time.Minute,
			TaskState{
				Promise: grid.PromiseLate, EndLate: 49 * time.Second,
				PromiseNote: "ended 49s after its deadline",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a")
			start := b.now
			id := b.pledged(c.job(b))
			if s, _ := b.m.Job(id); s.Tasks[0].Promise != grid.PromiseOpen {
				t.Fatalf("promised: %s, want open", s.Tasks[0].Promise)
			}
			b.keep(id, c.heard)
			effects := b.ended(id, c.heard-c.told.began, c.heard-c.told.ended, c.told.wall)
			s, _ := b.m.Job(id)
			got := TaskState{
				Promise: s.Tasks[0].Promise, StartLate: s.Tasks[0].StartLate, EndLate: s.Tasks[0].EndLate,
				PromiseNote: s.Tasks[0].PromiseNote,
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			said := reports(effects, "task_"+c.want.Promise.String())
			late := max(c.want.StartLate, c.want.EndLate).Seconds()
			if len(said) != 1 || said[0].Value != late || said[0].Text != c.want.PromiseNote {
				t.Errorf("said %+v, want it once with %v s", said, late)
			}
			if s.Tasks[0].StartedAt != start.Add(c.told.began) {
				t.Errorf("began at %s, want %s", s.Tasks[0].StartedAt.Sub(start), c.told.began)
			}
			b.restarted()
			if s, _ := b.m.Job(id); s.Tasks[0].Promise != c.want.Promise ||
				s.Tasks[0].EndLate != c.want.EndLate || s.Tasks[0].PromiseNote != c.want.PromiseNote {
				t.Errorf("after a restart: %+v", s.Tasks[0])
			}
		})
	}
}

// Of two words about a start one may wait until this site, which sleeps, reads it. The other
// one counts.
func TestAWordThatWaitsMakesNoStartLate(t *testing.T) {
	const asleep = 5 * time.Second
	for name, wait := range map[string]struct{ start, end time.Duration }{
		"that it runs":      {start: asleep},
		"that it has ended": {end: asleep},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a")
			job := b.fixed1()
			id := b.pledged(job)
			b.keep(id, 30*time.Minute+wait.start)
			b.progress(id, grid.PhaseRunning, 0)
			b.keep(id, job.Spec.Runtime-wait.start+wait.end)
			b.ended(id, job.Spec.Runtime, 0, job.Spec.Runtime)
			s, _ := b.m.Job(id)
			if got := s.Tasks[0]; got.Promise != grid.PromiseKept || got.StartLate != 0 {
				t.Errorf("%s, %s late: %s; want it kept", got.Promise, got.StartLate, got.PromiseNote)
			}
			if at := s.Tasks[0].StartedAt; !at.Equal(job.Spec.Window.At) {
				t.Errorf("began %s after its start, want at it", at.Sub(job.Spec.Window.At))
			}
		})
	}
}

// What came while this machine slept is read when it wakes, and seems to be as late as that. The
// end is repeated: what is said of it then counts, and what is late is called so by two words.
func TestALateEndIsDoubtedAfterASleep(t *testing.T) {
	const slept = 20 * time.Second
	for name, c := range map[string]struct {
		late time.Duration // by how much it began late
		wait time.Duration // until the task has ended, after it was read for the first time
		want grid.Promise
	}{
		"in time":                {0, time.Second, grid.PromiseKept},
		"late":                   {2 * time.Second, 2 * time.Second, grid.PromiseLate},
		"later than the sleep":   {slept + 5*time.Second, 0, grid.PromiseLate},
		"late, and not repeated": {2 * time.Second, resultWait, grid.PromiseLate},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a")
			job := b.fixed1()
			id, ran := b.pledged(job), 2*time.Second
			b.keep(id, 30*time.Minute+c.late)
			began := b.now
			b.now = b.now.Add(slept)
			word := func(waited time.Duration) {
				ago := b.now.Sub(began)
				b.ended(id, ago-waited, ago-waited-ran, ran)
			}
			word(slept - ran)
			read := b.now
			for !b.phase(id, 0).Ended() {
				b.pass(time.Second)
				if c.wait < resultWait {
					word(0)
				}
			}
			s, _ := b.m.Job(id)
			if got := s.Tasks[0]; got.Promise != c.want {
				t.Errorf("%s (%s), want %s", got.Promise, got.PromiseNote, c.want)
			}
			if took := b.now.Sub(read); took != c.wait {
				t.Errorf("it ended %s after it was read, want %s", took, c.wait)
			}
		})
	}
}

// While a verdict is in doubt the result is here: that its site dies meanwhile costs nothing.
func TestAResultInDoubtOutlivesItsSite(t *testing.T) {
	b := newBench(t, nil, "a")
	id, ran := b.pledged(b.fixed1()), 2*time.Second
	b.keep(id, 30*time.Minute)
	b.now = b.now.Add(20 * time.Second)
	attempt := attemptOf(id, 0, 1)
	left := grid.Exit{
		Cause: grid.CauseExited, Wall: ran, Stdout: grid.Produced{CID: "bstdout", Bytes: 3},
	}
	b.hear("a", protocol.Exited{Attempt: attempt, Exit: left, StartedAgo: ran})
	b.do(step.Collected{Attempt: attempt})
	b.wantPhase(id, 0, grid.PhaseCollecting) // by its word it began 18 s late
	b.gone(true, "a")
	b.pass(resultWait)
	b.wantPhase(id, 0, grid.PhaseDone)
}

// A promise that no site could keep is broken, and that is said. One that was called off, or
// never given, is none.
func TestBrokenPromisesAreReported(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.pledged(b.fixed1())
	b.keep(id, 31*time.Minute)
	effects := b.hear("a", protocol.Exited{Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{
		Cause: grid.CauseStopped, Text: "the latest start that was promised has passed",
	}})
	effects = append(effects, b.pass(time.Minute)...)
	b.wantPhase(id, 0, grid.PhaseFailed)
	said := reports(effects, "task_broken")
	if len(said) != 1 || said[0].Level != step.LevelWarn ||
		!strings.Contains(said[0].Text, "its start at") {
		t.Errorf("said %+v, want that it is broken, and why", said)
	}

	cancelled := b.pledged(b.fixed1())
	none := b.do(step.CancelJob{Job: cancelled})
	none = append(none, b.do(step.CancelJob{Job: b.submit(testJob(1))})...)
	for _, p := range []grid.Promise{grid.PromiseKept, grid.PromiseLate, grid.PromiseBroken} {
		if said := reports(none, "task_"+p.String()); len(said) > 0 {
			t.Errorf("what was called off: %+v", said)
		}
	}
}

// What is late is said when it happens, and once: not only when the task has ended.
func TestLatenessIsSaidWhenItHappens(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.pledged(b.fixed1())
	b.keep(id, 30*time.Minute+10*time.Second)
	for range 2 {
		said := reports(b.progress(id, grid.PhaseRunning, time.Second), eventStartLate)
		if len(said) > 1 || len(said) == 1 && said[0].Value != 9 {
			t.Errorf("said %+v, want once that it began 9 s late", said)
		}
	}
	due := b.pledged(b.due1())
	b.progress(due, grid.PhaseRunning, 0)
	if said := reports(b.keep(due, time.Hour+5*time.Second), eventDeadlineMissed); len(said) != 1 ||
		said[0].Attempt != attemptOf(due, 0, 1) {
		t.Errorf("said %+v, want once that the deadline has passed", said)
	}
	if s, _ := b.m.Job(due); s.Tasks[0].Promise != grid.PromiseLate {
		t.Errorf("shown as %s, want late", s.Tasks[0].Promise)
	}
}

// Outputs that are lost undo a judgement: the task has to run again.
func TestAJudgementIsTakenBackWithItsOutputs(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.pledged(b.due1())
	b.hear("a", protocol.Exited{Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{
		Cause: grid.CauseExited, Outputs: []grid.Produced{{Path: "/o", CID: "bo", Bytes: 1}},
	}})
	b.wantPhase(id, 0, grid.PhaseCollecting)
	b.pass(2 * time.Minute)
	b.do(step.Collected{Attempt: attemptOf(id, 0, 1), Problem: "gone"})
	if s, _ := b.m.Job(id); s.Tasks[0].Promise != grid.PromiseOpen || s.Tasks[0].Phase.Ended() {
		t.Errorf("%s and %s, want an open promise", s.Tasks[0].Phase, s.Tasks[0].Promise)
	}
}

// Within ten seconds of its start a promised task gets one lease that reaches beyond it. Before,
// and from then on, it gets the usual ones: its site is to be found silent in time.
func TestOneLeaseSpansThePromisedStart(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.pledged(b.fixed1())
	lease := func() time.Duration {
		t.Helper()
		_, msg := one[protocol.Lease](t, b.hear("a", protocol.Renew{
			Renewal: 3, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)},
		}))
		return msg.Duration
	}
	start := b.now.Add(30 * time.Minute)
	if got := lease(); got != b.m.cfg.Lease {
		t.Errorf("half an hour before: %s, want %s", got, b.m.cfg.Lease)
	}
	b.keep(id, 29*time.Minute+51*time.Second)
	got := lease()
	if end := b.now.Add(got); end.Before(start.Add(b.m.cfg.Lease)) ||
		end.After(start.Add(2*b.m.cfg.Lease)) {
		t.Errorf("9 s before: %s, want one that ends a lease behind the start", got)
	}
	// Silence until the start moves nothing: the site may have begun.
	b.pass(9 * time.Second)
	b.wantPhase(id, 0, grid.PhaseStaging)
	b.restarted()
	b.pass(2 * time.Second)
	b.wantPhase(id, 0, grid.PhaseStaging)
	b.progress(id, grid.PhaseRunning, 2*time.Second)
	if got := lease(); got != b.m.cfg.Lease {
		t.Errorf("while it runs: %s, want %s", got, b.m.cfg.Lease)
	}
}
