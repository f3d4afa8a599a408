package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// claimed keeps a request for a first lease that comes before all parts are accepted. A
// part that starts while another one's award is lost would run for nothing, so earlier
// requests are answered then.
func (s *together) claimed(d desk, c claim) bool {
	s.promised.claimed(d, c)
	if !d.j.tasks[c.id.Task.Index].leaseEnd.IsZero() || !d.j.any((*task).unanswered) {
		return true
	}
	if s.asked == nil {
		s.asked = make(map[grid.SiteID]uint64)
	}
	s.asked[c.from] = c.renewal
	return false
}

// startTogether grants the first leases of all parts when the last one is accepted. A
// site counts its lease from its own request, which is long past; its end comes only
// earlier for that.
func (s *together) startTogether(d desk) {
	if len(s.asked) == 0 || d.j.any((*task).unanswered) {
		return
	}
	ready := make(map[grid.SiteID][]grid.AttemptID)
	for i := range d.j.tasks {
		if t := &d.j.tasks[i]; t.active() && t.leaseEnd.IsZero() {
			ready[t.site] = append(ready[t.site], d.j.attempt(uint32(i)))
		}
	}
	asked := s.asked
	s.asked = nil
	for _, site := range sortedSites(asked) {
		for part := range slices.Chunk(ready[site], protocol.MaxAttempts) {
			d.grant(site, asked[site], part)
		}
	}
}
