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

// isBeside reports whether a site stands for a neighbouring domain that is asked together with the
// members.
func (p *peers) isBeside(site grid.SiteID) bool {
	other, known := p.all[site]
	return known && other.domain != "" && other.beside
}

// abroad lists the neighbours that are asked for a job, ascending: those that are asked together
// with the members, or those that are asked after them. What another domain wants is not passed on
// to one that did not answer the last time.
func (p *peers) abroad(j *job, beside bool) []grid.SiteID {
	return slices.DeleteFunc(slices.Clone(p.near), func(id grid.SiteID) bool {
		other := p.all[id]
		return !other.connected || other.beside != beside || j.ordered.Foreign() && p.silent(id)
	})
}

// atHomeFirst puts offers of members before those of neighbours. One that is asked together with
// the members counts as one of them, but not for a task whose state was saved: that does not cross.
func atHomeFirst[T any](p *peers, j *job, all []T, site func(T) grid.SiteID) {
	if len(p.near) == 0 {
		return
	}
	equal := !j.anyWaits(func(t *task) bool { return len(t.counted) > 0 })
	slices.SortStableFunc(all, func(a, b T) int {
		return btoi(p.isSecond(site(a), equal)) - btoi(p.isSecond(site(b), equal))
	})
}

// isSecond reports whether a site comes after the members; equal: a neighbour that is asked
// together with them does not.
func (p *peers) isSecond(site grid.SiteID, equal bool) bool {
	return p.domainOf(site) != "" && (!equal || !p.isBeside(site))
}

// anyWaits reports whether any waiting task is so.
func (j *job) anyWaits(is func(*task) bool) bool {
	return slices.ContainsFunc(j.waiting, func(i uint32) bool { return is(&j.tasks[i]) })
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
	if len(h.peers.near) == 0 || j.traits.home {
		return false
	}
	return j.ordered.Hops > 0 || !j.ordered.Foreign() && !h.peers.cutOff
}

// saysWhose lets the border know whose question it is that it is about to hear.
func (h herald) saysWhose(j *job) {
	if j.ordered.Foreign() {
		h.out.Emit(step.TellBorder{News: step.OrderNews{
			Ref: j.ordered.Ref, Job: j.id, Phase: grid.PhaseAnnounced,
		}})
	}
}

// besides lists the neighbours that are asked in a round over the members, as sites among them:
// they are always to answer, and one that was silent the last time is not waited for.
func (h herald) besides(j *job, r *round) []grid.SiteID {
	if !h.mayGoAbroad(j) {
		return nil
	}
	sites := h.peers.abroad(j, true)
	if len(sites) > 0 {
		h.saysWhose(j)
	}
	for _, site := range sites {
		if !h.peers.silent(site) || j.traits.probe {
			r.expect(site)
		}
	}
	return sites
}
