package broker

import (
	"errors"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// reply submits with a key and returns the answer.
func (b *bench) reply(job grid.Job, key string) step.Reply {
	b.Helper()
	for _, e := range b.do(step.Submit{Command: 7, Job: job, Key: key}) {
		if r, is := e.(step.Reply); is {
			return r
		}
	}
	b.Fatal("submit: no reply")
	return step.Reply{}
}

// restarted is the bench after a crash.
func (b *bench) restarted() {
	b.Helper()
	m := New(b.m.cfg)
	if err := m.Restore(b.facts.Encode()); err != nil {
		b.Fatal(err)
	}
	b.m = m
	clear(b.timers)
	b.do(step.Boot{Incarnation: 2})
}

func TestARepeatedSubmissionIsTheSameJob(t *testing.T) {
	b := newBench(t, nil, "a")
	first := b.reply(testJob(2), "k")
	again := func(when string) {
		t.Helper()
		if r := b.reply(testJob(2), "k"); r.Err != nil || r.Job != first.Job || len(b.m.Jobs()) != 1 {
			t.Fatalf("%s: %+v, %d jobs, want job %s alone", when, r, len(b.m.Jobs()), first.Job)
		}
	}
	again("immediately")
	if r := b.reply(testJob(3), "k"); !errors.Is(r.Err, step.ErrKeyUsed) ||
		!strings.Contains(r.Err.Error(), string(first.Job)) {
		t.Errorf("another job: %v, want %v that names %s", r.Err, step.ErrKeyUsed, first.Job)
	}
	b.restarted()
	again("after a restart")
	b.do(step.CancelJob{Job: first.Job})
	again("when it has ended")
	b.do(step.ForgetJob{Job: first.Job})
	if r := b.reply(testJob(2), "k"); r.Err != nil || r.Job == first.Job {
		t.Errorf("when it is forgotten: %+v, want a new job", r)
	}
	for range 2 { // without a key each is a job of its own
		b.submit(testJob(2))
	}
	if got := len(b.m.Jobs()); got != 3 {
		t.Errorf("%d jobs, want 3", got)
	}
	long := strings.Repeat("k", step.MaxKey+1)
	if r := b.reply(testJob(2), long); !errors.Is(r.Err, grid.ErrInvalid) {
		t.Errorf("a key that is too long: %v", r.Err)
	}
}

// What was refused made no job, so its key is free.
func TestARefusedSubmissionLeavesItsKey(t *testing.T) {
	b := newBench(t, nil)
	bad := testJob(1)
	bad.After = []grid.JobID{"aaaaaaaaaaaaaaaa"}
	if r := b.reply(bad, "k"); r.Err == nil {
		t.Fatal("the job was taken")
	}
	if r := b.reply(testJob(1), "k"); r.Err != nil {
		t.Errorf("the next request with that key: %v", r.Err)
	}
}
