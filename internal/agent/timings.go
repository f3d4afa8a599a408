package agent

import (
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timings are how long work takes, as histograms in seconds: of the jobs of submitters for whom
// this agent acts, by what their machine reports, and of what is staged for attempts that run here.
type timings struct {
	placing, wait, run, staging obs.Histogram

	mu   sync.Mutex
	jobs map[grid.JobID]*timed // guarded by mu
	held int                   // entries of all jobs together; guarded by mu
}

// timed is a job that was submitted since this agent began, and has not ended.
type timed struct {
	submitted time.Time
	placed    bool
	started   map[uint32]time.Time // tasks that run, by when the latest attempt began
}

// mostTimed bounds the jobs and running tasks that are timed together; those beyond are not.
const mostTimed = 1 << 14

func newTimings(metrics *obs.Registry) *timings {
	return &timings{
		placing: metrics.Histogram("job_placing_seconds",
			"From a job's submission until its first task was awarded to a site.",
			.005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300, 3600),
		wait: metrics.Histogram("task_wait_seconds",
			"From a job's submission until a task of it ran for the first time.",
			.1, .5, 1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400),
		run: metrics.Histogram("task_run_seconds",
			"From the start of a task's last attempt until its end.",
			1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400, 604_800),
		staging: metrics.Histogram("attempt_staging_seconds",
			"How long it took until all that an attempt here needs was laid out.",
			.01, .05, .25, 1, 5, 15, 60, 300, 900, 3600),
		jobs: make(map[grid.JobID]*timed),
	}
}

// heed follows what machines report.
func (t *timings) heed(e step.Report, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := e.Attempt.Task
	job, known := t.jobs[id.Job]
	switch {
	case e.Event == "job_submitted" && !known && t.held < mostTimed:
		t.jobs[id.Job] = &timed{submitted: now, started: make(map[uint32]time.Time)}
		t.held++
	case !known:
		return
	}
	switch e.Event {
	case "awarded", "awarded_rival", "awarded_together":
		if !job.placed {
			job.placed = true
			t.placing.Observe(now.Sub(job.submitted).Seconds())
		}
	case "running":
		t.begins(job, id.Index, now)
	case "task_done", "task_failed":
		if began, timed := job.started[id.Index]; timed {
			t.run.Observe(now.Sub(began).Seconds())
			delete(job.started, id.Index)
			t.held--
		}
	case "job_cancelled", "job_refused", "job_failed", "job_ended":
		t.held -= 1 + len(job.started)
		delete(t.jobs, id.Job)
	}
}

// begins notes that an attempt runs; the caller holds mu.
func (t *timings) begins(job *timed, index uint32, now time.Time) {
	if _, again := job.started[index]; !again {
		if t.held >= mostTimed {
			return
		}
		t.held++
		t.wait.Observe(now.Sub(job.submitted).Seconds())
	}
	job.started[index] = now
}
