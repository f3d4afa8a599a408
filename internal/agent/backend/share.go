package backend

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
)

// slowed says that a task of this agent's own site gets less of the processor than it
// asked for, because other programs use the machine; empty if that is not so, or is not
// known. What other sites' owners do is theirs to know.
func (b *Backend) slowed(job broker.JobState, t broker.TaskState) string {
	if t.Site != b.mesh.Self() {
		return ""
	}
	switch phaseOf(t) {
	case view.PhasePreparing, view.PhaseRunning:
		seen := b.agent.Known().Owner.Mean
		if !seen.Others.Known {
			return ""
		}
		free := max(seen.Cores-seen.Others.Value, 0)
		return shareText(job.Job.Spec.Need.MilliCPUs, int64(1000*free))
	default:
		return ""
	}
}

// shareText compares what a task asked for with what other programs leave, both in
// thousandths of a core; empty if they leave enough.
func shareText(need, left int64) string {
	const core = 1000
	if left >= need {
		return ""
	}
	share := fmt.Sprintf("%.1f of %.1f cores", float64(left)/core, float64(need)/core)
	if need == core {
		share = fmt.Sprintf("%d %% of a core", left*100/core)
	}
	return "gets at most " + share + ": other programs use the machine"
}

// alsoSlowed adds that to what is said of a task already.
func alsoSlowed(text, slowed string) string {
	if text != "" && slowed != "" {
		return text + "; " + slowed
	}
	return text + slowed
}
