package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// desk is a machine whose memory an owner uses up when a test says so.
type desk struct {
	t     *testing.T
	root  string
	file  *os.File
	waits int64 // us
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, root: t.TempDir()}
	dir := filepath.Join(d.root, "proc/pressure")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(
		filepath.Join(d.root, "proc/stat"), []byte("cpu  0 0 0 0 0 0 0 0\ncpu0 0\ncpu1 0\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.file, err = os.Create(filepath.Join(dir, "memory")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.file.Close() })
	d.use(0)
	return d
}

// use lets processes wait for memory for that much longer.
func (d *desk) use(by time.Duration) {
	d.waits += by.Microseconds()
	if _, err := fmt.Fprintf(
		pwriter{d.file}, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%012d\n", d.waits,
	); err != nil {
		d.t.Fatal(err)
	}
}

// pwriter writes over the beginning of a file.
type pwriter struct{ f *os.File }

func (w pwriter) Write(p []byte) (int, error) { return w.f.WriteAt(p, 0) }

// await lets the owner work until the condition holds.
func (d *desk) await(what string, holds func() bool) {
	d.t.Helper()
	agent.Eventually(d.t, what, func() bool {
		d.use(2 * time.Millisecond)
		return holds()
	})
}

func ownerRules() yield.Rules {
	r := yield.DefaultRules()
	r.Calm = time.Second
	return r
}

// When the owner comes, running jobs are suspended, their submitters are told why and
// nothing is offered; when the owner goes, the jobs run on from where they were.
func TestOwnerComesAndGoes(t *testing.T) {
	t.Parallel()
	c := agent.Plans(t, 2)
	d := newDesk(t)
	c[1].Owner = agent.Owner{Yield: true, Rules: ownerRules(), Root: d.root}
	submitter := start(t, c[0])
	worker := start(t, c[1], submitter)
	submitter.awaitPeers(t, 1)
	id := submitter.submit(t, submitter.job(t, "run=5s", "print=done"))
	submitter.await(t, id, view.PhaseRunning)

	d.await("the submitter is told", func() bool {
		return submitter.task(t, id).Phase == view.PhaseSuspended
	})
	if task := submitter.task(t, id); !strings.Contains(task.Text, "its owner is using the machine") {
		t.Errorf("text %q does not say why", task.Text)
	}
	job, err := submitter.Job(t.Context(), id.Job)
	if err != nil || job.Status.Phase != view.PhaseSuspended || job.Status.Hint == "" {
		t.Errorf("job %+v, %v; want suspended with a hint", job.Status, err)
	}
	status, err := worker.Status(t.Context())
	if err != nil || status.Owner == nil || !status.Owner.Busy ||
		!strings.Contains(status.Owner.Why, "memory") {
		t.Errorf("status %+v, %v", status.Owner, err)
	}
	if len(status.Running) != 1 || status.Running[0].Phase != view.PhaseSuspended {
		t.Errorf("running %+v, want one suspended", status.Running)
	}
	table, err := submitter.Plan(t.Context(), submitter.job(t, "run=1s"))
	if err != nil {
		t.Fatal(err)
	}
	refused := false
	for _, row := range table.Rows {
		refused = refused || row.Site == worker.Self() && row.Reason == grid.ReasonOwnerBusy && !row.Never
	}
	if !refused {
		t.Errorf("offers %+v, want a refusal for the owner's sake", table.Rows)
	}

	submitter.await(t, id, view.PhaseRunning) // the owner is away: nobody waits
	task := submitter.await(t, id, view.PhaseDone)
	if len(task.Attempts) > 1 {
		t.Errorf("%d attempts, want one", len(task.Attempts))
	}
	records, err := lrm.ReadRecords(filepath.Join(worker.cfg.StateDir, agent.RecordFile))
	if err != nil || len(records) != 4 {
		t.Errorf("records %+v, %v; want started, frozen, resumed, ended", records, err)
	}
}

// awaitRunning waits until so many of the tasks run.
func (n *node) awaitRunning(t *testing.T, ids []grid.TaskID, want int) {
	t.Helper()
	agent.Eventually(t, fmt.Sprintf("%d of %d run", want, len(ids)), func() bool {
		running := 0
		for _, id := range ids {
			if n.task(t, id).Phase == view.PhaseRunning {
				running++
			}
		}
		return running == want
	})
}

// In hours with a share of the cores what takes more is suspended, and goes on when they are over.
func TestHoursWithAShare(t *testing.T) {
	t.Parallel()
	c := agent.Plans(t, 2)[1] // the first one gives next to nothing
	one := start(t, c)
	cores := int(c.Capability.Total.MilliCPUs / 1000)
	var ids []grid.TaskID
	for range cores {
		ids = append(ids, one.submit(t, one.job(t, "run=20s")))
	}
	for _, id := range ids {
		one.await(t, id, view.PhaseRunning)
	}
	within := func(hours string) {
		t.Helper()
		terms := one.Terms()
		var err error
		if terms.Owner.Hours, err = yield.ParseHours(hours); err != nil {
			t.Fatal(err)
		}
		if err = one.Change(t.Context(), terms); err != nil {
			t.Fatal(err)
		}
	}
	within("00:00-24:00 50%")
	one.awaitRunning(t, ids, cores/2)
	status, err := one.Status(t.Context())
	if err != nil || status.Owner == nil || status.Owner.Share != 50 || status.Owner.Busy {
		t.Errorf("status %+v, %v; want a share of 50 %%", status.Owner, err)
	}
	within("")
	one.awaitRunning(t, ids, cores)
}

// An owner who stays gets rid of the attempt, and the task runs elsewhere.
func TestOwnerStays(t *testing.T) {
	t.Parallel()
	c := agent.Plans(t, 3)
	d := newDesk(t)
	c[1].Owner = agent.Owner{Yield: true, Rules: ownerRules(), Root: d.root, Patience: time.Second}
	submitter := start(t, c[0])
	worker := start(t, c[1], submitter)
	submitter.awaitPeers(t, 1)
	id := submitter.submit(t, submitter.job(t, "run=8s"))
	submitter.await(t, id, view.PhaseRunning)
	other := start(t, c[2], submitter)
	submitter.awaitPeers(t, 2)
	d.await("the task moved", func() bool { return submitter.task(t, id).Site == other.Self() })
	d.await("it is done", func() bool { return submitter.task(t, id).Phase == view.PhaseDone })
	agent.Eventually(t, "nothing of it is left at the owner's", func() bool {
		return len(worker.left(t, "attempts")) == 0
	})
}

// unsuspendable cannot be frozen.
type unsuspendable struct{ lrm.Process }

func (u unsuspendable) Suspend(bool) error { return errors.New("it cannot be frozen") }

type stubborn struct{ lrm.Adapter }

func (s stubborn) Start(ctx context.Context, a lrm.Attempt) (lrm.Process, error) {
	p, err := s.Adapter.Start(ctx, a)
	return unsuspendable{p}, err
}

// What cannot be suspended is stopped: the owner is not harmed, and nothing is
// lost because the submitter hears of it.
func TestWhatCannotBeSuspendedIsStopped(t *testing.T) {
	t.Parallel()
	c := agent.Plans(t, 2)
	d := newDesk(t)
	c[1].Owner = agent.Owner{Yield: true, Rules: ownerRules(), Root: d.root}
	c[1].Adapters[grid.KindWasm] = stubborn{fake.New(fake.Config{})}
	submitter := start(t, c[0])
	worker := start(t, c[1], submitter)
	submitter.awaitPeers(t, 1)
	id := submitter.submit(t, submitter.job(t, "run=2s"))
	submitter.await(t, id, view.PhaseRunning)
	d.await("it is stopped", func() bool {
		s, err := worker.Status(t.Context())
		return err == nil && len(s.Running) == 0
	})
	task := submitter.await(t, id, view.PhaseDone) // when the owner is away, there again
	if len(task.Attempts) < 2 {
		t.Errorf("%d attempts, want a second one", len(task.Attempts))
	}
}

// The walls that can be tried are, and what was seen is shown.
func TestWallsAreTried(t *testing.T) {
	c := agent.Plans(t, 1)[0]
	c.Walls = []agent.Wall{
		{
			View: view.Wall{Ceiling: "cores", How: "by hand"},
			Try: func(_ context.Context, dir string) (string, error) {
				return "it holds", os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)
			},
		},
		{
			View: view.Wall{Ceiling: "memory", How: "by hand"},
			Try: func(context.Context, string) (string, error) {
				return "", lrm.ErrNoWall
			},
		},
		{View: view.Wall{Ceiling: "upload", How: "by turns"}},
	}
	n := start(t, c)
	want := []view.Wall{
		{Ceiling: "cores", How: "by hand", Tried: true, Seen: "it holds"},
		{Ceiling: "memory", How: "by hand", Tried: true, Fault: lrm.ErrNoWall.Error()},
		{Ceiling: "upload", How: "by turns"},
	}
	agent.Eventually(t, "both were tried", func() bool {
		s, err := n.Status(t.Context())
		if err != nil || len(s.Walls) != len(want) {
			return false
		}
		for i := range want {
			if s.Walls[i] != want[i] {
				return false
			}
		}
		return true
	})
	agent.Eventually(t, "nothing is left of the trials", func() bool {
		return len(n.left(t, "attempts")) == 0
	})
}
