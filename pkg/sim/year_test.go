package sim

import (
	"flag"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var wholeYear = flag.Bool("year", false, "simulate a busy year: 300,000 attempts and 40 restarts")

// Whatever has ended, a submitter holds little: its facts, and with them its start, stay as
// small as after the first week.
func TestABusyYearLeavesASmallState(t *testing.T) {
	attempts, restarts := 2_400, 4
	if *wholeYear {
		attempts, restarts = 300_000, 40
	}
	const perJob, mostBytes = 20, 1 << 20
	w := New(Config{
		Seed: 7, Sites: fleet(5), Network: lan(), CheckEvery: 1 << 30,
		Run: func(grid.Task, time.Duration, SiteSpec) (time.Duration, grid.Exit) {
			return time.Second, grid.Exit{Cause: grid.CauseExited}
		},
	})
	jobs := attempts / perJob
	var first, last grid.JobID
	for n := range jobs {
		id, err := w.Submit("s0", wasmJob(perJob, time.Second))
		if err != nil {
			t.Fatalf("job %d of %d: %v", n, jobs, err)
		}
		last = id
		if first == "" {
			first = id
		}
		if !w.runUntil(w.elapsed+time.Hour, func() bool { return w.doneAt("s0", id) }) {
			t.Fatalf("job %d does not end: %v", n, w.err())
		}
		if n%max(1, jobs/restarts) == jobs/restarts-1 {
			w.Crash("s0")
			w.Restart("s0")
		}
	}
	size := 0
	for _, facts := range w.hosts["s0"].disk.facts {
		size += len(facts.Encode())
	}
	begun := time.Now()
	again := broker.New(broker.Default("s0"))
	if err := again.Restore(w.Broker("s0").Snapshot()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	t.Logf("%d jobs: %d in the history, %d facts' bytes, restored in %s",
		jobs, len(w.hosts["s0"].disk.past), size, took)
	if size > mostBytes || *wholeYear && took > time.Second {
		t.Errorf("%d bytes of facts, restored in %s; want at most %d and 1 s", size, took, mostBytes)
	}
	for _, id := range []grid.JobID{first, last} {
		if !w.doneAt("s0", id) {
			t.Errorf("job %s is known no more", id)
		}
	}
}

// doneAt reports whether all tasks of a job are done, here or in the history.
func (w *World) doneAt(at grid.SiteID, id grid.JobID) bool {
	s, known := w.Job(at, id)
	return known && !s.Ended.IsZero() && s.Tasks[len(s.Tasks)-1].Phase == grid.PhaseDone
}
