package agent_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/agent/backend"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// node is an agent of a test, with fake sandboxes.
type node struct {
	*agent.Agent
	*backend.Backend
	cfg  agent.Config
	end  context.CancelFunc
	done chan struct{} // closed when Run has returned
	err  error         // of Run; read after done

	fails bool // the test wants that Run fails
}

// start makes and runs an agent that dials the others.
func start(t *testing.T, c agent.Config, others ...*node) *node {
	t.Helper()
	for _, o := range others {
		c.P2P.Bootstrap = append(c.P2P.Bootstrap, o.Addrs()...)
	}
	a, err := agent.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{Agent: a, Backend: backend.New(a), cfg: c, end: cancel, done: make(chan struct{})}
	go func() {
		defer close(n.done)
		n.err = a.Run(ctx)
	}()
	t.Cleanup(func() { n.close(t) })
	return n
}

// close ends the agent and wants that it ends soon.
func (n *node) close(t *testing.T) {
	t.Helper()
	n.end()
	n.awaitEnd(t)
	closed := make(chan error, 1)
	go func() { closed <- n.Close() }()
	select {
	case err := <-closed:
		if n.err != nil && !n.fails {
			t.Errorf("Run: %v", n.err)
		}
		if err != nil && !errors.Is(err, data.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	case <-time.After(agent.Patience):
		t.Fatal("Close does not return")
	}
}

// awaitEnd waits until the agent has ended by itself, or as it was told.
func (n *node) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-n.done:
	case <-time.After(agent.Patience):
		t.Fatal("the agent does not end")
	}
}

// pair starts a submitter and a site, and waits until they are connected.
func pair(t *testing.T) (submitter, worker *node) {
	t.Helper()
	c := agent.Plans(t, 2)
	submitter = start(t, c[0])
	worker = start(t, c[1], submitter)
	submitter.awaitPeers(t, 1)
	worker.awaitPeers(t, 1)
	return submitter, worker
}

func (n *node) awaitPeers(t *testing.T, count int) {
	t.Helper()
	agent.Eventually(t, "the peers are connected", func() bool {
		s, err := n.Status(t.Context())
		return err == nil && s.Peers == count
	})
}

// store puts a text into the agent's data.
func (n *node) store(t *testing.T, text string) view.DataRef {
	t.Helper()
	ref, err := n.PutData(t.Context(), false, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// job is a job of one task whose fake program does what the arguments say.
func (n *node) job(t *testing.T, args ...string) grid.Job {
	t.Helper()
	module := n.store(t, "module")
	return grid.Job{
		Count: 1, TTL: 300 * time.Millisecond,
		Spec: grid.Spec{
			Kind:   grid.KindWasm,
			Module: grid.Input{Path: "/module.wasm", CID: module.CID, Bytes: module.Bytes}, Args: args,
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: 64 << 20, DiskBytes: 64 << 20, MFLOPS: 1000,
			},
			Runtime: time.Minute, Map: grid.MapThesis, Weights: grid.DefaultWeights(),
		},
	}
}

// submit hands a job in.
func (n *node) submit(t *testing.T, job grid.Job) grid.TaskID {
	t.Helper()
	id, err := n.Submit(t.Context(), job, "")
	if err != nil {
		t.Fatal(err)
	}
	return grid.TaskID{Job: id}
}

func (n *node) task(t *testing.T, id grid.TaskID) view.TaskView {
	t.Helper()
	tasks, err := n.Tasks(t.Context(), id.Job, id.Index, 1)
	if err != nil || len(tasks) != 1 {
		t.Fatalf("task %s: %v", id, err)
	}
	return tasks[0]
}

// await waits until a task stands there.
func (n *node) await(t *testing.T, id grid.TaskID, phase view.Phase) view.TaskView {
	t.Helper()
	var last view.TaskView
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(agent.Patience); time.Now().Before(deadline); <-tick.C {
		if last = n.task(t, id); last.Phase == phase {
			return last
		}
		if last.Phase.Ended() {
			break
		}
	}
	t.Fatalf("task %s is %s, want %s: %+v", id, last.Phase, phase, last)
	return last
}

// log reads a task's whole stdout.
func (n *node) log(t *testing.T, id grid.TaskID, q view.LogQuery) string {
	t.Helper()
	body, err := n.TaskLog(t.Context(), id, q)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// left lists what stands in a directory of the agent's state.
func (n *node) left(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(n.cfg.StateDir, dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
