package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// overlaps watches the sandboxes of several machines.
type overlaps struct {
	mu      sync.Mutex
	running map[grid.TaskID]int // sandboxes that have not ended
	most    int
}

// watched is an adapter whose sandboxes are counted.
type watched struct {
	lrm.Adapter
	of *overlaps
}

func (w watched) Start(ctx context.Context, a lrm.Attempt) (lrm.Process, error) {
	p, err := w.Adapter.Start(ctx, a)
	if err == nil {
		w.of.count(a.ID.Task, 1)
		go func() {
			_, _ = p.Wait(context.Background())
			w.of.count(a.ID.Task, -1)
		}()
	}
	return p, err
}

func (o *overlaps) count(task grid.TaskID, by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running[task] += by
	o.most = max(o.most, o.running[task])
}

func (o *overlaps) highest() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.most
}

// A state directory is copied, with the name of its machine, and agents work with both. The one
// that was started later is the site. The other one learns of it from a third, ends with all that
// it runs, and starts no more. No task runs at both.
func TestTwins(t *testing.T) {
	t.Parallel()
	of := &overlaps{running: make(map[grid.TaskID]int)}
	plans := agent.Plans(t, 2)
	plans[1].Machine = "cloned"
	plans[1].Adapters = map[grid.WorkKind]lrm.Adapter{
		grid.KindWasm: watched{fake.New(fake.Config{}), of},
	}
	submitter, first := start(t, plans[0]), start(t, plans[1])
	first.close(t) // it has a state now
	clone := plans[1]
	clone.StateDir = filepath.Join(t.TempDir(), "clone")
	// It starts so soon that only chance would say which one is newer.
	clone.WallNow = func() time.Time { return time.Now().Add(time.Minute) }
	if err := os.CopyFS(clone.StateDir, os.DirFS(plans[1].StateDir)); err != nil {
		t.Fatal(err)
	}
	first = start(t, plans[1], submitter)
	first.fails = true
	submitter.awaitPeers(t, 1)
	id := submitter.submit(t, submitter.job(t, "run=3s"))
	submitter.await(t, id, view.PhaseRunning)

	second := start(t, clone, submitter)
	select {
	case <-first.done:
	case <-time.After(agent.Patience):
		t.Fatal("the earlier run goes on")
	}
	if !errors.Is(first.err, store.ErrSuperseded) {
		t.Fatalf("the earlier run ended with %v, want ErrSuperseded", first.err)
	}
	first.close(t)
	if a, err := agent.New(t.Context(), plans[1]); !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("it starts again: %v, want ErrSuperseded", err)
		_ = a.Close()
	}
	submitter.await(t, id, view.PhaseDone)
	if most := of.highest(); most != 1 {
		t.Errorf("%d sandboxes of the task at the same time, want 1", most)
	}
	second.close(t)

	if err := store.Adopt(plans[1].StateDir, "cloned"); err != nil {
		t.Fatal(err)
	}
	third := start(t, plans[1], submitter)
	submitter.awaitPeers(t, 1)
	third.awaitPeers(t, 1)
}
