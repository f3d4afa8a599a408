package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const stopped = "stop: stopped by its submitter or the site's owner"

func wasmTask() grid.Task { return grid.Task{ID: testAttempt.Task, Kind: grid.KindWasm} }

// A sandbox is told all that bounds an attempt: what the task needs, at least what counts for
// any task, the owner's longest run, and the end of its lease on the supervisors' clock.
func TestWhatASandboxIsTold(t *testing.T) {
	task := wasmTask()
	task.Need = grid.Resources{MilliCPUs: 700, MemoryBytes: 300 << 20, DiskBytes: 1}
	task.Outputs = []grid.Output{{Path: "/out/x", To: "x"}, {Path: "/out/y", To: "y"}}
	b, _, a := play(t, task, func(c *Config) { c.MaxRuntime = time.Minute })
	lease := a.LeaseUntil
	if left := lease.Sub(b.clock.read()); left > time.Hour || left < time.Hour-patience {
		t.Errorf("the lease ends in %s, want an hour", left)
	}
	dir := filepath.Join(b.cfg.StateDir, "attempts", "mfrggzdfmztwq2lk.0-1")
	want := lrm.Attempt{
		ID: testAttempt, Task: task, Dir: dir,
		Inputs: []lrm.Bind{{SandboxPath: "/in/x", HostPath: filepath.Join(dir, "in-0")}},
		Limits: lrm.Limits{
			MilliCPUs: 700, MemoryBytes: 300 << 20, DiskBytes: task.Need.Counted().DiskBytes,
			OutputBytes: b.cfg.OutputBytes, WallTime: time.Minute,
		},
		OutputPaths: []string{"/out/x", "/out/y"}, LeaseUntil: lease,
		ModulePath: b.left(t, "modules")[0],
		RecordPath: filepath.Join(b.cfg.StateDir, RecordFile),
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("the attempt (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(a.ModulePath); err != nil || string(text) != "module" {
		t.Errorf("the module is %q, %v", text, err)
	}
}

// The shorter one of the task's limit and the owner's counts; 0 is none.
func TestTheShorterLimitCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tasks, owners, want time.Duration }{
		{0, 0, 0},
		{time.Minute, 0, time.Minute},
		{0, time.Minute, time.Minute},
		{time.Minute, time.Hour, time.Minute},
		{time.Hour, time.Minute, time.Minute},
	} {
		a := &Agent{}
		a.inForce.terms.MaxRuntime = c.owners
		w := &workshop{a: a}
		if got := w.wallTime(grid.Task{TimeLimit: c.tasks}); got != c.want {
			t.Errorf("%s of the task, %s of the owner: %s, want %s", c.tasks, c.owners, got, c.want)
		}
	}
}

// All that happens to an attempt is told, in order, as what it is.
func TestWhatHappensToAnAttemptIsTold(t *testing.T) {
	b, p, _ := play(t, wasmTask())
	for _, kind := range []lrm.EventKind{
		lrm.Preparing, lrm.Prepared, lrm.Frozen, lrm.Resumed, lrm.Started,
	} {
		p.events <- lrm.Event{Kind: kind}
	}
	p.finished.Exit = grid.Exit{Cause: grid.CauseExited, Code: 3, Wall: time.Second}
	if b.work.over(testAttempt) {
		t.Error("a running attempt is said to write no more")
	}
	p.end()
	if got := b.wantExit(grid.CauseExited); got.Code != 3 || got.Wall != time.Second {
		t.Errorf("its end is %+v", got)
	}
	at := testAttempt
	want := []step.Input{
		step.AttemptStarted{Attempt: at, Preparing: true},
		step.AttemptStarted{Attempt: at},
		step.AttemptFrozen{Attempt: at},
		step.AttemptResumed{Attempt: at},
		step.AttemptStarted{Attempt: at},
		step.AttemptExited{Attempt: at, Exit: p.finished.Exit},
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var got []step.Input
	for _, in := range b.heard {
		switch in.(type) {
		case step.AttemptStarted, step.AttemptFrozen, step.AttemptResumed, step.AttemptExited:
			got = append(got, in)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the machine is told (-want +got):\n%s", diff)
	}
}

// An attempt is suspended and continued as the owner comes and goes; one that is suspended
// before its sandbox is there is so from its start.
func TestSuspendedFromItsStart(t *testing.T) {
	g := newGated()
	p := newPuppet()
	g.Adapter = p
	b := newBench(t, g)
	t.Cleanup(p.end)
	b.stage()
	b.begin(time.Hour, wasmTask())
	<-g.begun
	b.order(step.SuspendAttempt{Attempt: testAttempt})
	close(g.gate)
	eventually(t, "it is suspended", func() bool { return len(p.called()) > 0 })
	if use := b.work.use(); !use.Live || use.Working {
		t.Errorf("a suspended attempt: %+v, want it live and not at work", use)
	}
	b.order(step.ContinueAttempt{Attempt: testAttempt})
	unknown := grid.AttemptID{Task: testAttempt.Task, Token: 9}
	b.order(step.SuspendAttempt{Attempt: unknown})
	b.order(step.StopAttempt{Attempt: testAttempt})
	b.wantExit(grid.CauseExited)
	want := []string{"suspend true", "suspend false", stopped}
	if diff := cmp.Diff(want, p.called()); diff != "" {
		t.Errorf("the sandbox was told (-want +got):\n%s", diff)
	}
	b.discard()
}

// One that cannot be suspended is stopped, and what goes wrong with it is logged.
func TestASandboxThatDoesNotObey(t *testing.T) {
	var said sentence
	b, p, _ := play(t, wasmTask(), func(c *Config) { c.Log = logged(&said, -4) })
	eventually(t, "it runs", b.running)
	p.fail(errForTest)
	b.order(step.SuspendAttempt{Attempt: testAttempt})
	b.order(step.ExtendLease{Attempt: testAttempt, LeaseUntil: b.clock.wall})
	want := []string{
		"suspend true", "stop: it could not be suspended for the site's owner",
		fmt.Sprintf("lease %d", b.clock.boot),
	}
	if diff := cmp.Diff(want, p.called()); diff != "" {
		t.Errorf("the sandbox was told (-want +got):\n%s", diff)
	}
	for _, line := range []string{
		"an attempt could not be suspended or continued", "an attempt could not be stopped",
		"a lease could not be set",
	} {
		if said.count(line) != 1 {
			t.Errorf("the log lacks %q: %s", line, said.String())
		}
	}
	p.fail(nil)
}

// What the agent and its attempts use: those that have ended count no more, those that cannot
// be asked are left out.
func TestWhatAttemptsUse(t *testing.T) {
	b, p, _ := play(t, wasmTask())
	without := b.work.use()
	if !without.Live || !without.Working || !without.Known {
		t.Errorf("with an attempt at work: %+v", without)
	}
	const used = 1000 * time.Hour // more than this process will ever use
	set := func(cpu time.Duration, unknown bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cpu, p.unknown = cpu, unknown
	}
	eventually(t, "the sandbox is asked", func() bool {
		set(used, false)
		return b.work.use().CPU >= used
	})
	if use := b.work.use(); use.CPU > used+used/2 {
		t.Errorf("%s are used, want %s and what this process uses", use.CPU, used)
	}
	set(used, true)
	if use := b.work.use(); use.CPU >= used {
		t.Errorf("%s are used where that is unknown", use.CPU)
	}
	set(used, false)
	p.end()
	b.wantExit(grid.CauseExited)
	if use := b.work.use(); use.Live || use.Working || use.CPU >= used {
		t.Errorf("after the end: %+v", use)
	}
}

// What ran while the disk was full counts as stopped, with the time that it took, unless its end
// was the site's doing in any case.
func TestAnEndOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause, want grid.ExitCause
		full        bool
	}{
		{grid.CauseExited, grid.CauseStopped, true},
		{grid.CauseExited, grid.CauseExited, false},
		{grid.CauseSandbox, grid.CauseSandbox, true},
	} {
		b, p, _ := play(t, wasmTask())
		eventually(t, "it runs", func() bool { return b.work.use().Live && b.running() })
		if c.full {
			b.disk.starved()
		}
		p.finished.Exit = grid.Exit{Cause: c.cause, Code: 7, Wall: time.Minute}
		p.end()
		got := b.wantExit(c.want)
		if got.Wall != time.Minute {
			t.Errorf("%s: its wall time is %s", c.cause, got.Wall)
		}
		if byDisk := strings.Contains(got.Text, "disk was full"); byDisk != (c.cause != c.want) ||
			byDisk != (got.Code == 0) {
			t.Errorf("%s, full %t: %+v", c.cause, c.full, got)
		}
		b.discard()
	}
}

// running reports whether the test's attempt has its sandbox.
func (b *bench) running() bool {
	b.work.mu.Lock()
	defer b.work.mu.Unlock()
	job := b.work.attempts[testAttempt]
	return job != nil && job.state == workRunning
}

// When the agent ends it ends its attempts, and tells their machine nothing of that.
func TestTheAgentsEndEndsAttempts(t *testing.T) {
	b, p, _ := play(t, wasmTask())
	eventually(t, "it runs", b.running)
	b.leave(errStopped)
	eventually(t, "the sandbox is told", func() bool { return len(p.called()) > 0 })
	<-p.over
	if diff := cmp.Diff([]string{"stop: the site's agent ended"}, p.called()); diff != "" {
		t.Errorf("the sandbox was told (-want +got):\n%s", diff)
	}
	b.group.Wait()
	if n := len(b.exits()); n != 0 {
		t.Errorf("the machine is told of %d ends", n)
	}
}

// Of what an attempt left, streams and outputs are kept for the attempt and count for its
// submitter; a share that is used up and a full disk are told apart.
func TestWhatAnAttemptLeftIsKept(t *testing.T) {
	b := newBench(t, newPuppet())
	file := func(name, text string) lrm.File {
		path := filepath.Join(b.cfg.StateDir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return lrm.File{SandboxPath: "/out/" + name, HostPath: path}
	}
	result := lrm.Result{
		Exit:   grid.Exit{Cause: grid.CauseExited, Code: 1, Wall: time.Second, Text: "as it said"},
		Stdout: file("stdout", "printed"), Stderr: file("stderr", "complained"),
		Outputs: []lrm.File{file("one", "1"), {}, file("two", "22")},
	}
	exit, err := b.work.keep(testAttempt, &work{tenant: "stranger"}, result)
	if err != nil || exit.Code != 1 || exit.Text != "as it said" || len(exit.Outputs) != 2 ||
		exit.Stdout.Bytes != 7 || exit.Stderr.Bytes != 10 || exit.Outputs[1].Path != "/out/two" ||
		exit.Outputs[1].Bytes != 2 || exit.Outputs[1].Dir {
		t.Fatalf("kept: %+v, %v", exit, err)
	}
	holder := attemptOwner(testAttempt)
	b.pins.mu.Lock()
	owned, charges := len(b.pins.owned[holder]), len(b.pins.charges[holder])
	b.pins.mu.Unlock()
	if owned != 4 || charges != 4 {
		t.Errorf("%d pieces are kept and %d count, want 4", owned, charges)
	}
	large := noise(int(b.cfg.Data.QuotaBytes/8) + 1)
	result.Outputs = []lrm.File{file("large", large)}
	exit, err = b.work.keep(testAttempt, &work{tenant: "stranger"}, result)
	if err != nil || exit.Cause != grid.CauseData || exit.Wall != time.Second || exit.Code != 0 ||
		!strings.HasPrefix(exit.Text, "its outputs cannot be stored: ") {
		t.Errorf("more than the share: %+v, %v", exit, err)
	}
	if exit, err = b.work.keep(testAttempt, &work{}, result); err != nil || len(exit.Outputs) != 1 {
		t.Errorf("of the site's own job: %+v, %v", exit, err)
	}
}
