package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// clock is so many seconds after the jobs of these tests were submitted.
func clock(sec float64) time.Time {
	return time.UnixMilli(1_000_000 + int64(sec*1000))
}

func ranFrom(token grid.Token, from, to float64) Run {
	return Run{Attempt: attemptOf(0, token), Site: "x", Began: clock(from), Ended: clock(to)}
}

func TestWhatIsStuck(t *testing.T) {
	open := Submission{Job: jobA, Count: 1, Held: true, Submitted: clock(0), Seen: clock(200)}
	waiting := Task{ID: taskOf(jobA, 0), Phase: grid.PhaseWaiting}
	with := func(change func(*Submission)) Submission {
		s := open
		change(&s)
		return s
	}
	running := ranFrom(1, 5, 10)
	running.Unended = true
	for _, tt := range []struct {
		name string
		s    Submission
		task Task
		runs []Run
		want bool
	}{
		{"let alone since it was submitted", open, waiting, nil, true},
		{"never awarded, so without a row", open, Task{}, nil, true},
		{"submitted a minute ago", with(func(s *Submission) { s.Seen = clock(60) }), waiting, nil, false},
		{"it ended", open, Task{ID: waiting.ID, Phase: grid.PhaseDone}, nil, false},
		{"its submitter closed it", with(func(s *Submission) { s.Closed = true }), waiting, nil, false},
		{"it comes after another job", with(func(s *Submission) { s.Waits = true }), waiting, nil, false},
		{"a reservation", with(func(s *Submission) { s.Passive = true }), waiting, nil, false},
		{
			"its time has not come",
			with(func(s *Submission) { s.Window.NotBefore = clock(190) }), waiting, nil, false,
		},
		{"it runs", open, Task{ID: waiting.ID, Phase: grid.PhaseRunning}, []Run{running}, false},
		{
			"awarded a moment ago", open,
			Task{ID: waiting.ID, Phase: grid.PhaseAwarded, Awarded: clock(190)},
			nil, false,
		},
		{"an attempt ended a moment ago", open, waiting, []Run{ranFrom(1, 5, 190)}, false},
		{"its last attempt ended long ago", open, waiting, []Run{ranFrom(1, 5, 10)}, true},
	} {
		r := Audit(Records{Submissions: []Submission{tt.s}, Tasks: []Task{tt.task}, Runs: tt.runs})
		if got := r.Total.Stuck == 1; got != tt.want || len(r.Stuck) != r.Total.Stuck {
			t.Errorf("%s: stuck = %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestWhatIsLate(t *testing.T) {
	at := grid.Window{At: clock(100)}
	by := grid.Window{Deadline: clock(100)}
	task := func(p grid.Promise) Task {
		return Task{ID: taskOf(jobA, 0), Phase: grid.PhaseDone, Promise: p}
	}
	id := taskOf(jobA, 0)
	byToken := func(token grid.Token, p grid.Promise) Task {
		t := task(p)
		t.Token = token
		return t
	}
	for _, tt := range []struct {
		name   string
		window grid.Window
		task   Task
		runs   []Run
		want   []Late
	}{
		{"in time", at, task(grid.PromiseKept), []Run{ranFrom(1, 100.5, 110)}, nil},
		{
			"called kept, and began late", at, task(grid.PromiseKept),
			[]Run{ranFrom(1, 109, 112)},
			[]Late{{Task: id, Start: 9 * time.Second}},
		},
		{
			"late, and said so", at, task(grid.PromiseLate),
			[]Run{ranFrom(1, 109, 112)},
			[]Late{{Task: id, Start: 9 * time.Second, Said: true}},
		},
		{"moved after it had begun in time", at, task(grid.PromiseKept), []Run{
			ranFrom(2, 120, 130), ranFrom(1, 100, 110),
		}, nil},
		{"the deadline was met", by, task(grid.PromiseKept), []Run{ranFrom(1, 50, 101)}, nil},
		{
			"the last of its attempts missed the deadline", by, task(grid.PromiseNone),
			[]Run{ranFrom(2, 90, 126), ranFrom(1, 50, 80)},
			[]Late{{Task: id, End: 26 * time.Second}},
		},
		{
			"one that was given up was stopped behind the deadline", by, byToken(2, grid.PromiseKept),
			[]Run{ranFrom(1, 50, 126), ranFrom(2, 80, 99)},
			nil,
		},
		{
			"the one with the result ended behind it", by, byToken(1, grid.PromiseKept),
			[]Run{ranFrom(2, 80, 99), ranFrom(1, 50, 126)},
			[]Late{{Task: id, End: 26 * time.Second}},
		},
		{
			"nothing was promised",
			grid.Window{NotBefore: clock(1)},
			task(0),
			[]Run{ranFrom(1, 9, 99)},
			nil,
		},
		{"it failed", by, Task{ID: id, Phase: grid.PhaseFailed}, []Run{ranFrom(1, 50, 126)}, nil},
	} {
		s := Submission{Job: jobA, Count: 1, Window: tt.window}
		r := Audit(Records{Submissions: []Submission{s}, Tasks: []Task{tt.task}, Runs: tt.runs})
		silent := slices.ContainsFunc(tt.want, func(l Late) bool { return !l.Said })
		if diff := cmp.Diff(tt.want, r.Late); diff != "" || r.Clean() == silent {
			t.Errorf("%s: clean = %t; late (-want +got):\n%s", tt.name, r.Clean(), diff)
		}
	}
}

// A submitter's word that a task is done is worth nothing when its result is gone.
func TestAResultThatIsGoneIsMissing(t *testing.T) {
	dir := t.TempDir()
	const c = grid.CID("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku")
	done := func(id grid.TaskID) step.Fact {
		return step.NewFact(kindTask, id.String(), map[string]any{
			"phase": grid.PhaseDone, "token": 1, "site": "s",
			"exit": grid.Exit{Cause: grid.CauseExited, Outputs: []grid.Produced{{Path: "/out/r", CID: c}}},
		})
	}
	s := agent(t, dir)
	apply(t, s, jobRow(jobA, 1, 0), done(taskOf(jobA, 0)), jobRow(jobB, 1, 0),
		done(taskOf(jobB, 0)), step.Fact{Kind: kindJob, Key: string(jobB)},
		step.NewFact("counter/1", "jobs", 2))
	look := func() Report {
		t.Helper()
		records, err := Collect([]Source{{Site: "x", StateDir: dir}})
		if err != nil {
			t.Fatal(err)
		}
		return Audit(records)
	}
	if r := look(); !r.Clean() {
		t.Errorf("journals without the data: %s", r.Summary())
	}
	if err := os.Mkdir(filepath.Join(dir, dataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	report := look()
	// That of job B was given up with the job.
	if diff := cmp.Diff([]grid.TaskID{taskOf(jobA, 0)}, report.Missing); diff != "" || report.Clean() {
		t.Errorf("clean = %t; missing (-want +got):\n%s", report.Clean(), diff)
	}
	if want := "1 without a result, 0 lost, 0 doubled"; report.Summary() != want {
		t.Errorf("summary %q, want %q", report.Summary(), want)
	}
	lines := strings.Join(report.details(), "\n")
	if !strings.Contains(lines, "missing: task "+taskOf(jobA, 0).String()) {
		t.Errorf("the report does not name the task:\n%s", lines)
	}
}
