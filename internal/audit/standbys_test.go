package audit

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// member makes the state of an agent that stands by for another one, with the table that the
// group has agreed on.
func member(t *testing.T, rows ...step.Fact) (dir string) {
	t.Helper()
	const name = "standbyanna"
	dir = t.TempDir()
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		s.Enlist(store.Member{Name: name, ID: 7, Owner: "anna", Stored: standby.Joining()}),
		s.SaveMember(name, []standby.Save{{Facts: rows}}),
		s.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// auditOf reads the states of agents.
func auditOf(t *testing.T, dirs ...string) Report {
	t.Helper()
	var sources []Source
	for _, dir := range dirs {
		sources = append(sources, Source{Site: dir, StateDir: dir})
	}
	records, err := Collect(sources)
	if err != nil {
		t.Fatal(err)
	}
	return Audit(records)
}

// The submitter's disk is gone: its standbys know its jobs. Each counts once, however many of them
// know it.
func TestJobsOfASubmitterWhoseDiskIsGone(t *testing.T) {
	rows := []step.Fact{
		jobRow(jobA, 3, 0), taskRow(taskOf(jobA, 0), grid.PhaseDone),
		taskRow(taskOf(jobA, 1), grid.PhaseRunning), jobRow(jobB, 1, 5),
	}
	want := []JobReport{
		{Job: jobA, Tasks: 3, Done: 1, Open: 2},
		{Job: jobB, Tasks: 1, Lost: 1}, // it is closed, and nobody has its task
	}
	one, two := member(t, rows...), member(t, rows...)
	for _, dirs := range [][]string{{one}, {one, two}, {two, one, one}} {
		report := auditOf(t, dirs...)
		if diff := cmp.Diff(want, report.Jobs); diff != "" || report.Strays != 0 {
			t.Errorf("%d standbys (-want +got):\n%s", len(dirs), diff)
		}
		if report.Total.Tasks != 4 || report.Unseen != 1 {
			t.Errorf("%d standbys: %d tasks in all, %d unseen", len(dirs), report.Total.Tasks,
				report.Unseen)
		}
	}
}

// A standby that was lost before the job ended knows less than the others, in whatever order they
// are read.
func TestAStandbyThatWasLostEarlier(t *testing.T) {
	id := taskOf(jobA, 0)
	late := func(phase grid.Phase, token grid.Token) step.Fact {
		return step.NewFact(kindTask, id.String(), map[string]any{
			"phase": phase, "token": token, "awarded_ms": 1000 * token, "site": "s",
		})
	}
	lost := member(t, jobRow(jobA, 1, 0), late(grid.PhaseRunning, 1))
	living := member(t, jobRow(jobA, 1, 9), late(grid.PhaseDone, 2))
	for _, dirs := range [][]string{{lost, living}, {living, lost}} {
		report := auditOf(t, dirs...)
		if diff := cmp.Diff([]JobReport{{Job: jobA, Tasks: 1, Done: 1}}, report.Jobs); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Of two that know of an open task the one with the newer attempt is right, and an end over both.
func TestTheNewestAttemptCounts(t *testing.T) {
	id := taskOf(jobA, 0)
	first := Task{ID: id, Phase: grid.PhaseRunning, Token: 1, Awarded: time.Unix(1, 0)}
	second := Task{ID: id, Phase: grid.PhaseAwarded, Token: 2, Awarded: time.Unix(2, 0)}
	end := Task{ID: id, Phase: grid.PhaseDone, Token: 1}
	for _, test := range []struct {
		list []Task
		want Task
	}{
		{[]Task{first, second}, second},
		{[]Task{second, first}, second},
		{[]Task{second, end, first}, end},
		{[]Task{end, second}, end},
		{[]Task{first, second, end}, end},
	} {
		if diff := cmp.Diff(test.want, lastTasks(test.list)[id]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A job that was removed before one agent's journal begins is still known from another.
func TestWhatTheOtherOneKnowsOfAJob(t *testing.T) {
	window := grid.Window{Deadline: time.Unix(9, 0)}
	known := Submission{
		Job: jobA, Count: 2, Submitted: time.Unix(1, 0), Window: window, Waits: true,
	}
	removed := Submission{Job: jobA, Seen: time.Unix(5, 0)}
	want := known
	want.Seen = removed.Seen
	for _, list := range [][]Submission{{known, removed}, {removed, known}} {
		if diff := cmp.Diff([]Submission{want}, mergeSubmissions(list)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A result is gone when none of those who hold the job has it.
func TestAResultThatOneOfThemHoldsIsNotGone(t *testing.T) {
	const c = grid.CID("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku")
	id := taskOf(jobA, 0)
	rows := []step.Fact{jobRow(jobA, 1, 0), step.NewFact(kindTask, id.String(), map[string]any{
		"phase": grid.PhaseDone, "token": 1, "site": "s",
		"exit": grid.Exit{
			Cause: grid.CauseExited, Outputs: []grid.Produced{{Path: "/out/r", CID: c}},
		},
	})}
	one, two := member(t, rows...), member(t, rows...)
	for _, dir := range []string{one, two} {
		if err := os.Mkdir(filepath.Join(dir, dataDir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if report := auditOf(t, one, two); report.Total.Missing != 1 || len(report.Missing) != 1 {
		t.Errorf("nobody has it: %s", report.Summary())
	}
	lacks := Task{ID: id, Phase: grid.PhaseDone, Missing: []grid.CID{c, "other"}}
	has := Task{ID: id, Phase: grid.PhaseDone, Found: []grid.CID{c}}
	for _, list := range [][]Task{{lacks, has}, {has, lacks}} {
		if diff := cmp.Diff([]grid.CID{"other"}, lastTasks(list)[id].Missing); diff != "" {
			t.Errorf("missing (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]grid.CID{c, "other"}, lacks.Missing); diff != "" {
		t.Errorf("what one agent has said is changed:\n%s", diff)
	}
}
