package broker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// finished runs a job of one task to its end, whose output is fetched.
func (b *bench) finished() grid.JobID {
	b.Helper()
	b.now = b.now.Add(time.Millisecond)
	id := b.started(1)
	b.hear("a", protocol.Exited{Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{
		Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/out", CID: grid.CID("bout" + id)},
	}})
	b.do(step.Collected{Attempt: attemptOf(id, 0, 1)})
	b.wantPhase(id, 0, grid.PhaseDone)
	return id
}

// given lists what the last Step gave to the history.
func (b *bench) given() []step.ArchivedJob {
	b.Helper()
	var all []step.ArchivedJob
	for _, e := range b.last {
		if a, is := e.(step.Archive); is {
			all = append(all, a.Jobs...)
		}
	}
	return all
}

func idsOf(jobs []step.ArchivedJob) []grid.JobID {
	var ids []grid.JobID
	for _, j := range jobs {
		ids = append(ids, j.Job)
	}
	return ids
}

func TestEndedJobsLeaveForTheHistory(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEnded = 2 }, "a", "b")
	first, second := b.finished(), b.finished()
	if given := b.given(); len(given) != 0 {
		t.Fatalf("%v left although few are here", idsOf(given))
	}
	want, _ := b.m.Job(first)
	third := b.finished()
	given := b.given()
	if !slices.Equal(idsOf(given), []grid.JobID{first}) {
		t.Fatalf("%v left, want the one that ended first: %s", idsOf(given), first)
	}
	if out := fmt.Sprint(given[0].Outputs); out != fmt.Sprintf("[bout%s]", first) {
		t.Errorf("it leaves with outputs %s", out)
	}
	fourth := b.finished()
	if len(b.given()) != 0 || !slices.Contains(b.m.Jobs(), first) {
		t.Fatal("the history does not hold the first yet: it has to stay, and no other leaves")
	}
	got, err := ReadRecord(first, given[0].Record)
	if err != nil || cmp.Diff(want, got) != "" {
		t.Fatalf("read again, %v:\n%s", err, cmp.Diff(want, got))
	}
	effects := b.do(step.Archived{Jobs: []grid.JobID{first}})
	if left := b.m.Jobs(); !slices.Equal(left, []grid.JobID{second, third, fourth}) {
		t.Errorf("%v are left, want all but %s", left, first)
	}
	released := slices.ContainsFunc(effects, func(e step.Effect) bool {
		h, is := e.(step.Hold)
		return is && h.Release && h.Job == first
	})
	if !released || !slices.Equal(idsOf(b.given()), []grid.JobID{second}) {
		t.Errorf("released %v, then %v left; want the next one, too", released, idsOf(b.given()))
	}
	b.do(step.Archived{Jobs: []grid.JobID{second}})
	// What is left: counter, longest grant, two jobs with a task.
	if facts := b.factsButMembers(); len(facts) != 2+2*2 {
		t.Errorf("%d facts are left: %v", len(facts), facts)
	}
}

// A crash may come after the history has a job and before its facts are gone, or before the
// history has it: it is given again.
func TestWhatWasLeavingAtACrashLeavesAgain(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEnded = 2 }, "a", "b")
	for range 3 {
		b.finished()
	}
	before := b.given()
	b.restart()
	if again := b.given(); len(before) != 1 || cmp.Diff(idsOf(before), idsOf(again)) != "" {
		t.Errorf("%v were leaving, %v after a restart", idsOf(before), idsOf(again))
	}
}

// The state of an earlier version may hold thousands of ended jobs.
func TestManyEndedJobsLeaveInBatches(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEnded = 100 }, "a", "b")
	for range 60 {
		b.finished()
	}
	b.m.cfg.MaxEnded = 4
	b.restart()
	total := 0
	for n := len(b.given()); n > 0; n = len(b.given()) {
		if total += n; n > batchJobs {
			t.Fatalf("%d jobs leave together, want at most %d", n, batchJobs)
		}
		b.do(step.Archived{Jobs: idsOf(b.given())})
	}
	if total != 56 || len(b.m.Jobs()) != 4 {
		t.Errorf("%d left and %d stay, want 56 and 4", total, len(b.m.Jobs()))
	}
}

func TestWhatAnOpenJobDependsOnStays(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEnded = 0 }, "a", "b")
	runs := b.started(1)
	done := b.started(1)
	waits := b.submit(following(runs, done))
	b.ends(done, 0)
	if len(b.given()) != 0 {
		t.Fatalf("%v left while %s depends on it", idsOf(b.given()), waits)
	}
	b.do(step.CancelJob{Job: waits})
	if got := idsOf(b.given()); !slices.Equal(got, []grid.JobID{done, waits}) {
		t.Errorf("%v left when nothing depends on it, want %s and %s", got, done, waits)
	}
}

func TestOnlyOpenJobsAreBounded(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxJobs, c.MaxEnded = 2, 100 }, "a", "b")
	for range 5 {
		b.finished()
	}
	b.started(1)
	b.do(step.Probe{Command: 5, Job: testJob(1)})
	if err := b.refusedBy(testJob(1)); !errors.Is(err, step.ErrTooManyJob) {
		t.Errorf("a third open enquiry: %v, want %v", err, step.ErrTooManyJob)
	}
	b.pass(b.m.cfg.BackoffMin) // the probe's round is over
	if err := b.refusedBy(testJob(1)); err != nil {
		t.Errorf("a second open job: %v", err)
	}
}

func TestAfterAJobInTheHistory(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEnded = 0 }, "a", "b")
	first := b.finished()
	b.do(step.Archived{Jobs: []grid.JobID{first}})
	effects := b.do(step.Submit{Command: 1, Job: following(first), Done: []grid.JobID{first}})
	if !announced(effects) {
		t.Error("a job after one that the history has as done was not announced")
	}
	if err := b.refusedBy(following(first)); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("after a job that nobody knows: %v", err)
	}
}

func TestFewAnsweredProbesAreKept(t *testing.T) {
	b := newBench(t, nil, "a")
	for range maxAnswered + 8 {
		b.do(step.Probe{Command: 5, Job: testJob(1)})
		_, announces := sent[protocol.Announce](b.last)
		b.offers(announces[0].Job, 1, "a", self)
	}
	if n := len(b.m.probes); n > maxAnswered {
		t.Errorf("%d probes are kept, want at most %d", n, maxAnswered)
	}
}

func TestADamagedRecordIsAnError(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxEnded = 0 }, "a", "b")
	id := b.finished()
	record := b.given()[0].Record
	half := record[:len(record)/2]
	for _, wrong := range [][]byte{nil, []byte("{}"), half, []byte(`{"facts":[{}]}`)} {
		if _, err := ReadRecord(id, wrong); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
	if _, err := ReadRecord("aaaaaaaaaaaaaaaa", record); err == nil {
		t.Error("the record of another job was read")
	}
}
