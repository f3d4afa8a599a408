package broker

import (
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// Policy says what availability does to a job's placing, beyond its share in distance.
// Thesis, section 3.3.1.
type Policy uint8

// The policies.
const (
	PolicyNone Policy = iota // nothing; the default
	PolicySAA                // a job that asks for more at once than is up in the long run is refused
	PolicyNAA                // tasks go to the sites likeliest to stay, not to the nearest
	PolicyNSA                // both
)

func (p Policy) admits() bool { return p == PolicySAA || p == PolicyNSA }

func (p Policy) orders() bool { return p == PolicyNAA || p == PolicyNSA }

// admit reports whether the policy lets the job be placed. A task is what the thesis
// calls a node: the job asks for as many at once as wait, and there are as many as all
// sites seen within a week could run at once, those that are down included. If not, the
// refusal says how many it may ask for.
func (m *Machine) admit(j *job) bool {
	if !m.cfg.Policy.admits() || j.bid && j.placedAny() {
		return true
	}
	total, alpha := m.longRun(j.req)
	accepted, err := avail.SAA(float64(len(j.waiting)), total, alpha)
	if err == nil && accepted {
		return true
	}
	j.answers[m.cfg.Self] = Answer{Site: m.cfg.Self, Seq: j.seq, At: m.now, Refusal: grid.Refusal{
		Reason: grid.ReasonAvailability, Want: int64(len(j.waiting)), Have: int64(math.Floor(alpha * total)),
	}}
	return false
}

// placedAny reports whether a task of the job was ever awarded: then it was admitted.
func (j *job) placedAny() bool {
	return slices.ContainsFunc(j.tasks, func(t task) bool { return t.token > 0 })
}

// longRun is how many such tasks all sites could run at once, and which part of that is
// up in the long run.
func (m *Machine) longRun(req grid.Requirement) (total, alpha float64) {
	room := float64(places(req, m.cfg.Capability))
	cycles, weights := []avail.Cycle{{MTTFSeconds: math.Inf(1)}}, []float64{room} // this site is here
	total = room
	for _, id := range sortedSites(m.members) {
		p := m.members[id]
		if !p.known(m.now) {
			continue
		}
		room := float64(places(req, p.capability))
		cycles, weights = append(cycles, p.cycle(m.now)), append(weights, room)
		total += room
	}
	alpha, err := avail.MeanAvailability(cycles, weights)
	if err != nil { // nobody has room
		return total, 0
	}
	return total, alpha
}

// maxPlaces bounds what one site counts for; a task that needs nothing fits without end.
const maxPlaces = 1 << 20

// places is how many tasks with a requirement a site could run at once.
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

// likeliest orders candidates by how likely their sites are to stay until the task's
// end, by NAA. A site says so itself with z. One that has been seen to go more often is
// not believed more than what was seen.
func (m *Machine) likeliest(candidates []*candidate) []*candidate {
	nodes := make([]avail.Standing, 0, len(candidates))
	bySite := make(map[grid.SiteID]*candidate, len(candidates))
	for _, c := range candidates {
		parts := c.offer.Parts
		p := min(max(1-parts.Z, 0), 1)
		if seen, known := m.members[c.offer.Site]; known && seen.watched.ends >= ownSight {
			own, err := seen.leaving(m.now).Survival((parts.Wait + parts.StageIn + parts.Run).Seconds())
			if err == nil {
				p = min(p, own)
			}
		}
		nodes = append(nodes, avail.Standing{Site: c.offer.Site, Up: true, PUp: p})
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
