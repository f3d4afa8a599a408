package agent

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// hear takes reports about a job; the value of each is when it comes, in seconds.
func (t *timings) hear(began time.Time, job grid.JobID, history ...step.Report) {
	for _, e := range history {
		e.Attempt.Task.Job = job
		t.heed(e, began.Add(time.Duration(e.Value*float64(time.Second))))
	}
}

func event(name string, index uint32, second float64) step.Report {
	attempt := grid.AttemptID{Task: grid.TaskID{Index: index}}
	return step.Report{Event: name, Attempt: attempt, Value: second}
}

// A job's first award is its placing, a task's first start ends its wait, and its run is that of
// its last attempt. What was submitted before this agent began is not timed, and nothing is held of
// what has ended.
func TestWorkIsTimed(t *testing.T) {
	t.Parallel()
	metrics := obs.NewRegistry()
	times, began := newTimings(metrics), time.Unix(1_700_000_000, 0)
	times.hear(began, "two", event("job_submitted", 0, 0), event("awarded", 0, 2),
		event("awarded", 1, 3), event("running", 0, 4), event("running", 1, 8),
		event("task_done", 0, 14), event("awarded", 1, 20), event("running", 1, 32),
		event("task_failed", 1, 132), event("job_ended", 0, 132), event("task_done", 1, 500))
	times.hear(began, "gone", event("job_submitted", 0, 0), event("awarded", 0, 1),
		event("running", 0, 4), event("running", 1, 4), event("job_cancelled", 0, 5))
	times.hear(began, "before", event("awarded", 0, 7), event("running", 0, 8),
		event("task_done", 0, 9), event("job_ended", 0, 9))
	w := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
	metrics.Handler().ServeHTTP(w, request)
	for _, want := range []string{
		"mrs_job_placing_seconds_sum 3\n", "mrs_job_placing_seconds_count 2\n",
		"mrs_task_wait_seconds_sum 20\n", "mrs_task_wait_seconds_count 4\n",
		"mrs_task_run_seconds_sum 110\n", "mrs_task_run_seconds_count 2\n",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if times.held != 0 || len(times.jobs) != 0 {
		t.Errorf("%d entries and %d jobs are held, want none", times.held, len(times.jobs))
	}
}

// However much is submitted, and runs, a bounded part of it is timed.
func TestLittleIsHeldToTimeMuch(t *testing.T) {
	t.Parallel()
	times, now := newTimings(nil), time.Unix(1_700_000_000, 0)
	times.hear(now, "array", event("job_submitted", 0, 0))
	for i := range uint32(2 * mostTimed) {
		times.hear(now, "array", event("running", i, 1))
	}
	times.hear(now, "next", event("job_submitted", 0, 2), event("job_ended", 0, 3))
	if times.held != mostTimed || len(times.jobs["array"].started) != mostTimed-1 {
		t.Errorf("%d are held, want %d", times.held, mostTimed)
	}
	times.hear(now, "array", event("job_ended", 0, 4))
	if times.held != 0 || len(times.jobs) != 0 {
		t.Errorf("%d entries and %d jobs are held, want none", times.held, len(times.jobs))
	}
}
