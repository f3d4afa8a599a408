package broker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// following is a job that comes after others.
func following(ids ...grid.JobID) grid.Job {
	j := testJob(1)
	j.After = ids
	return j
}

// ends lets the only task of a job, which runs on a, end with a code.
func (b *bench) ends(id grid.JobID, code int) []step.Effect {
	b.Helper()
	return b.hear("a", protocol.Exited{
		Attempt: attemptOf(id, 0, b.m.jobs.all[id].tasks[0].token),
		Exit:    grid.Exit{Cause: grid.CauseExited, Code: code},
	})
}

func announced(effects []step.Effect) bool {
	_, first := sent[protocol.Announce](effects)
	_, again := sent[protocol.Reannounce](effects)
	return len(first)+len(again) > 0
}

func TestAJobIsAnnouncedWhenThoseBeforeItAreDone(t *testing.T) {
	for name, restart := range map[string]bool{"in one run": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			first, second := b.started(1), b.started(1)
			third := b.submit(following(first, second))
			fourth := b.submit(following(third, first))
			if restart {
				b.restart("a", "b")
				b.renew("a", first, 1)
				b.renew("a", second, 1)
			}
			if announced(b.last) || announced(b.pass(2*time.Second)) {
				t.Fatal("announced before those before it are done")
			}
			s, _ := b.m.Job(third)
			if len(s.Awaits) != 2 {
				t.Errorf("it waits for %v", s.Awaits)
			}
			if announced(b.ends(first, 0)) {
				t.Fatal("announced before the second is done")
			}
			if !announced(b.ends(second, 0)) {
				t.Fatal("not announced when both were done")
			}
			b.wantPhase(third, 0, grid.PhaseAnnounced)
			b.wantPhase(fourth, 0, grid.PhaseWaiting)
			b.offers(third, 1, "a", "b", self)
			b.accept("a", third, 0, 1)
			b.ends(third, 0)
			b.wantPhase(fourth, 0, grid.PhaseAnnounced)
			if err := b.refusedBy(following(first)); err != nil { // it is done
				t.Errorf("after a job that is done: %v", err)
			}
		})
	}
}

func TestAJobEndsWithWhatItComesAfter(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(b *bench, id grid.JobID)
		phase grid.Phase
		text  string
	}{
		"failed": {
			func(b *bench, id grid.JobID) { b.ends(id, 3) }, grid.PhaseRefused, "which has failed",
		},
		"cancelled": {
			func(b *bench, id grid.JobID) { b.do(step.CancelJob{Job: id}) },
			grid.PhaseCancelled, "which has been cancelled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			first := b.started(1)
			second := b.submit(following(first))
			third := b.submit(following(second))
			c.end(b, first)
			b.wantPhase(second, 0, c.phase)
			b.wantText(second, 0, "it was to run after job "+string(first)+", "+c.text)
			b.wantPhase(third, 0, c.phase)
			b.wantText(third, 0, "after job "+string(second))
			err := b.refusedBy(following(first))
			if !errors.Is(err, grid.ErrInvalid) ||
				!strings.Contains(err.Error(), "after: job "+string(first)) {
				t.Errorf("after what has gone wrong: %v", err)
			}
		})
	}
}

func TestAfterWhatIsUnknown(t *testing.T) {
	b := newBench(t, nil, "a")
	err := b.refusedBy(following("aaaaaaaaaaaaaaaa"))
	if !errors.Is(err, grid.ErrInvalid) ||
		!strings.Contains(err.Error(), "after: job aaaaaaaaaaaaaaaa is unknown here; name jobs") {
		t.Errorf("after an unknown job: %v", err)
	}
}

func TestWhatIsAwaitedIsNotForgotten(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEnded = 0 }, "a", "b")
	done, runs := b.started(1), b.started(1)
	waits := b.submit(following(done, runs))
	b.ends(done, 0)
	forget := func() error {
		for _, e := range b.do(step.ForgetJob{Command: 3, Job: done}) {
			if r, is := e.(step.Reply); is {
				return r.Err
			}
		}
		return nil
	}
	if err := forget(); !errors.Is(err, step.ErrAwaited) ||
		!strings.Contains(err.Error(), string(waits)) {
		t.Errorf("forgotten while %s waits for it: %v", waits, err)
	}
	for range 70 {
		b.pass(time.Second)
		b.renew("a", runs, 1)
	}
	if _, known := b.m.Job(done); !known {
		t.Fatal("forgotten in time while another one waits for it")
	}
	b.ends(runs, 0)
	b.wantPhase(waits, 0, grid.PhaseAnnounced)
	if err := forget(); err != nil {
		t.Errorf("forget when nobody waits: %v", err)
	}
	b.restart("a", "b")
	if b.m.jobs.isBlocked(b.m.jobs.all[waits]) {
		t.Error("it waits for what was done and is forgotten")
	}
}

// A blocked job takes part in nothing, and its window is watched all the same.
func TestABlockedJobIsNotAskedFor(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	first := b.started(1)
	job := following(first)
	job.Spec.Window.Deadline = b.now.Add(5 * time.Second)
	blocked := b.submit(job)
	if announced(b.do(step.PeerSeen{Site: "c"})) ||
		announced(b.hear("b", protocol.Vacancy{Jobs: []grid.JobID{blocked}})) {
		t.Error("announced while it is blocked")
	}
	for range 5 {
		b.pass(time.Second)
		b.renew("a", first, 1)
	}
	b.wantPhase(blocked, 0, grid.PhaseRefused)
	b.wantText(blocked, 0, "while it waited for job "+string(first))
}
