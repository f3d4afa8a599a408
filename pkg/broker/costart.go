package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A part that starts while another one's award is lost would run in vain. So no part
// gets its first lease before all are accepted: what asks earlier is answered then.

// early keeps a request for a first lease that comes before all parts are accepted,
// and reports whether it is one.
func (m *Machine) early(j *job, from grid.SiteID, renewal uint64, id grid.AttemptID) bool {
	if !j.split() || !j.tasks[id.Task.Index].leaseEnd.IsZero() || !j.unanswered() {
		return false
	}
	if j.asked == nil {
		j.asked = make(map[grid.SiteID]uint64)
	}
	j.asked[from] = renewal
	return true
}

// unanswered reports whether the award of a part is not answered. One that an earlier
// run of this machine has sent may have been: it is presumed to have a lease.
func (j *job) unanswered() bool {
	return slices.ContainsFunc(j.tasks, func(t task) bool { return t.phase == grid.PhaseAwarded && t.leaseEnd.IsZero() })
}

// startTogether grants the first leases of all parts when the last one is accepted. A
// site counts its lease from its own request, which is long past; its end comes only
// earlier for that.
func (m *Machine) startTogether(j *job) {
	if len(j.asked) == 0 || j.unanswered() {
		return
	}
	ready := make(map[grid.SiteID][]grid.AttemptID)
	for i := range j.tasks {
		if t := &j.tasks[i]; t.active() && t.leaseEnd.IsZero() {
			ready[t.site] = append(ready[t.site], j.attempt(uint32(i)))
		}
	}
	asked := j.asked
	j.asked = nil
	for _, site := range sortedSites(asked) {
		for part := range slices.Chunk(ready[site], protocol.MaxAttempts) {
			m.grant(site, asked[site], part, m.leaseOf(j))
		}
	}
}
