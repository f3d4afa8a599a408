package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// mayHelp reports whether a neighbour that is there, or was within the last minute, offers to run
// tasks of a job, or may do so later. So may one that has said nothing of the job yet, unless it
// was silent several times in a row.
func (p *peers) mayHelp(j *job) bool {
	return slices.ContainsFunc(p.near, func(id grid.SiteID) bool {
		if answer, known := j.answers[id]; known {
			return !answer.neverFits() && p.missed(id)
		}
		other := p.all[id]
		return !j.traits.home && !j.ordered.Foreign() && other.connected && other.silences < maxSilences
	})
}

// waitsForNeighbours reports whether a job that no member can run, now or ever, waits nevertheless:
// its user has not said that it is not to wait, and a neighbour may run it later.
func (p *peers) waitsForNeighbours(j *job) bool { return !j.noWait && p.mayHelp(j) }

// asksAbroad asks the neighbours for the tasks for which a round over the members has found no
// place, and reports whether there is any to wait for; refusing: the job is refused if they offer
// nothing either. One that did not answer the last time is asked, and not waited for.
func (h herald) asksAbroad(j *job, last *round, refusing bool) bool {
	if last == nil || last.abroad || last.within || last.wantsMore() || !h.mayGoAbroad(j) ||
		!last.complete && !last.isSampled() {
		return false
	}
	sites := h.peers.abroad(j, false)
	if len(sites) == 0 {
		return false
	}
	h.saysWhose(j)
	awaited := slices.DeleteFunc(slices.Clone(sites), h.peers.silent)
	if len(awaited) > 0 {
		r := h.openRound(j, awaited, false)
		r.abroad, r.refusing, r.asked = true, refusing, last.complete
	}
	msg := j.announcement(&h.cfg, h.wall())
	for _, site := range sites {
		h.out.Send(site, msg)
	}
	if len(awaited) > 0 {
		h.startTimers(j)
	}
	return len(awaited) > 0
}
