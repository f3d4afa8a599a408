package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// domainOf is the name of the neighbouring domain that a site stands for; empty: it is a member.
func (p *peers) domainOf(site grid.SiteID) grid.DomainID {
	if other, known := p.all[site]; known {
		return other.domain
	}
	return ""
}

// abroad lists the neighbours that can be asked now, ascending.
func (p *peers) abroad() []grid.SiteID {
	return slices.DeleteFunc(slices.Clone(p.near), func(id grid.SiteID) bool {
		return !p.all[id].connected || p.silent(id)
	})
}

// mayHelp reports whether a neighbour offers to run tasks of a job, or may do so later.
func (p *peers) mayHelp(j *job) bool {
	return slices.ContainsFunc(p.near, func(id grid.SiteID) bool {
		answer, known := j.answers[id]
		return known && !answer.neverFits()
	})
}

// atHomeFirst puts offers of members before those of neighbours.
func atHomeFirst[T any](p *peers, all []T, site func(T) grid.SiteID) {
	if len(p.near) > 0 {
		slices.SortStableFunc(all, func(a, b T) int {
			return btoi(p.domainOf(site(a)) != "") - btoi(p.domainOf(site(b)) != "")
		})
	}
}

func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}

// mayGoAbroad reports whether a job's tasks may run in another domain: independent ones without a
// promise, as many borders as their own domain allows.
func (h herald) mayGoAbroad(j *job) bool {
	return len(h.peers.near) > 0 && !j.traits.home && (!j.ordered.Foreign() || j.ordered.Hops > 0)
}

// asksAbroad asks the neighbours for the tasks for which a round over the members has found no
// place, and reports whether there is any to ask; refusing: the job is refused if they offer
// nothing either.
func (h herald) asksAbroad(j *job, last *round, refusing bool) bool {
	if last == nil || last.abroad || last.within || last.wantsMore() || !h.mayGoAbroad(j) ||
		!last.complete && !last.isSampled() || !j.ordered.Foreign() && h.peers.cutOff {
		return false
	}
	sites := h.peers.abroad()
	if len(sites) == 0 {
		return false
	}
	if j.ordered.Foreign() { // the border is to know whose question it is
		h.out.Emit(step.TellBorder{News: step.OrderNews{
			Ref: j.ordered.Ref, Job: j.id, Phase: grid.PhaseAnnounced,
		}})
	}
	r := h.openRound(j, sites, false)
	r.abroad, r.refusing, r.asked = true, refusing, last.complete
	msg := j.announcement(&h.cfg, h.wall())
	for _, site := range sites {
		h.out.Send(site, msg)
	}
	h.startTimers(j)
	return true
}
