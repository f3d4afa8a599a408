package broker

import (
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// admits reports whether the policy lets the job be placed. A task is a node of the
// thesis: the job asks for as many nodes as it has waiting tasks, and there are as many as
// all sites seen within a week could run at the same time, those that are down included.
// If it is refused, the refusal says how many it may ask for.
func (p *peers) admits(j *job) bool {
	if !p.cfg.Policy.Admits() || j.offered && j.placedAny() {
		return true
	}
	total, alpha := p.longRun(j.req)
	accepted, err := avail.SAA(float64(len(j.waiting)), total, alpha)
	if err == nil && accepted {
		return true
	}
	j.answers[p.cfg.Here] = Answer{Site: p.cfg.Here, Seq: j.seq, At: p.now, Refusal: grid.Refusal{
		Reason: grid.ReasonAvailability, Want: int64(len(j.waiting)),
		Have: int64(math.Floor(alpha * total)),
	}}
	return false
}

// maxPlaces bounds what one site counts for; a task that needs nothing fits without end.
const maxPlaces = 1 << 20

// places counts the tasks with a requirement that a site could run at the same time.
func places(req grid.Requirement, c grid.Capability) int64 {
	site := index.Site{Capability: c, Free: c.Total}
	if _, fits := index.Feasible(req, site); !fits {
		return 0
	}
	n := int64(maxPlaces)
	for _, d := range [][2]int64{
		{c.Total.MilliCPUs, req.Need.MilliCPUs},
		{c.Total.MemoryBytes, req.Need.MemoryBytes},
		{c.Total.DiskBytes, req.Need.DiskBytes},
		{c.Total.NetBps, req.Need.NetBps},
	} {
		if d[1] > 0 {
			n = min(n, d[0]/d[1])
		}
	}
	return n
}

// ownSight is from how many ends on this site trusts what it has seen of a member more
// than what that says of itself.
const ownSight = 3

// stays is the chance, 0 to 1, that a site is there until the task ends. It says so
// itself with z. One that has been seen to go more often is not believed more than what was
// seen.
func (p *peers) stays(c *candidate) float64 {
	parts := c.offer.Parts
	stays := min(max(1-parts.Z, 0), 1)
	if seen, known := p.all[c.offer.Site]; known && seen.watched.ends >= ownSight {
		own, err := seen.leaving(p.now).Survival((parts.Wait + parts.StageIn + parts.Run).Seconds())
		if err == nil {
			stays = min(stays, own)
		}
	}
	return stays
}

// likeliest orders candidates by how likely their sites are to stay until the task's
// end, by NAA. A site says so itself with z. One that has been seen to go more often is
// not believed more than what was seen.
func (p *peers) likeliest(candidates []*candidate) []*candidate {
	nodes := make([]avail.Standing, 0, len(candidates))
	bySite := make(map[grid.SiteID]*candidate, len(candidates))
	for _, c := range candidates {
		nodes = append(nodes, avail.Standing{Site: c.offer.Site, Up: true, PUp: p.stays(c)})
		bySite[c.offer.Site] = c
	}
	order, found, err := avail.NAA(nodes, len(nodes))
	if err != nil || !found {
		return candidates
	}
	sorted := make([]*candidate, 0, len(order))
	for _, site := range order {
		sorted = append(sorted, bySite[site])
	}
	return sorted
}

// longRun returns how many such tasks all sites seen within a week could run at the same
// time, and which part of that is up in the long run.
func (p *peers) longRun(req grid.Requirement) (total, alpha float64) {
	room := float64(places(req, p.cfg.Capability))
	cycles, weights := []avail.Cycle{{MTTFSeconds: math.Inf(1)}}, []float64{room} // this site is here
	total = room
	for _, id := range p.sorted() {
		other := p.all[id]
		if !other.known(p.now) {
			continue
		}
		room := float64(places(req, other.capability))
		cycles, weights = append(cycles, other.cycle(p.now)), append(weights, room)
		total += room
	}
	alpha, err := avail.MeanAvailability(cycles, weights)
	if err != nil { // no site has capacity
		return total, 0
	}
	return total, alpha
}

// atTheMost returns how many such tasks the largest site, and all sites together, could run
// at the same time. It counts those that were there within the last minute; said is false
// if one has not told its capability.
func (p *peers) atTheMost(req grid.Requirement) (most, sum int64, said bool) {
	most = places(req, p.cfg.Capability)
	sum = most
	for _, id := range p.sorted() {
		if !p.missed(id) {
			continue
		}
		if p.all[id].capability.Total.IsZero() {
			return 0, 0, false
		}
		n := places(req, p.all[id].capability)
		most, sum = max(most, n), sum+n
	}
	return most, sum, true
}
