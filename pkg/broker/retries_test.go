package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// fails lets the site that has a task say that its program ended with code 3.
func (b *bench) fails(id grid.JobID, index uint32) {
	b.Helper()
	s, _ := b.m.Job(id)
	task := s.Tasks[index]
	attempt := attemptOf(id, index, task.Token)
	b.hear(task.Site, protocol.Accepted{Attempts: []grid.AttemptID{attempt}})
	b.hear(task.Site, protocol.Exited{
		Attempt: attempt, Exit: grid.Exit{Cause: grid.CauseExited, Code: 3},
	})
}

// A task that fails by itself runs again as often as its job says, elsewhere, and no site is
// blamed. Its last end is final. A restart of the submitter gives it no further tries.
func TestATaskThatFailsByItselfRunsAgain(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c")
	job := testJob(1)
	job.Retries = 2
	id := b.submit(job)
	b.offers(id, 1, "a", "b", "c", self)
	for _, site := range []grid.SiteID{"a", "b"} {
		if s, _ := b.m.Job(id); s.Tasks[0].Site != site {
			t.Fatalf("it runs on %s, want %s", s.Tasks[0].Site, site)
		}
		b.fails(id, 0)
		if _, _, is := strings.Cut(string(b.m.Snapshot()), `"reruns"`); !is {
			t.Error("that it runs again is no fact")
		}
	}
	if s, _ := b.m.Job(id); s.Tasks[0].Site != "c" ||
		s.Tasks[0].Tries[1].Outcome != "exited with code 3" {
		t.Fatalf("after two failures: %+v", s.Tasks[0])
	}
	again := New(Default(self))
	if err := again.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if n := again.jobs.all[id].tasks[0].reruns; n != 2 {
		t.Errorf("%d runs are known after a restart, want 2", n)
	}
	b.fails(id, 0)
	b.wantPhase(id, 0, grid.PhaseFailed)
	for _, site := range []grid.SiteID{"a", "b", "c"} {
		if n := b.faultIndex(site); n != 0 {
			t.Errorf("%s is blamed for a program that fails", site)
		}
	}
}

// A task that no site can run is not tried again, and neither is one that ended well.
func TestWhatIsNotTriedAgain(t *testing.T) {
	for _, exit := range []grid.Exit{
		{Cause: grid.CauseBadWork, Text: "no module"}, {Cause: grid.CauseExited},
	} {
		b := newBench(t, nil, "a", "b")
		job := testJob(1)
		job.Retries = 2
		id := b.submit(job)
		b.offers(id, 1, "a", "b", self)
		attempt := attemptOf(id, 0, 1)
		b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attempt}})
		b.hear("a", protocol.Exited{Attempt: attempt, Exit: exit})
		if s, _ := b.m.Job(id); !s.Tasks[0].Phase.Ended() {
			t.Errorf("%s: the task is %s", exit.Cause, s.Tasks[0].Phase)
		}
	}
}

// A job stops when as many tasks have failed as it allows: running ones are called off, waiting
// ones do not begin, and each says why.
func TestTooManyFailuresStopAJob(t *testing.T) {
	b := newBench(t, nil, "a")
	job := testJob(4)
	job.MaxFailures = 2
	id := b.submit(job)
	b.offers(id, 3, "a") // the fourth task waits
	b.refusal(id, self, false)
	b.fails(id, 0)
	b.wantPhase(id, 1, grid.PhaseAwarded)
	b.fails(id, 1)
	s, _ := b.m.Job(id)
	for _, task := range s.Tasks {
		if task.Phase != grid.PhaseFailed {
			t.Errorf("task %d is %s", task.ID.Index, task.Phase)
		}
	}
	const why = "stopped: 2 of its job's tasks have failed"
	if got := s.Tasks[2].Exit; got == nil || got.Text != why {
		t.Errorf("the third task ended with %+v", got)
	}
	if got := s.Tasks[3].Exit; got == nil || got.Text != why {
		t.Errorf("the fourth task ended with %+v", got)
	}
	if to, _ := one[protocol.Cancel](t, b.last); to != "a" {
		t.Errorf("the call-off went to %s", to)
	}
	b.pass(time.Hour)
}
