package tes_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/tes"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Whatever phase a task passes, clients see one of three states until it ends; each attempt adds
// to its logs.
func TestStatesAndAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end()
		id := d.create(t, runs("true"))
		attempts := 0
		for _, step := range []struct {
			phase view.Phase
			want  tes.TesState
			again bool
		}{
			{view.PhaseAnnounced, tes.QUEUED, false},
			{view.PhaseAwarded, tes.INITIALIZING, true},
			{view.PhaseStaging, tes.INITIALIZING, false},
			{view.PhasePreparing, tes.INITIALIZING, false},
			{view.PhaseRunning, tes.RUNNING, false},
			{view.PhaseFrozen, tes.RUNNING, false},
			{view.PhaseSuspended, tes.RUNNING, false},
			{view.PhaseWaiting, tes.QUEUED, false},
			{view.PhaseAwarded, tes.INITIALIZING, true},
			{view.PhaseRunning, tes.RUNNING, false},
		} {
			d.phase(t, step.phase, func(v *view.TaskView) {
				if step.again {
					attempts++
					v.Attempts = append(v.Attempts, view.AttemptView{
						Token: grid.Token(attempts), Site: "s",
						SiteName: fmt.Sprint("site ", attempts), Distance: .25,
					})
				}
			})
			got := d.want(t, id, step.want)
			if len(*got.Logs) != attempts {
				t.Errorf("%s: %d logs, want %d", step.phase, len(*got.Logs), attempts)
			}
		}
		d.done(t)
		got := d.want(t, id, tes.COMPLETE)
		second := (*got.Logs)[1]
		if len((*got.Logs)[0].Logs) != 0 || *second.Logs[0].Stdout != "printed" {
			t.Errorf("the logs are %s", dump(got.Logs))
		}
		want := map[string]string{
			"attempt": "2", "site": "s", "site_name": "site 2", "domain": "home",
			"distance": "0.25", "job": string(d.job(t)),
		}
		if fmt.Sprint(*second.Metadata) != fmt.Sprint(want) {
			t.Errorf("metadata %v, want %v", *second.Metadata, want)
		}
	})
}

// How a job ends decides about its task.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		phase view.Phase
		cause grid.ExitCause
		want  tes.TesState
	}{
		{view.PhaseFailed, grid.CauseExited, tes.EXECUTORERROR},
		{view.PhaseFailed, grid.CauseSignal, tes.EXECUTORERROR},
		{view.PhaseFailed, grid.CauseMemory, tes.EXECUTORERROR},
		{view.PhaseFailed, grid.CauseTimeLimit, tes.EXECUTORERROR},
		{view.PhaseFailed, grid.CauseDisk, tes.SYSTEMERROR},
		{view.PhaseFailed, grid.CauseNoOutput, tes.SYSTEMERROR},
		{view.PhaseFailed, grid.CauseBadWork, tes.SYSTEMERROR},
		{view.PhaseRefused, 0, tes.SYSTEMERROR},
		{view.PhaseCancelled, grid.CauseStopped, tes.CANCELED}, // with submit cancel
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			defer d.end()
			id := d.create(t, runs("true"))
			d.agent.Explain(d.job(t), "", "because")
			d.phase(t, c.phase, func(v *view.TaskView) { v.Cause = c.cause.String() })
			got := d.want(t, id, c.want)
			notes := (*got.Logs)[len(*got.Logs)-1].SystemLogs
			if notes == nil || !slices.Contains(*notes, "because") {
				t.Errorf("%s, %s: system logs %s", c.phase, c.cause, dump(got.Logs))
			}
		})
	}
}

// A task is cancelled wherever it is, and then nothing else is seen of it.
func TestCancelled(t *testing.T) {
	for _, phase := range []view.Phase{
		view.PhaseAnnounced, view.PhaseAwarded, view.PhaseRunning, view.PhaseSuspended,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			defer d.end()
			id := d.create(t, runs("true"))
			d.phase(t, phase, nil)
			d.cancel(t, id)
			d.want(t, id, tes.CANCELED)
			d.cancel(t, id) // changes nothing
			d.want(t, id, tes.CANCELED)
			d.end()
			d.start(t)
			d.want(t, id, tes.CANCELED)
		})
	}
}

// What was cancelled before its job could be handed over is, once it can be.
func TestCancelledWhileTheAgentIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end()
		d.agent.failWith(view.ErrBusy)
		id := d.create(t, runs("true"))
		d.want(t, id, tes.QUEUED)
		d.cancel(t, id)
		d.want(t, id, tes.CANCELING)
		d.agent.failWith(nil)
		time.Sleep(time.Minute) // of the bubble's clock
		d.want(t, id, tes.CANCELED)
	})
}

// A job that is refused ends its task; one that cannot be taken now is handed over later.
func TestSubmitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end()
		d.agent.failWith(fmt.Errorf("%w: too much", view.ErrTooLarge))
		id := d.create(t, runs("true"))
		got := d.want(t, id, tes.SYSTEMERROR)
		if notes := (*got.Logs)[0].SystemLogs; !strings.Contains((*notes)[0], "too much") {
			t.Errorf("system logs %q", *notes)
		}
		d.agent.failWith(view.ErrBusy)
		id = d.create(t, runs("true"))
		d.want(t, id, tes.QUEUED)
		d.agent.failWith(nil)
		time.Sleep(time.Minute) // of the bubble's clock
		d.phase(t, view.PhaseRunning, nil)
		d.want(t, id, tes.RUNNING)
	})
}

// A restart changes no task's state; none is handed over twice, and what happened in
// between is found out.
func TestTasksAfterAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end()
		ended := d.create(t, runs("true", "name", "ended", "tags", task{"k": "v"}))
		d.done(t)
		before := dump(d.want(t, ended, tes.COMPLETE))
		open := d.create(t, runs("true", "name", "open"))
		d.phase(t, view.PhaseRunning, nil)
		d.want(t, open, tes.RUNNING)
		d.agent.failWith(view.ErrBusy)
		kept := d.create(t, runs("true", "name", "kept"))
		d.want(t, kept, tes.QUEUED)
		d.end()
		d.agent.failWith(nil)
		d.done(t)
		d.start(t)
		if after := dump(d.want(t, ended, tes.COMPLETE)); after != before {
			t.Errorf("it is %s, was %s", after, before)
		}
		d.want(t, open, tes.COMPLETE)
		d.want(t, kept, tes.QUEUED)
		d.done(t)
		d.want(t, kept, tes.COMPLETE)
		jobs, err := d.agent.Jobs(t.Context(), view.JobQuery{Limit: 10})
		if err != nil || len(jobs) != 3 {
			t.Errorf("%d jobs, want 3: %v", len(jobs), err)
		}
		keys := slices.Compact(slices.Clone(d.agent.submits))
		if len(keys) != 3 || slices.Contains(keys, "") {
			t.Errorf("handed over with the keys %q", d.agent.submits)
		}
		_, text := d.ask(t, http.MethodGet, "/tasks?tag_key=k&tag_value=v", nil)
		if !strings.Contains(string(text), ended) {
			t.Errorf("the ended task is not found by its tag: %s", text)
		}
	})
}

// Records that are damaged, or of another task, keep nobody from starting.
func TestDamagedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		id := d.create(t, runs("true"))
		d.done(t)
		d.want(t, id, tes.COMPLETE)
		d.end()
		text, err := os.ReadFile(filepath.Join(d.cfg.Dir, id+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{
			"half.json": text[:len(text)/2], "empty.json": nil, "other.json": text,
			"note.txt": text,
		} {
			if err := os.WriteFile(filepath.Join(d.cfg.Dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d.start(t)
		defer d.end()
		d.want(t, id, tes.COMPLETE)
		_, list := d.ask(t, http.MethodGet, "/tasks", nil)
		if strings.Count(string(list), `"id"`) != 1 {
			t.Errorf("listed: %s", list)
		}
	})
}

// Tasks are dropped some time after their end, open ones never.
func TestTasksAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(c *tes.Config) { c.Keep = 24 * time.Hour })
		defer d.end()
		old := d.create(t, runs("true"))
		d.done(t)
		d.want(t, old, tes.COMPLETE)
		open := d.create(t, runs("true"))
		d.want(t, open, tes.QUEUED)
		time.Sleep(26 * time.Hour) // of the bubble's clock
		status, _ := d.ask(t, http.MethodGet, "/tasks/"+old, nil)
		if status != http.StatusNotFound {
			t.Errorf("the old task: %d", status)
		}
		d.want(t, open, tes.QUEUED)
		if left, err := os.ReadDir(d.cfg.Dir); err != nil || len(left) != 1 {
			t.Errorf("%d records are left: %v", len(left), err)
		}
	})
}

// A job that its owner has made the agent forget ends its task.
func TestAForgottenJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		id := d.create(t, runs("true"))
		job := d.job(t)
		d.end()
		d.done(t)
		if err := d.agent.Forget(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		d.start(t)
		defer d.end()
		d.want(t, id, tes.SYSTEMERROR)
	})
}

// Nothing is written outside of the directory, whatever a task has left there and whatever links
// appear meanwhile.
func TestOutputsStayInside(t *testing.T) {
	outside := t.TempDir()
	tree := func(name string) []string {
		return []string{"/o/", string(archive(t, name, "x"))}
	}
	for _, c := range []struct {
		name  string
		url   string // below the directory
		left  []string
		links bool
		want  tes.TesState
	}{
		{"a file", "/a/b", []string{"/o", "x"}, false, tes.COMPLETE},
		{"a tree", "/t", tree("a/b"), false, tes.COMPLETE},
		{"names that lead up", "/t", tree("../b"), false, tes.SYSTEMERROR},
		{"absolute names", "/t", tree("/b"), false, tes.SYSTEMERROR},
		{"no archive", "/t", []string{"/o/", "nothing of the kind"}, false, tes.SYSTEMERROR},
		{"a link above", "/l/b", []string{"/o", "x"}, true, tes.SYSTEMERROR},
		{"a link above a tree", "/l/t", tree("b"), true, tes.SYSTEMERROR},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, nil)
				defer d.end()
				id := d.create(t, runs("true", "outputs", []any{
					task{"path": "/o", "url": "file://" + d.cfg.Files[0] + c.url},
				}))
				d.job(t)
				if c.links {
					if err := os.Symlink(outside, filepath.Join(d.cfg.Files[0], "l")); err != nil {
						t.Fatal(err)
					}
				}
				d.done(t, c.left...)
				got := d.want(t, id, c.want)
				if n := len((*got.Logs)[0].Outputs); (n == 1) != (c.want == tes.COMPLETE) {
					t.Errorf("%d outputs in the log", n)
				}
			})
		})
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("%d files were written outside: %v", len(left), err)
	}
}

// Inputs are what they are when the task is created; what is no file or directory is refused, and
// what has become something else ends the task.
func TestInputsThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end()
		dir := d.cfg.Files[0]
		if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, "d/program")
		if err := os.WriteFile(program, []byte("x"), 0o700); err != nil {
			t.Fatal(err)
		}
		input := func(name, path string, kind any) task {
			one := task{"path": path, "url": filepath.Join(dir, name)}
			if kind != nil {
				one["type"] = kind
			}
			return one
		}
		id := d.create(t, runs("true", "inputs", []any{
			input("d", "/tree", nil), input("d/program", "/program", nil),
		}))
		got := d.full(t, id)
		if *(*got.Inputs)[0].Type != tes.DIRECTORY || *(*got.Inputs)[1].Type != tes.FILE {
			t.Errorf("the types are %s", dump(got.Inputs))
		}
		job, _ := d.agent.Job0()
		if in := job.Spec.Inputs; len(in) != 3 || !in[1].Dir || in[2].Dir {
			t.Errorf("the job's inputs are %+v", in)
		}
		for _, wrong := range []task{
			input("d", "/x", "FILE"), input("d/program", "/x", "DIRECTORY"),
		} {
			request := runs("true", "inputs", []any{wrong})
			status, text := d.ask(t, http.MethodPost, "/tasks", request)
			refused(t, status, text, http.StatusBadRequest, "inputs[0].type")
		}
		if err := os.Symlink("/etc", filepath.Join(dir, "d/link")); err != nil {
			t.Fatal(err)
		}
		id = d.create(t, runs("true", "inputs", []any{input("d", "/tree", nil)}))
		got = d.want(t, id, tes.SYSTEMERROR)
		if notes := (*got.Logs)[0].SystemLogs; !strings.Contains((*notes)[0], "inputs[0]") {
			t.Errorf("system logs %q", *notes)
		}
	})
}
