package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// withHistory gives a bare agent a history, and an archivist that has not begun.
func withHistory(t *testing.T, b *bare, dir string) *archivist {
	t.Helper()
	b.cfg.StateDir = dir
	if err := b.openHistory(); err != nil {
		t.Fatal(err)
	}
	b.pins = newPins(nil, b.archive.history.Holds, b.log)
	t.Cleanup(func() {
		if err := b.archive.history.Close(); err != nil {
			t.Error(err)
		}
	})
	return b.archive
}

func jobsOf(t *testing.T, h *store.History) int64 {
	t.Helper()
	sums, err := h.Sums()
	if err != nil {
		t.Fatal(err)
	}
	return sums.Jobs
}

// oldJobs makes ended jobs, each a minute after the one before; the last ended now.
func oldJobs(n int, now time.Time) (jobs []step.ArchivedJob) {
	for i := range n {
		end := now.Add(time.Duration(i+1-n) * time.Minute)
		id := strings.Map(func(r rune) rune { return 'a' + (r - '0') }, fmt.Sprintf("%016d", i))
		jobs = append(jobs, step.ArchivedJob{
			Job: grid.JobID(id), Submitted: end.Add(-time.Second), Ended: end, Record: []byte("{}"),
		})
	}
	return jobs
}

// How long the jobs of the history are kept where the owner says nothing, and where the owner
// does.
func TestHowLongThePastIsKept(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	if got, want := (Past{}).withDefaults(), (Past{7 * day, 90 * day, 256 << 20}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	own := Past{1, 2, 3}
	if got := own.withDefaults(); got != own {
		t.Errorf("%+v, want %+v", got, own)
	}
}

// Ended jobs are told to be in the history when they are, and not before: a history that cannot
// be written is tried again after a pause.
func TestJobsThatCannotBeArchivedAtFirst(t *testing.T) {
	dir, broken := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		r := withHistory(t, b, dir)
		good := r.history
		bad, err := store.OpenHistory(broken, b.log)
		if err != nil {
			t.Fatal(err)
		}
		if err := bad.Close(); err != nil {
			t.Fatal(err)
		}
		r.history = bad
		b.said.hook = func(line string) { // mended as soon as it is said
			if strings.Contains(line, "cannot be written to the history") {
				r.history = good
			}
		}
		jobs := oldJobs(2, b.clock.shows())
		begin := time.Now()
		r.add(jobs)
		b.settle(t)
		if took := time.Since(begin); took != archiveAgain {
			t.Errorf("it took %s, want a pause of %s", took, archiveAgain)
		}
		told := heardOf[step.Archived](&b.ofBroker)
		if len(told) != 1 || !slices.Equal(told[0].Jobs, []grid.JobID{jobs[0].Job, jobs[1].Job}) {
			t.Errorf("the machine is told %+v", told)
		}
		if n := jobsOf(t, good); n != 2 {
			t.Errorf("%d jobs are in the history", n)
		}
	})
}

// An agent that ends does not wait for its history: the machine still holds the jobs.
func TestTheEndDoesNotWaitForTheHistory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		r := withHistory(t, b, dir)
		if err := r.history.Close(); err != nil {
			t.Fatal(err)
		}
		b.spawn(r.run)
		var begin time.Time
		r.soon(func() { r.add(oldJobs(1, b.clock.shows())) })
		ran := false
		r.soon(func() { ran = true })
		time.Sleep(time.Minute)
		begin = time.Now()
		b.leave(errStopped)
		b.group.Wait()
		if took := time.Since(begin); took != 0 || ran {
			t.Errorf("the end took %s; what waited was begun: %t", took, ran)
		}
		if n := b.reports.counters()["history_unwritable"]; n != 1 ||
			b.said.count("cannot be written to the history") != 1 {
			t.Errorf("counted %d times, said: %s", n, b.said.String())
		}
		if n := len(heardOf[step.Archived](&b.ofBroker)); n != 0 {
			t.Errorf("told %d times of jobs that are not in the history", n)
		}
		if err := r.do(func() error { return nil }); !errors.Is(err, errEnded) {
			t.Errorf("after the end: %v, want %v", err, errEnded)
		}
	})
}

// What is to be done is done in its order, one after the other, also what comes meanwhile, and
// who waits gets the error.
func TestTheArchivistKeepsItsOrder(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		r := withHistory(t, b, dir)
		var order []int
		r.soon(func() { order = append(order, 1); r.soon(func() { order = append(order, 3) }) })
		r.soon(func() { order = append(order, 2) })
		b.spawn(r.run)
		err := r.do(func() error { order = append(order, 4); return errForTest })
		if !errors.Is(err, errForTest) {
			t.Errorf("who waits gets %v", err)
		}
		synctest.Wait()
		if len(order) != 4 || order[0] != 1 || order[1] != 2 {
			t.Errorf("done in the order %v", order)
		}
	})
}

// Jobs beyond their time go, all of them, however many there are; it is said how many.
func TestOldJobsGo(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		r := withHistory(t, b, dir)
		const all, kept = 700, 10
		r.keep.Jobs = kept*time.Minute - time.Second
		now := b.clock.shows()
		r.add(oldJobs(all, now))
		if n := jobsOf(t, r.history); n != kept {
			t.Errorf("%d jobs are left, want %d", n, kept)
		}
		text := fmt.Sprintf("%d ended jobs left the history", all-kept)
		if n := b.reports.counters()[eventExpired]; n != 1 || b.said.count(text) != 1 {
			t.Errorf("reported %d times: %s", n, b.said.String())
		}
		if n := b.events.Last(); n != 1 {
			t.Errorf("users see %d events, want one", n)
		}
		r.expire()
		if n := b.reports.counters()[eventExpired]; n != 1 {
			t.Errorf("that nothing went is reported")
		}
		b.spawn(r.run)
		if _, err := b.ForgetArchivedBefore(time.Time{}); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("forget before no time: %v, want ErrInvalid", err)
		}
		n, err := b.ForgetArchivedBefore(now.Add(-4*time.Minute - time.Second))
		if err != nil || n != kept-5 || jobsOf(t, r.history) != 5 {
			t.Errorf("%d forgotten, %v; want all but those of the last minutes", n, err)
		}
		last := oldJobs(all, now)[all-1].Job
		for _, want := range []bool{true, false} {
			if known, err := b.ForgetArchived(last); err != nil || known != want {
				t.Errorf("one is forgotten: known %t, %v, want %t", known, err, want)
			}
		}
		if b.History() != r.history || jobsOf(t, b.History()) != 4 {
			t.Errorf("%d jobs are left", jobsOf(t, b.History()))
		}
	})
}

// Outputs go before the rest of their jobs does.
func TestOldOutputsGo(t *testing.T) {
	b := newBench(t, newPuppet())
	r := b.archive
	cid := b.add("output")
	jobs := oldJobs(2, b.clock.shows().Add(-2*time.Minute))
	jobs[0].Outputs = []grid.CID{cid}
	b.pins.hold("job", cid)
	rows := []store.HistoryJob{{ArchivedJob: jobs[0]}, {ArchivedJob: jobs[1]}}
	if err := r.history.Add(rows); err != nil {
		t.Fatal(err)
	}
	b.pins.release("job")
	b.wantPin(cid, pin{true, true}, "an output of the history")
	err := r.do(func() error {
		r.keep = Past{Outputs: time.Minute, Jobs: time.Hour, Bytes: 1 << 20}
		r.expire()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.wantPin(cid, pin{}, "an output that was kept for long enough")
	if n := jobsOf(t, r.history); n != 2 {
		t.Errorf("%d jobs are left, want both", n)
	}
}

// A history that cannot be made shorter is said, and no harm.
func TestAHistoryThatCannotBeMadeShorter(t *testing.T) {
	b := newBare(t)
	r := withHistory(t, b, t.TempDir())
	if err := r.history.Close(); err != nil {
		t.Fatal(err)
	}
	if n := r.forget(store.Keep{Jobs: time.Now()}); n != 0 ||
		b.said.count("the history cannot be made shorter") != 1 {
		t.Errorf("%d jobs, said: %s", n, b.said.String())
	}
}

// Lists show the summary that was asked for; a record that cannot be read has none, which is
// said.
func TestSummariesOfEndedJobs(t *testing.T) {
	b := newBare(t)
	r := &archivist{a: b.Agent}
	b.cfg.Summary = func(broker.JobState) []byte { return []byte("summary") }
	if got := r.summary(step.ArchivedJob{Job: "x", Record: []byte("rubbish")}); got != nil ||
		b.said.count("an ended job is kept without a summary") != 1 {
		t.Errorf("a record without sense: %q: %s", got, b.said.String())
	}
}
