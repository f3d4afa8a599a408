package broker

import (
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// completed is an offer with what only this submitter knows of its site.
func (m *Machine) completed(j *job, from grid.SiteID, offer grid.Offer) grid.Offer {
	offer.Site = from
	standing := index.Standing{RoundTripKnown: from == m.cfg.Self, FaultIndex: m.faults.Index(from)}
	if p, known := m.members[from]; known && p.roundTrip > 0 {
		standing.RoundTrip, standing.RoundTripKnown = p.roundTrip, true
	}
	offer.Parts = index.Complete(offer.Parts, j.req, standing)
	return offer
}

// candidate keeps an offer that can be taken; quoted is the distance as its site
// sees it.
func (m *Machine) candidate(offer grid.Offer, quoted float64) *candidate {
	return &candidate{
		offer: offer, quoted: quoted, left: offer.TasksNow, at: m.now, expires: m.now.Add(offer.Validity),
	}
}

// asSeen is a distance in this submitter's map as the candidate's site would see
// it: without the axes that only the submitter knows.
func (c *candidate) asSeen(distance float64) float64 {
	d := c.offer.Parts.Distance
	if c.quoted == d {
		return distance
	}
	own := (d - c.quoted) * (d + c.quoted)
	return math.Sqrt(max(distance*distance-own, 0))
}

// standing lists the offers of a job that can still be taken, nearest first, or by
// what the policy says.
// Offers that are equally near come in random order, in the thesis map the
// faster site first: every adequate site has x = 0 there, so distance does not
// see speed.
func (m *Machine) standing(j *job) []*candidate {
	var offers []grid.Offer
	for _, site := range sortedSites(j.offers) {
		c := j.offers[site]
		if !c.expires.After(m.now) {
			delete(j.offers, site)
			continue
		}
		p, known := m.members[site]
		if c.left > 0 && (site == m.cfg.Self || known && p.connected) {
			offers = append(offers, c.offer)
		}
	}
	ranked := index.RankOffers(offers)
	m.breakTies(ranked, j.req.Map == grid.MapThesis)
	all := make([]*candidate, 0, len(ranked))
	for _, o := range ranked {
		all = append(all, j.offers[o.Site])
	}
	if m.cfg.Policy.orders() {
		return m.likeliest(all)
	}
	return all
}

// equalDistance is how near two distances are to count as a tie.
const equalDistance = 1e-9

func (m *Machine) breakTies(ranked []grid.Offer, fasterFirst bool) {
	for start := 0; start < len(ranked); {
		end := start + 1
		for end < len(ranked) && ranked[end].Parts.Distance-ranked[start].Parts.Distance <= equalDistance {
			end++
		}
		group := ranked[start:end]
		m.rng.Shuffle(len(group), func(a, b int) { group[a], group[b] = group[b], group[a] })
		if fasterFirst {
			slices.SortStableFunc(group, func(a, b grid.Offer) int { return int(b.CoreMFLOPS - a.CoreMFLOPS) })
		}
		start = end
	}
}

// choose finds the site for a task among the standing offers, or nil. A task
// that has not failed anywhere goes to the nearest; one that has goes to the
// least fault index (FIBR), and never first to a site that failed it: only when
// no other site offers, and it has waited for another round.
//
// When a site has fallen silent it may be this one that is cut off. The attempt
// is frozen there then, and can go on when the two meet again, unless a later
// one was awarded meanwhile. So the task moves only to sites that have offered
// since: runner-ups from before may be out of reach as well.
func (m *Machine) choose(j *job, number uint32, standing []*candidate) *candidate {
	t := &j.tasks[number]
	if t.silent && m.now.Before(m.reunion) {
		return nil
	}
	if !t.away.IsZero() {
		standing = slices.DeleteFunc(slices.Clone(standing), func(c *candidate) bool { return !c.at.After(t.away) })
		if len(standing) == 0 {
			return nil
		}
	}
	if len(t.failed) > 0 {
		return m.leastFault(t, standing)
	}
	if m.cfg.Choice == ChoiceSoftMin {
		return m.softMin(standing)
	}
	at := slices.IndexFunc(standing, func(c *candidate) bool { return c.left > 0 })
	if at < 0 {
		return nil
	}
	return standing[at]
}

// softMin draws one of the nearest offers that have room, nearer ones more likely.
func (m *Machine) softMin(standing []*candidate) *candidate {
	var free []*candidate
	var offers []grid.Offer
	for _, c := range standing {
		if c.left > 0 {
			free, offers = append(free, c), append(offers, c.offer)
		}
	}
	at := index.SoftMin(offers, enoughOffers, m.rng.Float64())
	if at < 0 {
		return nil
	}
	return free[at]
}

func (m *Machine) leastFault(t *task, standing []*candidate) *candidate {
	var free []fault.Candidate
	others := false // whether a site that did not fail the task has offered
	for _, c := range standing {
		others = others || !slices.Contains(t.failed, c.offer.Site)
		if c.left > 0 {
			free = append(free, fault.Candidate{
				Site: c.offer.Site, Z: c.offer.Parts.Z, Distance: c.offer.Parts.Distance,
			})
		}
	}
	excluded := t.failed
	if !others && t.roundsFailed > 1 {
		excluded = nil
	}
	best, ok := m.faults.Least(fault.OrderFixed, free, excluded)
	if !ok {
		t.roundsFailed++
		return nil
	}
	return standing[slices.IndexFunc(standing, func(c *candidate) bool { return c.offer.Site == best })]
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
