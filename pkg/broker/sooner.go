package broker

import (
	"cmp"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// A search of another domain asks few members first, those that are likely nearest, and the others
// only if these have too little: else each search would cost the gateway an answer of each member,
// of hundreds in a large domain. In the thesis map all that have the capacity are equally near but
// for their data, and for how long they stay; the second this site believes to know, too. With much
// data, or where tasks wait in a member's plan, only the members know who is near, and all are
// asked.

const (
	soonerMembers = 4       // so many are asked first, of more than twice as many
	soonerData    = 1 << 20 // bytes; of more it matters who has them
	soonerPart    = 3       // of the time for answers these get one such part
	soonerAlike   = .01     // members whose distances differ by less have their turn
)

// sooner gives those of the members that are to be asked in a round first, and notes the others.
func (h herald) sooner(j *job, r *round, others []grid.SiteID) []grid.SiteID {
	if !isSearch(j) || len(others) <= 2*soonerMembers || j.req.Map != grid.MapThesis ||
		j.req.DataBytes() > soonerData || !h.peers.allKnown(j) {
		return others
	}
	ranked := h.peers.likely(j.req, others)
	first, later := ranked[:soonerMembers], ranked[soonerMembers:]
	slices.Sort(first)
	slices.Sort(later)
	for _, id := range later {
		r.settle(id)
	}
	r.later, r.complete, r.long = later, false, j.spec.TTL/soonerPart
	return first
}

// askLater asks the members that were not asked in a round, if those that were have too little, and
// reports whether an answer is awaited.
func (h herald) askLater(j *job, last *round) bool {
	tasks := uint32(0)
	for _, c := range h.peers.standing(j) {
		tasks = min(tasks+c.left, grid.MaxTasks)
	}
	later := slices.DeleteFunc(last.later, func(id grid.SiteID) bool {
		return !h.peers.reachable(id)
	})
	if len(later) == 0 || tasks >= j.wanted() {
		return false
	}
	r := h.openRound(j, later, true)
	r.heard, r.long = last.heard, j.spec.TTL-last.long
	msg := j.announcement(&h.cfg, h.wall())
	for _, id := range later {
		h.out.Send(id, msg)
	}
	h.startTimers(j)
	return true
}

// likely orders members by how near they likely are to a task: last those that had no capacity when
// they said what is free, or were silent. Those that are equally near have their turn.
func (p *peers) likely(req grid.Requirement, sites []grid.SiteID) []grid.SiteID {
	p.searches++
	turn := p.searches * soonerMembers % len(sites)
	req.Sources = nil // of whose holders nothing is known
	last := make(map[grid.SiteID]bool, len(sites))
	distance := make(map[grid.SiteID]float64, len(sites))
	for _, id := range sites {
		m := p.all[id]
		free := m.capability.Total
		if !m.space.at.IsZero() && !m.space.grew {
			free = m.space.free
		}
		up, err := m.leaving(p.now).Survival(req.Runtime.Seconds())
		site := index.Site{Capability: m.capability, Free: free, Up: up}
		parts, _, ok := index.Measure(req, site)
		offer := p.completed(req, id, grid.Offer{Parts: parts})
		last[id] = !ok || err != nil || p.silent(id)
		distance[id] = math.Floor(offer.Parts.Distance / soonerAlike)
	}
	ranked := slices.Concat(sites[turn:], sites[:turn])
	slices.SortStableFunc(ranked, func(a, b grid.SiteID) int {
		if last[a] != last[b] {
			if last[a] {
				return 1
			}
			return -1
		}
		return cmp.Compare(distance[a], distance[b])
	})
	return ranked
}
