package failing

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// shareEvery is the time between two statements of a submitter, in seconds.
const shareEvery = 300

// submitter is who submits some of the jobs, and counts the faults that befall these alone.
type submitter struct {
	id      grid.SiteID
	ledger  fault.Ledger
	weighed float64 // when what the others say was worked out last
	shared  map[grid.SiteID]float64
}

func submitters(n int) []*submitter {
	var all []*submitter
	for i := range max(n, 1) {
		id := grid.SiteID(fmt.Sprintf("submitter %d", i))
		all = append(all, &submitter{id: id, weighed: -shareEvery})
	}
	return all
}

// by is the submitter of a task: each has every nth.
func (w *world) by(t *task) *submitter { return w.submitters[t.index%len(w.submitters)] }

// index is the fault index of a resource for a task's submitter, with what others say if they do.
func (w *world) index(r *resource, t *task) float64 {
	s := w.by(t)
	if w.policy.Share && w.now-s.weighed >= shareEvery {
		w.weigh(s)
	}
	return s.ledger.Index(r.id, time.Time{}) + s.shared[r.id]
}

// weigh works out what the others say.
func (w *world) weigh(s *submitter) {
	var all []fault.Testimony
	for _, other := range w.submitters {
		if other == s {
			continue
		}
		one := fault.Testimony{By: other.id}
		for _, site := range other.ledger.Sites() {
			one.Said = append(one.Said, fault.Statement{
				About: site, Index: other.ledger.Index(site, time.Time{}),
			})
		}
		all = append(all, one)
	}
	s.weighed, s.shared = w.now, make(map[grid.SiteID]float64)
	for _, one := range fault.Weigh(all, func(site grid.SiteID) fault.Own {
		r := s.ledger.Record(site)
		return fault.Own{Index: r.Index, Tried: r.Tried > 0}
	}) {
		s.shared[one.Site] = one.Index
	}
}
