package agent_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

func TestJobRunsElsewhere(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	input := a.store(t, "input")
	job := a.job(t, "print=hello", "put=/out/x:result", "exit=0")
	job.Spec.Inputs = []grid.Input{{Path: "/in/x", CID: input.CID, Bytes: input.Bytes}}
	job.Spec.Outputs = []grid.Output{{Path: "/out/x", To: "x"}}
	id := a.submit(t, job)
	task := a.await(t, id, view.PhaseDone)
	if task.Site != b.Self() || len(task.Outputs) != 1 {
		t.Fatalf("task = %+v", task)
	}
	_, body, err := a.GetData(t.Context(), task.Outputs[0].CID)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil || string(text) != "result" || body.Close() != nil {
		t.Errorf("output = %q, %v", text, err)
	}
	if got := a.log(t, id, view.LogQuery{Stream: "stdout"}); got != "hello\n" {
		t.Errorf("log after the end = %q", got)
	}
	if got := a.log(t, id, view.LogQuery{Stream: "stdout", Offset: 4}); got != "o\n" {
		t.Errorf("log after the end from offset 4 = %q", got)
	}
	if got := a.log(t, id, view.LogQuery{Stream: "stderr"}); got != "" {
		t.Errorf("stderr after the end = %q", got)
	}
	agent.Eventually(t, "nothing is left of the attempt and its module", func() bool {
		return len(b.left(t, "attempts")) == 0 && len(b.left(t, "modules")) == 0
	})
	agent.Eventually(t, "the site lets the data go", func() bool {
		for _, root := range b.Stores().Data.Roots() {
			if root.Pinned {
				return false
			}
		}
		return true
	})
}

func TestSubmitNeedsItsData(t *testing.T) {
	c := agent.Plans(t, 1)
	a := start(t, c[0])
	job := a.job(t)
	job.Spec.Inputs = []grid.Input{
		{Path: "/in/x", CID: "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", Bytes: 1},
	}
	if _, err := a.Submit(t.Context(), job, ""); !errors.Is(err, grid.ErrInvalid) ||
		!strings.Contains(err.Error(), "input /in/x") {
		t.Errorf("Submit: %v, want ErrInvalid that names the input", err)
	}
	if err := a.Cancel(t.Context(), "mfrggzdfmztwq2lk"); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("Cancel of an unknown job: %v, want ErrNotFound", err)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	c := agent.Plans(t, 3)
	a := start(t, c[0])
	b := start(t, c[1], a)
	stranger := start(t, c[2], a, b)
	for _, n := range []*node{a, b, stranger} {
		n.awaitPeers(t, 2)
	}
	if err := stranger.Pause(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	waiting := a.job(t)
	waiting.Spec.Need.MemoryBytes = 1 << 40
	id := a.submit(t, a.job(t, "print=begun", "lines=1000", "run=100s"))
	running := a.await(t, id, view.PhaseRunning)
	attempt := grid.AttemptID{Task: id, Token: running.Token}

	if _, err := a.TaskLog(
		t.Context(), id, view.LogQuery{Stream: "stdin"},
	); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("log of stdin: %v, want ErrInvalid", err)
	}
	if _, err := a.TaskLog(
		t.Context(), grid.TaskID{Job: id.Job, Index: 1}, view.LogQuery{Stream: "stdout"},
	); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("log of a task that is not: %v, want ErrNotFound", err)
	}
	followed, err := a.TaskLog(t.Context(), id, view.LogQuery{Stream: "stdout", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]byte, 120)
	if _, err := io.ReadFull(followed, lines); err != nil {
		t.Errorf("following: %v", err)
	}
	// What a follower has read was written, so a reader that does not follow finds it too.
	if got := a.log(
		t, id, view.LogQuery{Stream: "stdout"},
	); !strings.HasPrefix(got, "begun\ntick 0\n") || !strings.HasPrefix(got, string(lines)) {
		t.Errorf("log of a running task = %q, want what was followed first: %q", got, lines)
	}

	t.Run("someone else's attempt", func(t *testing.T) {
		body, err := stranger.AskForLog(t.Context(), b.Self(), attempt.String())
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if text, _ := io.ReadAll(body); len(text) > 0 {
			t.Errorf("a stranger reads %q", text)
		}
		if got := b.Known().Counters["log_request_denied"]; got != 1 {
			t.Errorf("%d requests were denied, want 1", got)
		}
		bad, err := a.AskForLog(t.Context(), b.Self(), "../../etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		defer bad.Close()
		if text, _ := io.ReadAll(bad); len(text) > 0 || b.Known().Counters["log_request_invalid"] != 1 {
			t.Errorf("a request without sense reads %q", text)
		}
	})
	t.Run("reader leaves", func(t *testing.T) {
		silent, err := a.TaskLog(t.Context(), id, view.LogQuery{Stream: "stderr", Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := silent.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := a.Cancel(t.Context(), id.Job); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, followed); err != nil {
		t.Errorf("the rest of the log: %v", err)
	}
	if err := followed.Close(); err != nil {
		t.Error(err)
	}
}

// alone starts an agent that runs its own jobs.
func alone(t *testing.T) *node {
	t.Helper()
	c := agent.Plans(t, 2)
	return start(t, c[1])
}

func TestLocalLog(t *testing.T) {
	a := alone(t)
	id := a.submit(t, a.job(t, "print=here", "run=-1s"))
	a.await(t, id, view.PhaseRunning)
	if got := a.log(t, id, view.LogQuery{Stream: "stdout"}); got != "here\n" {
		t.Errorf("log = %q", got)
	}
	// A reader that follows and never reads must not hold up the end, which the
	// cleanup wants.
	if _, err := a.TaskLog(t.Context(), id, view.LogQuery{
		Stream: "stdout", Follow: true,
	}); err != nil {
		t.Error(err)
	}
}

func TestLogBeforeTheStart(t *testing.T) {
	a := alone(t)
	if err := a.Pause(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	id := a.submit(t, a.job(t))
	if _, err := a.TaskLog(
		t.Context(), id, view.LogQuery{Stream: "stdout"},
	); !errors.Is(err, view.ErrConflict) {
		t.Errorf("log of a waiting task: %v, want ErrConflict", err)
	}
	if err := a.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.await(t, id, view.PhaseDone)
}

func TestPauseEndsByItself(t *testing.T) {
	a := alone(t)
	if err := a.Pause(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	agent.Eventually(t, "the pause is over", func() bool {
		s, err := a.Status(t.Context())
		return err == nil && !s.Paused
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	for _, now := range []bool{false, true} {
		t.Run(fmt.Sprintf("now=%t", now), func(t *testing.T) {
			a, b := pair(t)
			id := a.submit(t, a.job(t, "run=300ms"))
			if now {
				if err := a.Cancel(t.Context(), id.Job); err != nil {
					t.Fatal(err)
				}
				id = a.submit(t, a.job(t, "run=-1s"))
			}
			a.await(t, id, view.PhaseRunning)
			if err := b.Stop(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			select {
			case <-b.done:
			case <-time.After(agent.Patience):
				t.Fatal("the agent does not end")
			}
			if b.err != nil {
				t.Errorf("Run: %v, want nil", b.err)
			}
			if !now {
				a.await(t, id, view.PhaseDone)
				return
			}
			task := a.task(t, id)
			if len(task.Attempts) == 0 || task.Phase.Ended() {
				t.Errorf("a stopped task is not looked after: %+v", task)
			}
		})
	}
}

func TestResumeCallsOffStop(t *testing.T) {
	a := alone(t)
	id := a.submit(t, a.job(t, "run=-1s"))
	a.await(t, id, view.PhaseRunning)
	for _, do := range []func() error{
		func() error { return a.Stop(t.Context(), false) },
		func() error { return a.Stop(t.Context(), false) },
		func() error { return a.Resume(t.Context()) },
		func() error { return a.Cancel(t.Context(), id.Job) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	second := a.submit(t, a.job(t))
	a.await(t, second, view.PhaseDone)
	select {
	case <-a.done:
		t.Error("the agent ended though the stop was called off")
	default:
	}
	if err := a.Stop(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	a.awaitEnd(t)
}

func TestRestart(t *testing.T) {
	t.Parallel()
	c := agent.Plans(t, 3)
	a := start(t, c[0])
	b := start(t, c[1], a)
	a.awaitPeers(t, 1)
	id := a.submit(t, a.job(t, "run=-1s"))
	a.await(t, id, view.PhaseRunning)
	d := start(t, c[2], a, b)
	a.awaitPeers(t, 2)
	b.close(t)
	again := start(t, c[1], a, d)
	agent.Eventually(t, "the task moves", func() bool {
		task := a.task(t, id)
		return task.Phase == view.PhaseRunning && task.Token > 1
	})
	task := a.task(t, id)
	if cause := task.Attempts[0].Cause; cause == "" {
		t.Errorf("the first attempt ended for no reason: %+v", task.Attempts)
	}
	if len(again.left(t, "attempts")) > 1 {
		t.Errorf("an earlier run's attempts are left: %v", again.left(t, "attempts"))
	}

	// The submitter's restart: it knows its job, keeps its data and goes on.
	a.close(t)
	a2 := start(t, c[0], again, d)
	a2.await(t, id, view.PhaseRunning)
	var pinned int
	agent.Eventually(t, "what nobody owns is let go", func() bool {
		pinned = 0
		for _, root := range a2.Stores().Data.Roots() {
			if root.Pinned {
				pinned++
			}
		}
		return pinned == 1
	})
	if err := a2.Cancel(t.Context(), id.Job); err != nil {
		t.Fatal(err)
	}
	a2.await(t, id, view.PhaseCancelled)
}

func TestNewRefuses(t *testing.T) {
	c := agent.Plans(t, 1)[0]
	bad := c
	bad.Lease = -time.Second
	bad.P2P.Domain = "Not a label"
	if _, err := agent.New(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "domain") {
		t.Errorf("New with a bad domain: %v", err)
	}
	a := start(t, c)
	if _, err := agent.New(t.Context(), c); err == nil {
		t.Error("two agents share a state directory")
	}
	if _, err := os.Stat(filepath.Join(a.cfg.StateDir, "attempts")); err != nil {
		t.Error(err)
	}
}

// TestMachinePanic wants that an agent whose machine breaks ends with an error.
func TestMachinePanic(t *testing.T) {
	c := agent.Plans(t, 1)[0]
	n := start(t, c)
	n.fails = true
	_ = n.AskSite(t.Context(), func(*site.Machine) { panic("lost count") }) // its loop is gone then
	n.awaitEnd(t)
	if n.err == nil || !strings.Contains(n.err.Error(), "lost count") {
		t.Errorf("Run: %v, want what broke", n.err)
	}
	if _, err := n.Status(t.Context()); !errors.Is(err, view.ErrBusy) {
		t.Errorf("Status after the end: %v, want ErrBusy", err)
	}
}
