package audit

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Two copies of a task run at the same time on purpose; a copy that does is doubled.
func TestCopiesAreNotDoubled(t *testing.T) {
	copied := []Submission{{Job: jobA, Count: 2, Held: true, Copied: true}}
	runs := []Run{
		ran(attemptOf(0, 1), "attic", span(0, 10)), ran(attemptOf(2, 1), "barn", span(0, 10)),
		ran(attemptOf(1, 1), "attic", span(0, 10)), ran(attemptOf(3, 1), "cellar", span(0, 10)),
	}
	if r := Audit(Records{Submissions: copied, Runs: runs}); len(r.Doubled) > 0 || r.Strays > 0 {
		t.Errorf("copies: %d doubled, %d strays", len(r.Doubled), r.Strays)
	}
	runs = append(runs, ran(attemptOf(3, 2), "barn", span(5, 8)))
	r := Audit(Records{Submissions: copied, Runs: runs})
	if len(r.Doubled) != 1 || r.Doubled[0].A.Task.Index != 3 || r.Total.Doubled != 1 {
		t.Errorf("a copy that runs twice: %+v", r.Doubled)
	}
	copied[0].Copied = false
	if r := Audit(Records{Submissions: copied, Runs: runs}); len(r.Doubled) != 1 {
		t.Errorf("a copy of which nobody knows that it is one: %+v", r.Doubled)
	}
}

// A task has ended as the copy has whose result counts, or without one.
func TestATaskIsItsCopies(t *testing.T) {
	note := func(index uint32, phase grid.Phase) Task {
		return Task{ID: taskOf(jobA, index), Phase: phase}
	}
	without := func(task Task) Task { task.NoResult = true; return task }
	chosen := func(task Task, n uint32) Task { task.Chosen = n; return task }
	tests := []struct {
		name   string
		tasks  []Task
		closed bool
		want   JobReport
	}{
		{"nothing is known", nil, false, JobReport{Open: 1}},
		{"one result of two", []Task{note(0, grid.PhaseDone)}, false, JobReport{Open: 1}},
		{
			"the second counts",
			[]Task{chosen(note(0, grid.PhaseCancelled), 2), note(1, grid.PhaseDone)},
			true,
			JobReport{Done: 1},
		},
		{
			"the second counts, and has failed",
			[]Task{chosen(note(0, grid.PhaseDone), 2), note(1, grid.PhaseFailed)},
			true,
			JobReport{Failed: 1},
		},
		{
			"none counts",
			[]Task{without(note(0, grid.PhaseDone)), note(1, grid.PhaseDone)},
			true,
			JobReport{Failed: 1},
		},
		{
			"called off with a result",
			[]Task{note(0, grid.PhaseDone), note(1, grid.PhaseCancelled)},
			true,
			JobReport{Cancelled: 1},
		},
		{
			"stopped with a result",
			[]Task{note(0, grid.PhaseDone), note(1, grid.PhaseFailed)},
			true,
			JobReport{Failed: 1},
		},
		{"closed, and nothing counts", []Task{note(0, grid.PhaseDone)}, true, JobReport{Lost: 1}},
	}
	for _, test := range tests {
		s := Submission{Job: jobA, Count: 1, Held: true, Closed: test.closed, Copied: true}
		test.want.Job, test.want.Tasks = jobA, 1
		r := Audit(Records{Submissions: []Submission{s}, Tasks: test.tasks})
		if diff := cmp.Diff(test.want, r.Jobs[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// Which copy counts is noted after its end, and may be taken back.
func TestTheChoiceComesLater(t *testing.T) {
	h := newHistory()
	note := func(kind, key, value string) {
		t.Helper()
		f := step.Fact{Kind: kind, Key: string(jobA) + key, Value: json.RawMessage(value)}
		if err := h.note(f); err != nil {
			t.Fatal(err)
		}
	}
	note(kindJob, "", `{"job":{"Count":1,"Redundancy":{"Verify":0.02}},"submitted_ms":1}`)
	note(kindTask, ".0", `{"phase":8,"token":1}`)
	note(kindTask, ".0", `{"phase":8,"token":1,"chosen":1}`)
	note(kindTask, ".0", `{"phase":8,"token":1}`)
	note(kindTask, ".0", `{"phase":8,"token":1,"chosen":2}`)
	if got := h.tasks[taskOf(jobA, 0)]; got.Chosen != 2 || got.Phase != grid.PhaseDone {
		t.Errorf("%+v", got)
	}
	if !h.jobs[jobA].Copied {
		t.Error("the job is not known to run in copies")
	}
}
