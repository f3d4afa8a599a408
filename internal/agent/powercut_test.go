package agent_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/powercut"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// lonely is a site that runs its own jobs, with all its files in dir.
func lonely(t *testing.T, dir string) agent.Config {
	t.Helper()
	c := agent.Plans(t, 2)[1]
	c.StateDir, c.P2P.KeyFile = filepath.Join(dir, "state"), filepath.Join(dir, "identity.key")
	identity, err := p2p.LoadIdentity(c.P2P.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	c.P2P.Allow = []grid.SiteID{identity.Site()}
	return c
}

// TestPowerFails: wherever the power fails in the life of an agent, it starts again, knows the
// jobs that it took, and has the results that it gave as done.
func TestPowerFails(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(powercut.Role); dir != "" {
		submitAndAcknowledge(t, start(t, lonely(t, dir)))
		return
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	lonely(t, root) // the key is made once, long before
	tape := powercut.Record(t, "TestPowerFails", root)
	points := tape.Syncs()
	t.Logf("%d events, %d points at syncs, acknowledged: %q",
		tape.Len(), len(points), tape.Acked(tape.Len()))
	const cuts = 12
	for i := range cuts {
		point := points[len(points)*i/cuts]
		if i == cuts-1 {
			point = tape.Len()
		}
		startAfter(t, tape, point, uint64(i%4))
	}
}

func submitAndAcknowledge(t *testing.T, n *node) {
	said := func(format string, args ...any) {
		t.Helper()
		if err := powercut.Ack(fmt.Sprintf(format, args...)); err != nil {
			t.Error(err)
		}
	}
	for i := range 2 {
		job := n.job(t, fmt.Sprintf("put=/out/x:result%d", i), "exit=0")
		job.Spec.Outputs = []grid.Output{{Path: "/out/x", To: "x"}}
		id := n.submit(t, job)
		said("job %s", id.Job)
		task := n.await(t, id, view.PhaseDone)
		said("done %s %s", id.Job, task.Outputs[0].CID)
	}
}

func startAfter(t *testing.T, tape *powercut.Tape, point int, seed uint64) {
	t.Helper()
	dir := t.TempDir()
	if err := tape.Cut(dir, point, seed); err != nil {
		t.Fatal(err)
	}
	n := start(t, lonely(t, dir))
	defer n.close(t)
	for _, text := range tape.Acked(point) {
		words := strings.Fields(text)
		id := grid.TaskID{Job: grid.JobID(words[1])}
		if _, err := n.Job(t.Context(), id.Job); err != nil {
			t.Errorf("the power fails at event %d, seed %d: %s: %v", point, seed, text, err)
			continue
		}
		if words[0] != "done" {
			continue
		}
		if task := n.task(t, id); task.Phase != view.PhaseDone {
			t.Errorf("the power fails at event %d, seed %d: %s is %s", point, seed, text, task.Phase)
		}
		_, body, err := n.GetData(t.Context(), grid.CID(words[2]))
		if err == nil {
			_, err = io.Copy(io.Discard, body)
			_ = body.Close()
		}
		if err != nil {
			t.Errorf("the power fails at event %d, seed %d: %s: %v", point, seed, text, err)
		}
	}
}
