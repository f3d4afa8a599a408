package broker

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// tooWide reports whether the parts of a split job can never run together, whoever
// else leaves: all sites that were there within the last minute are too small for
// them, one by one if the job is not to be split, or all at once. It says so in the
// tasks' exits.
func (m *Machine) tooWide(j *job, r *round) bool {
	if j.job.Split == grid.SplitNone || !r.complete || !m.met() {
		return false
	}
	most := places(j.req, m.cfg.Capability)
	sum := most
	for _, id := range sortedSites(m.members) {
		p := m.members[id]
		if !p.connected && m.now.Sub(p.lastSeen) > memberMissed {
			continue
		}
		if p.capability.Total.IsZero() { // it has not said what it gives
			return false
		}
		n := places(j.req, p.capability)
		most, sum = max(most, n), sum+n
	}
	limit, what := sum, "all sites together take"
	if j.job.Split == grid.SplitNever {
		limit, what = most, "the largest site takes"
	}
	if limit >= int64(j.job.Count) {
		return false
	}
	text := fmt.Sprintf("%d parts are to run at the same time, and %s %d; ask for fewer or smaller parts", j.job.Count, what, limit)
	if j.job.Split == grid.SplitNever {
		text += ", or let the job be split"
	}
	for _, i := range j.waiting {
		j.tasks[i].exit = &grid.Exit{Cause: grid.CauseStopped, Text: text}
	}
	return true
}
