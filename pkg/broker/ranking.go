package broker

import (
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// standing lists the offers of a job that can still be taken, nearest first, or by
// what the policy says.
// Offers that are equally near come in random order, in the thesis map the
// faster site first: every adequate site has x = 0 there, so distance does not
// see speed.
func (p *peers) standing(j *job) []*candidate {
	all := make([]*candidate, 0, len(j.offers))
	for _, site := range sortedSites(j.offers) {
		c := j.offers[site]
		if !c.expires.After(p.now) {
			delete(j.offers, site)
			continue
		}
		if !p.reachable(site) {
			continue
		}
		if left := p.allowed(c, j); left > 0 {
			c.left = left
			all = append(all, c)
		}
	}
	all = index.RankOffers(all, func(c *candidate) *grid.Offer { return &c.offer })
	p.breakTies(all, j.req.Map == grid.MapThesis)
	if p.cfg.Policy.Orders() {
		all = p.likeliest(all)
	}
	atHomeFirst(p, j, all, func(c *candidate) grid.SiteID { return c.offer.Site })
	return all
}

func (r *run) breakTies(ranked []*candidate, fasterFirst bool) {
	for start := 0; start < len(ranked); {
		end, lowest := start+1, ranked[start].offer.Parts.Distance
		for end < len(ranked) && ranked[end].offer.Parts.Distance-lowest <= index.EqualDistance {
			end++
		}
		group := ranked[start:end]
		r.rng.Shuffle(len(group), func(a, b int) { group[a], group[b] = group[b], group[a] })
		if fasterFirst {
			slices.SortStableFunc(group, func(a, b *candidate) int {
				return int(b.offer.CoreMFLOPS - a.offer.CoreMFLOPS)
			})
		}
		start = end
	}
}

// runnerUp is the distance of the nearest offer besides that of one site.
func runnerUp(standing []*candidate, site grid.SiteID) (float64, bool) {
	best := math.Inf(1)
	for _, c := range standing {
		if c.offer.Site != site && c.left > 0 {
			best = min(best, c.offer.Parts.Distance)
		}
	}
	return best, !math.IsInf(best, 1)
}
