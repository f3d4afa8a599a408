package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// Members that can never take what another domain asks for, as their capability says, are not
// asked: they would only answer that, and each search of a neighbour for what nobody has would cost
// all of them a message and this site an answer. This domain's own users hear it from the sites
// themselves, which know their owners' rules besides.

// spare takes such members from those that are to be asked in a round, and notes for them what they
// would say.
func (h herald) spare(j *job, r *round, others []grid.SiteID) []grid.SiteID {
	if !isSearch(j) {
		return others
	}
	asked := make([]grid.SiteID, 0, len(others))
	for _, id := range others {
		why, never := h.peers.unfit(j, id)
		if !never {
			asked = append(asked, id)
			continue
		}
		j.note(Answer{Site: id, Seq: j.seq, Refusal: why, At: h.now})
		r.settle(id)
	}
	r.heard = r.heard || len(asked) == 0 // who asks nobody learns nothing from silence
	return asked
}

// isSearch reports whether a job is a question of another domain.
func isSearch(j *job) bool { return j.traits.probe && j.ordered.Foreign() }

// spares reports whether a member is not asked.
func (p *peers) spares(j *job, id grid.SiteID) bool {
	if !isSearch(j) {
		return false
	}
	_, never := p.unfit(j, id)
	return never
}

// unfit says why a member can never take what a job needs, and reports false if it may.
func (p *peers) unfit(j *job, id grid.SiteID) (grid.Refusal, bool) {
	c := p.all[id].capability
	refusal, ok := index.Feasible(j.req, index.Site{Capability: c, Free: c.Total})
	return refusal, !ok && refusal.Never
}
