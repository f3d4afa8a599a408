package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// What another domain asks for is not asked of members that can never take it, as their capability
// says, nor of those that have said that less is free, and not yet that it is more: they would only
// answer that, and each search of a neighbour for what nobody has would cost all of them a message
// and this site an answer. This domain's own users hear it from the sites themselves, which know
// their owners' rules besides.

// space tells what is free at a member.
type space struct {
	free grid.Resources
	at   time.Time // when it was asked for; zero: never
	grew bool      // it may be more since
}

// spare takes such members from those that are to be asked in a round, and notes for them what they
// would say.
func (h herald) spare(j *job, r *round, others []grid.SiteID) []grid.SiteID {
	if !isSearch(j) {
		return others
	}
	asked := make([]grid.SiteID, 0, len(others))
	for _, id := range others {
		why, unfit := h.peers.unfit(j, id)
		if !unfit {
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
	_, unfit := p.unfit(j, id)
	return unfit
}

// unfit says why a member cannot take what a job needs, ever or at the moment, and reports false if
// it may.
func (p *peers) unfit(j *job, id grid.SiteID) (grid.Refusal, bool) {
	c := p.all[id].capability
	refusal, ok := index.Feasible(j.req, index.Site{Capability: c, Free: c.Total})
	if !ok && refusal.Never {
		return refusal, true
	}
	return p.tooFull(j.req, id)
}

// tooFull says of what less is free at a member than a job needs, as the member has said. A
// promised place may begin later.
func (p *peers) tooFull(req grid.Requirement, id grid.SiteID) (grid.Refusal, bool) {
	has := p.all[id].space
	if has.at.IsZero() || has.grew ||
		p.now.Sub(has.at) >= protocol.FreeHolds || p.now.Before(has.at) ||
		req.Map != grid.MapThesis || req.Window.Promised() || req.Reservation != "" {
		return grid.Refusal{}, false
	}
	for _, r := range []struct {
		short      grid.Reason
		want, have int64
	}{
		{grid.ReasonCPUs, req.Need.MilliCPUs, has.free.MilliCPUs},
		{grid.ReasonMemory, req.Need.MemoryBytes, has.free.MemoryBytes},
		{grid.ReasonDisk, req.Need.DiskBytes, has.free.DiskBytes},
		{grid.ReasonBandwidth, req.Need.NetBps, has.free.NetBps},
	} {
		if r.want > r.have {
			return grid.Refusal{Reason: r.short, Want: r.want, Have: r.have}, true
		}
	}
	return grid.Refusal{}, false
}

// noteSpace takes it that a member has refused, and what it says is free.
func (p *peers) noteSpace(j *job, from grid.SiteID, msg protocol.Refuse) {
	other, known := p.all[from]
	r := j.round()
	if known && r != nil && msg.Seq >= r.first && msg.Free != nil &&
		!r.opened.Before(other.space.at) {
		other.space = space{free: *msg.Free, at: r.opened}
	}
}

// growSpace has a member asked again, which may have capacity that it did not have, and reports
// whether it was to say so.
func (p *peers) growSpace(site grid.SiteID) bool {
	other, known := p.all[site]
	if !known {
		return false
	}
	other.space.grew = true
	return !other.space.at.IsZero()
}
