package backend

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

func TestPlanIsShown(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	need := grid.Resources{MilliCPUs: 1000, MemoryBytes: 64 << 20, DiskBytes: 8 << 20}
	attempt := func(
		job grid.JobID, from, to time.Duration, change func(*site.AttemptStatus),
	) site.AttemptStatus {
		at := site.AttemptStatus{
			ID:    grid.AttemptID{Task: grid.TaskID{Job: job}, Token: 1},
			Start: now.Add(from), End: now.Add(to), Need: need, Class: plan.ClassVarTime, Submitter: "s",
		}
		change(&at)
		return at
	}
	s := site.Status{
		Policy: grid.PolicyEDF,
		Capability: grid.Capability{
			Total: grid.Resources{MilliCPUs: 4000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30},
		},
		Attempts: []site.AttemptStatus{
			attempt("waits", time.Minute, 2*time.Minute, func(a *site.AttemptStatus) {
				a.Class, a.Planned = plan.ClassDeadline, true
			}),
			attempt("runs", 0, time.Minute, func(*site.AttemptStatus) {}),
			attempt("held", time.Minute, time.Hour, func(a *site.AttemptStatus) {
				a.Class, a.Reserves, a.Planned = plan.ClassFixTime, true, true
			}),
			attempt("stands", 0, time.Minute, func(a *site.AttemptStatus) {
				a.Class, a.Displaced = plan.ClassFixTime, grid.ReasonOverrun
			}),
			attempt("inside", time.Minute, time.Hour, func(a *site.AttemptStatus) {
				a.Class, a.Planned = plan.ClassFixTime, true
				a.Within = grid.AttemptID{Task: grid.TaskID{Job: "held"}}
			}),
			attempt("ended", 0, time.Minute, func(a *site.AttemptStatus) {
				a.Class, a.Exit = plan.ClassFixTime, grid.CauseExited
			}),
		},
	}
	got := planView(s, names{"s": "ben"}, 50)
	var lines []string
	for _, e := range got.Entries {
		lines = append(
			lines, strings.Join([]string{e.Task, e.State, e.Class, e.SubmitterName, string(e.Within)}, " "),
		)
	}
	want := []string{
		"runs.0 runs best-effort ben ", "stands.0 suspended fixed ben ", "held.0 held reservation ben ",
		"inside.0 waits fixed ben held",
		"waits.0 waits deadline ben ",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	// At no time hold more than two promises: one ends when two begin, and what is
	// inside takes nothing in addition.
	if got.Promised != view.FromResources(need.Add(need)) || got.Limit.MilliCPUs != 2000 ||
		got.Limit.MemoryBytes != 512<<20 {
		t.Errorf("promised %+v of %+v", got.Promised, got.Limit)
	}
	if got.Planning != (view.Planning{Policy: "edf", Backfill: "conservative"}) {
		t.Errorf("planning %+v", got.Planning)
	}
}

func TestReservationsAreShown(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	job := broker.JobState{
		ID: "r", Job: grid.Job{
			Spec: grid.Spec{
				Kind: grid.KindReservation, Name: "n", Project: "p", Runtime: time.Hour,
				Window: grid.Window{At: at},
			},
			Count: 2,
		},
		Tasks: []broker.TaskState{
			{ID: grid.TaskID{Job: "r"}, Phase: grid.PhaseStaging, Site: "b", Token: 1, Kept: 0.5},
			{ID: grid.TaskID{Job: "r", Index: 1}, Phase: grid.PhaseRunning, Site: "c", Token: 1, Kept: 0.5},
		},
	}
	got := reservationView(job, []grid.JobID{"x"}, names{"b": "ben", "c": "cleo"})
	if got.Phase != view.PhaseOpen || got.Kept == nil || *got.Kept != 0.25 ||
		!got.End.Equal(at.Add(time.Hour)) || len(got.Jobs) != 1 ||
		got.Places[0].Phase != view.PhaseHeld || got.Places[1].SiteName != "cleo" {
		t.Errorf("reservation %+v", got)
	}
	task := taskView(job, job.Tasks[0], nil)
	if !task.Planned.Equal(at) || task.Kept == nil || *task.Kept != 0.5 {
		t.Errorf("task %+v", task)
	}
}

func TestWhatAJobWaitsFor(t *testing.T) {
	t.Parallel()
	for want, ids := range map[string][]grid.JobID{
		"job a is": {"a"}, "jobs a, b are": {"a", "b"},
		"jobs a, b, c and 2 more are": {"a", "b", "c", "d", "e"},
	} {
		if got := jobList(ids); got != want {
			t.Errorf("jobList(%v) = %q, want %q", ids, got, want)
		}
	}
	waits := broker.JobState{Awaits: []grid.JobID{"a"}}
	if got := hint(waits, view.JobView{Phase: view.PhaseWaiting}); got != "waits until job a is done" {
		t.Errorf("hint %q", got)
	}
	refused := broker.JobState{
		Tasks: []broker.TaskState{
			{Phase: grid.PhaseRefused, Exit: &grid.Exit{Text: "its reservation is over"}},
		},
	}
	if diff := cmp.Diff([]string{"its reservation is over"}, refusalReasons(refused)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
