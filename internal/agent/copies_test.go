package agent_test

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A site, over the real network, gives a wrong result of everything. With agreement, and with
// spot checks alone, right results are delivered, the site is outvoted, and then has no more work.
func TestALyingSiteIsFound(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]grid.Redundancy{
		"agreement": {Replicas: 3, Agreement: 2}, "spot checks": {Verify: .02},
	} {
		t.Run(name, func(t *testing.T) {
			c := agent.Plans(t, 4)
			c[1].Capability.CoreMFLOPS *= 4 // the first of those equally near
			c[1].Adapters = map[grid.WorkKind]lrm.Adapter{grid.KindWasm: fake.New(fake.Config{
				Script: func(lrm.Attempt) fake.Behaviour {
					return fake.Behaviour{Stdout: "wrong\n"}
				},
			})}
			a := start(t, c[0])
			liar := start(t, c[1], a)
			honest := start(t, c[2], a, liar)
			other := start(t, c[3], a, liar, honest)
			for _, n := range []*node{a, liar, honest, other} {
				n.awaitPeers(t, 3)
			}
			outvoted := false
			for range 8 {
				job := a.job(t, "print=right", "run=100ms", "exit=0") // the liar is first
				job.Redundancy = how
				job.Spec.Axes = []grid.Axis{{Dimension: grid.Computation, Weight: 1}}
				id := a.submit(t, job)
				task := a.await(t, id, view.PhaseDone)
				if got := a.log(t, id, view.LogQuery{Stream: "stdout"}); got != "right\n" {
					t.Fatalf("delivered: %q; %+v", got, task.Copies)
				}
				for _, copied := range task.Copies {
					lies := copied.Site == liar.Self()
					if outvoted && lies && copied.Vote != "" {
						t.Errorf("the liar has given a result again: %+v", copied)
					}
					if copied.Vote == "outvoted" && !lies {
						t.Errorf("accused: %+v", copied)
					}
				}
				for _, copied := range task.Copies {
					outvoted = outvoted || copied.Vote == "outvoted"
				}
			}
			if !outvoted {
				t.Error("the liar was not found")
			}
		})
	}
}
