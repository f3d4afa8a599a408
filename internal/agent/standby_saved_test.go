package agent_test

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// checkpoints lists what an agent keeps but for a job's inputs.
func (n *node) checkpoints(job grid.Job) map[grid.CID]bool {
	kept := map[grid.CID]bool{}
	for _, root := range n.Stores().Data.Roots() {
		if root.Pinned && root.CID != job.Spec.Module.CID {
			kept[root.CID] = true
		}
	}
	return kept
}

// turnsOver waits until an agent keeps other checkpoints of a job, and none of those that it had.
func (n *node) turnsOver(t *testing.T, job grid.Job) {
	t.Helper()
	before := map[grid.CID]bool{}
	agent.Eventually(t, n.cfg.Name+" keeps checkpoints", func() bool {
		before = n.checkpoints(job)
		return len(before) > 0
	})
	agent.Eventually(t, n.cfg.Name+" keeps later ones alone", func() bool {
		now := n.checkpoints(job)
		for cid := range before {
			if now[cid] {
				return false
			}
		}
		return len(now) > 0
	})
}

// The submitter and its standbys keep the checkpoints that count, and let go of those that later
// ones have replaced, also when a standby acts: else a job that runs for long would fill their
// disks, and then nobody would keep its latest one.
func TestReplacedCheckpointsAreKeptNowhere(t *testing.T) {
	t.Parallel()
	nodes := grouped(t, 4)
	owner := nodes[0]
	standbys := standbysOf(t, nodes, owner)
	for _, n := range standbys { // what is kept there is kept for the submitter alone
		if err := n.Pause(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	job := owner.job(t, "run=1000s", "save=20ms")
	job.Spec.Checkpoint = grid.Saving{Every: time.Second}
	owner.submit(t, job)
	for _, n := range append(standbys, owner) {
		n.turnsOver(t, job)
	}
	owner.die(t)
	acting := actsFor(t, standbys, owner.Self())
	acting.turnsOver(t, job)
}
