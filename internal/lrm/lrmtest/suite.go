package lrmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const job = grid.JobID("mfrggzdfmztwq2lk")

// Harness tells the suite about an adapter.
type Harness struct {
	// New makes an adapter whose run record stands at recordPath.
	New func(t testing.TB, recordPath string) lrm.Adapter
	// Kind is the kind of work.
	Kind grid.WorkKind
	// Module is the guest of BuildGuest, where Kind needs a module.
	Module string
	// Prefix stands before the guest's arguments, such as the guest's own path.
	Prefix []string
	// Inputs stand in the sandbox of every attempt, such as the guest itself.
	Inputs []lrm.Bind
	// Series is that of all attempts.
	Series string
	// Home is the variable HOME as programs see it.
	Home string
	// System says that programs see a /proc and a system of their own, and can make
	// links in their own files.
	System bool
	// OwnKernel says, with System, that their kernel is not the machine's: devices and
	// a log that it has are its own.
	OwnKernel bool
	// Scripted says that no programs are run, only their effects played; the
	// cases about programs that attack their sandbox are left out.
	Scripted bool
	// Left lists what of an agent's attempts is left on the machine besides processes,
	// mounts and files, such as control groups; nil = nothing can be.
	Left func(recordPath string) []string
	// Own names what an adapter itself keeps beside its run record.
	Own []string
	// Agent is a command that calls AgentMain with such an adapter; nil leaves out
	// the cases about the agent's death.
	Agent func(recordPath string) *exec.Cmd
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			switch {
			case c.attack && h.Scripted:
				t.Skip("the adapter runs no programs")
			case c.system && !h.System:
				t.Skip("the adapter's programs have no system of their own")
			case c.agent && h.Agent == nil:
				t.Skip("the adapter's attempts are no processes")
			}
			t.Parallel()
			c.test(t, newBench(t, h))
		})
	}
}

type testCase struct {
	name   string
	attack bool // needs real programs
	system bool // needs programs with a system of their own
	agent  bool // needs an agent of its own
	test   func(t *testing.T, b *bench)
}

func cases() []testCase {
	var all []testCase
	all = append(all, basicCases()...)
	all = append(all, limitCases()...)
	all = append(all, leaseCases()...)
	all = append(all, abuseCases()...)
	return append(all, attackCases()...)
}

// bench is one case's place to work.
type bench struct {
	h      Harness
	dir    string
	record string
	next   grid.Token
}

func newBench(t *testing.T, h Harness) *bench {
	t.Helper()
	dir := t.TempDir()
	return &bench{h: h, dir: dir, record: filepath.Join(dir, "runs.jsonl")}
}

// attempt is a new attempt to run the guest with these arguments, under a long
// lease and small limits.
func (b *bench) attempt(t *testing.T, args ...string) lrm.Attempt {
	t.Helper()
	b.next++
	a := NewAttempt(t, b.dir, b.next, append(slices.Clone(b.h.Prefix), args...)...)
	a.ModulePath, a.RecordPath, a.Inputs = b.h.Module, b.record, slices.Clone(b.h.Inputs)
	a.Task.Kind, a.Series = b.h.Kind, b.h.Series
	return a
}

func (b *bench) start(t *testing.T, a lrm.Attempt) lrm.Process {
	t.Helper()
	return Start(t, b.h.New(t, b.record), a)
}

// run runs an attempt to its end.
func (b *bench) run(t *testing.T, a lrm.Attempt) lrm.Result {
	t.Helper()
	return Wait(t, b.start(t, a))
}

// await reads events until one of that kind comes.
func await(t *testing.T, p lrm.Process, kind lrm.EventKind) lrm.Event {
	t.Helper()
	deadline := time.After(Patience)
	for {
		select {
		case e, ok := <-p.Events():
			if !ok {
				t.Fatalf("the attempt ended before it was %s: %+v", kind, Wait(t, p).Exit)
			}
			if e.Kind == kind {
				return e
			}
		case <-deadline:
			t.Fatalf("the attempt was not %s within %s", kind, Patience)
		}
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// wantExit wants the program's own end with that code.
func wantExit(t *testing.T, r lrm.Result, code int) {
	t.Helper()
	if r.Exit.Cause != grid.CauseExited || r.Exit.Code != code {
		t.Fatalf("exit = %v %d %q, want exited %d; stdout %q stderr %q",
			r.Exit.Cause, r.Exit.Code, r.Exit.Text, code, Text(t, r.Stdout), Text(t, r.Stderr))
	}
}

func wantCause(t *testing.T, r lrm.Result, cause grid.ExitCause) {
	t.Helper()
	if r.Exit.Cause != cause {
		t.Fatalf(
			"exit = %v %d %q, want %v; stderr %q", r.Exit.Cause, r.Exit.Code, r.Exit.Text, cause,
			Text(t, r.Stderr),
		)
	}
	if r.Exit.Text == "" {
		t.Errorf("%v comes without an explanation", cause)
	}
}

// suspendVar lets AgentMain suspend the attempt that it has started.
const suspendVar = "LRMTEST_SUSPEND"

// AgentMain is the body of an agent that a test kills: it starts the attempt
// that its standard input holds and waits for its end. It returns the exit code.
func AgentMain(a lrm.Adapter) int {
	var at lrm.Attempt
	if err := json.NewDecoder(os.Stdin).Decode(&at); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p, err := a.Start(context.Background(), at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if slices.ContainsFunc(at.Task.Env, func(e grid.EnvVar) bool { return e.Name == suspendVar }) {
		if err := p.Suspend(true); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if _, err := p.Wait(context.Background()); err != nil {
		return 1
	}
	return 0
}
