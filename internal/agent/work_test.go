package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// bench is a workshop whose orders a test gives itself, in place of the site's
// machine.
type bench struct {
	*Agent
	t        *testing.T
	mu       sync.Mutex
	heard    []step.Input // what the workshop told the machine; guarded by mu
	ofBroker ear          // what the submitter's machine was told
	stop     func()       // ends it, once
}

// gated is an adapter that starts its sandboxes when the gate opens.
type gated struct {
	lrm.Adapter
	gate   chan struct{}
	begun  chan struct{}     // gets a token when a start begins
	leases chan lrm.BootTime // gets every lease that is set later
}

func newGated() gated {
	return gated{
		Adapter: fake.New(fake.Config{}), gate: make(chan struct{}), begun: make(chan struct{}, 1),
		leases: make(chan lrm.BootTime, 16),
	}
}

// Start implements lrm.Adapter.
func (g gated) Start(ctx context.Context, a lrm.Attempt) (lrm.Process, error) {
	g.begun <- struct{}{}
	<-g.gate
	p, err := g.Adapter.Start(ctx, a)
	return leased{p, g.leases}, err
}

// leased is a process that tells of its leases.
type leased struct {
	lrm.Process
	leases chan lrm.BootTime
}

// SetLease implements lrm.Control.
func (l leased) SetLease(until lrm.BootTime) error {
	l.leases <- until
	return l.Process.SetLease(until)
}

var testAttempt = grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 1}

// newBench makes an agent whose machines are replaced by listeners.
func newBench(t *testing.T, adapter lrm.Adapter) *bench {
	t.Helper()
	c := plans(t, 2)[1]
	c.Adapters = map[grid.WorkKind]lrm.Adapter{grid.KindWasm: adapter}
	return newBenchOf(t, c)
}

func newBenchOf(t *testing.T, c Config) *bench {
	t.Helper()
	a, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, Agent: a}
	j := a.groups.jobsOf(a.Self())
	j.making = func() (step.Machine, any) {
		_, config := j.makeBroker()
		return b.ofBroker.machine(), config
	}
	a.site.machine = scripted(func(_ time.Time, in step.Input) []step.Effect {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, in)
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ran, a.Close()); err != nil {
			t.Errorf("the agent ends with %v", err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

// store puts a text into the agent's data, as an upload does.
func (b *bench) store(t *testing.T, text string) data.Ref {
	t.Helper()
	ref, err := b.data.AddFile(t.Context(), strings.NewReader(text))
	if err == nil {
		err = b.KeepUpload(ref.CID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// gives lets another agent have data, as the one that a job's task was awarded to.
func (b *bench) gives(to *bench, cids ...grid.CID) {
	const job = grid.JobID("given")
	b.pins.hold(jobOwner(job), cids...)
	b.readers.admit(jobOwner(job), to.Self())
}

// left lists what stands in a directory of the agent's state.
func (b *bench) left(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(b.cfg.StateDir, dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// order carries out an effect on the loop of the machine that wants such, as its own are.
func (b *bench) order(e step.Effect) {
	b.t.Helper()
	switch e.(type) {
	case step.Hold, step.Collect, step.Pull:
		g := b.groups.of(b.Self())
		if err := g.ask(b.t.Context(), func() { g.release(e) }); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	if err := b.site.ask(b.t.Context(), func() { b.perform(e) }); err != nil {
		b.t.Fatal(err)
	}
}

// await waits until the machine has been told something of that type.
func await[I step.Input](b *bench) I {
	b.t.Helper()
	var found I
	eventually(b.t, "the machine is told", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, in := range b.heard {
			if same, ok := in.(I); ok {
				found = same
				return true
			}
		}
		return false
	})
	return found
}

// exits lists the ends that the machine was told.
func (b *bench) exits() []grid.Exit {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []grid.Exit
	for _, in := range b.heard {
		if e, ok := in.(step.AttemptExited); ok {
			list = append(list, e.Exit)
		}
	}
	return list
}

// wantExit waits for the one end of the attempt.
func (b *bench) wantExit(cause grid.ExitCause) grid.Exit {
	b.t.Helper()
	await[step.AttemptExited](b)
	if list := b.exits(); len(list) != 1 || list[0].Cause != cause {
		b.t.Errorf("the machine is told of the ends %+v, want one: %s", list, cause)
	}
	return b.exits()[0]
}

// discard wants that nothing is left of the attempt.
func (b *bench) discard() {
	b.t.Helper()
	b.order(step.Discard{Attempt: testAttempt})
	eventually(b.t, "the attempt's directory and module are gone", func() bool {
		return len(b.left(b.t, "attempts")) == 0 && len(b.left(b.t, "modules")) == 0
	})
	b.pins.mu.Lock()
	defer b.pins.mu.Unlock()
	for owner, cids := range b.pins.owned {
		b.t.Errorf("%s still owns %v", owner, cids)
	}
}

// stage stages the attempt.
func (b *bench) stage() {
	b.t.Helper()
	module, input := b.store(b.t, "module"), b.store(b.t, "input")
	b.order(step.Stage{
		Attempt: testAttempt, From: b.Self(),
		Module: grid.Input{Path: "/module", CID: module.CID, Bytes: module.Bytes},
		Inputs: []grid.Input{{Path: "/in/x", CID: input.CID, Bytes: input.Bytes}},
	})
	if s := await[step.Staged](b); s.Problem != "" || s.Attempt != testAttempt {
		b.t.Fatalf("staged: %+v", s)
	}
}

// start starts the staged attempt.
func (b *bench) start(lease time.Duration, args ...string) {
	b.t.Helper()
	b.begin(lease, grid.Task{
		ID: testAttempt.Task, Kind: grid.KindWasm, Args: args,
		Outputs: []grid.Output{{Path: "/out/x", To: "x"}},
	})
}

func (b *bench) begin(lease time.Duration, task grid.Task) {
	b.t.Helper()
	b.order(step.StartAttempt{
		Attempt: testAttempt, LeaseUntil: b.clock.now().Add(lease), Task: task,
	})
}

func TestAttemptRuns(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	b.stage()
	if text, err := os.ReadFile(filepath.Join(
		b.work.attemptDir(testAttempt), "in-0",
	)); err != nil || string(text) != "input" {
		t.Errorf("the input is laid out as %q, %v", text, err)
	}
	b.start(time.Hour, "print=hello", "put=/out/x:result", "exit=3")
	exit := b.wantExit(grid.CauseExited)
	if exit.Code != 3 || len(exit.Outputs) != 1 || exit.Outputs[0].Bytes != 6 ||
		!b.data.Has(exit.Outputs[0].CID) || !b.data.Has(exit.Stdout.CID) {
		t.Errorf("exit = %+v, want what it left, stored", exit)
	}
	if !b.work.over(testAttempt) {
		t.Error("an ended attempt is said to write on")
	}
	b.order(step.StopAttempt{Attempt: testAttempt}) // too late: it has answered
	b.discard()
	if n := len(b.exits()); n != 1 {
		t.Errorf("the machine is told %d ends, want 1", n)
	}
}

func TestStopInEveryState(t *testing.T) {
	t.Parallel()
	t.Run("unknown", func(t *testing.T) {
		b := newBench(t, fake.New(fake.Config{}))
		b.order(step.StopAttempt{Attempt: testAttempt})
		b.wantExit(grid.CauseStopped)
		b.discard()
	})
	t.Run("staging", func(t *testing.T) {
		b := newBench(t, fake.New(fake.Config{}))
		nowhere := grid.Input{
			Path: "/in/x", CID: "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", Bytes: 1,
		}
		if err := b.site.ask(t.Context(), func() { // both before the fetch can fail
			b.perform(step.Stage{Attempt: testAttempt, From: b.Self(), Inputs: []grid.Input{nowhere}})
			b.perform(step.StopAttempt{Attempt: testAttempt})
		}); err != nil {
			t.Fatal(err)
		}
		b.wantExit(grid.CauseStopped)
		b.discard()
	})
	t.Run("staged", func(t *testing.T) {
		b := newBench(t, fake.New(fake.Config{}))
		b.stage()
		b.order(step.StopAttempt{Attempt: testAttempt})
		b.wantExit(grid.CauseStopped)
		b.discard()
	})
	t.Run("starting", func(t *testing.T) {
		g := newGated()
		b := newBench(t, g)
		b.stage()
		b.start(time.Hour, "run=-1s")
		<-g.begun
		b.order(step.StopAttempt{Attempt: testAttempt})
		close(g.gate)
		b.wantExit(grid.CauseStopped)
		b.discard()
	})
	t.Run("running", func(t *testing.T) {
		b := newBench(t, fake.New(fake.Config{}))
		b.stage()
		b.start(time.Hour, "run=-1s", "print=hello")
		await[step.AttemptStarted](b)
		b.order(step.StopAttempt{Attempt: testAttempt})
		if exit := b.wantExit(grid.CauseStopped); exit.Stdout.CID == "" {
			t.Error("what it printed is lost")
		}
		b.discard()
	})
}

// TestLeaseWhileStarting extends a lease before the sandbox is there.
func TestLeaseWhileStarting(t *testing.T) {
	g := newGated()
	b := newBench(t, g)
	b.stage()
	b.start(time.Minute, "run=-1s")
	<-g.begun
	until := b.clock.now().Add(time.Hour)
	b.order(step.ExtendLease{Attempt: testAttempt, LeaseUntil: until})
	close(g.gate)
	select {
	case got := <-g.leases:
		if want := b.clock.toBoot(until); got != want {
			t.Errorf("the lease ends at %d, want %d", got, want)
		}
	case <-time.After(patience):
		t.Error("the longer lease is lost")
	}
}

func TestFreezeAndResume(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	b.stage()
	b.start(200*time.Millisecond, "run=-1s")
	await[step.AttemptFrozen](b)
	b.order(step.ExtendLease{Attempt: testAttempt, LeaseUntil: b.clock.now().Add(time.Hour)})
	await[step.AttemptResumed](b)
	// A lease of an unknown attempt changes nothing.
	unknown := grid.AttemptID{Task: testAttempt.Task, Token: 9}
	b.order(step.ExtendLease{Attempt: unknown, LeaseUntil: b.clock.now()})
}

func TestStartFails(t *testing.T) {
	for name, c := range map[string]struct {
		stage bool
		kind  grid.WorkKind
		args  []string
	}{
		"not staged": {kind: grid.KindWasm},
		"wrong kind": {stage: true, kind: grid.KindCommand},
		"sandbox":    {stage: true, kind: grid.KindWasm, args: []string{"fail-start=no luck"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fake.New(fake.Config{}))
			if c.stage {
				b.stage()
			}
			b.order(step.StartAttempt{
				Attempt: testAttempt, LeaseUntil: b.clock.now().Add(time.Hour),
				Task: grid.Task{ID: testAttempt.Task, Kind: c.kind, Args: c.args},
			})
			if exit := b.wantExit(grid.CauseSandbox); exit.Text == "" {
				t.Error("it fails without a text")
			}
			b.discard()
		})
	}
}

func TestStagingFails(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	b.order(step.Stage{
		Attempt: testAttempt, From: b.Self(),
		Inputs: []grid.Input{
			{Path: "/in/x", CID: "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", Bytes: 1},
		},
	})
	if s := await[step.Staged](b); s.Problem == "" {
		t.Error("data that nobody has was fetched")
	}
	b.discard()
}

// TestOutputsThatAreLinks wants that an output which the adapter let through as
// a file, though it is a link, is not followed.
func TestOutputsThatAreLinks(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "inner")); err != nil {
		t.Fatal(err)
	}
	for _, f := range []lrm.File{
		{SandboxPath: "/out/x", HostPath: link},
		{SandboxPath: "/out/x", HostPath: folder, Dir: true},
		{SandboxPath: "/out/x", HostPath: folder},
		{SandboxPath: "/out/x", HostPath: filepath.Join(dir, "none")},
	} {
		exit, err := b.work.keep(testAttempt, &work{}, lrm.Result{
			Exit: grid.Exit{Cause: grid.CauseExited}, Outputs: []lrm.File{f},
		})
		if err != nil || exit.Cause != grid.CauseData || len(exit.Outputs) > 0 || exit.Text == "" {
			t.Errorf("%s: exit = %+v, want that it cannot be stored", f.HostPath, exit)
		}
	}
}

// TestModulesAreShared wants that a module stands there as long as one attempt
// needs it.
func TestModulesAreShared(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	ref := b.store(t, "module")
	var paths []string
	for range 2 {
		path, err := b.work.modules.take(t.Context(), "", ref.CID)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	for i, want := range []bool{true, false} {
		if err := b.work.modules.drop(ref.CID); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(paths[0]); (err == nil) != want || paths[0] != paths[1] {
			t.Errorf("after %d of 2 attempts: %v, want it there: %t", i+1, err, want)
		}
	}
	if _, err := b.work.modules.take(
		t.Context(), "", "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy",
	); err == nil {
		t.Error("a module that is not here was laid out")
	}
}
