package broker

import (
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// look learns from a round that a part of the sites was asked to answer, and says how to search on:
// part is 0 if nobody is to be searched for, or it takes too long. Where it is known what is near a
// job whose needs are other ones may search, as long as no more answer than are asked for.
func (n *near) look(j *job, r *round, replies int, now time.Time) search {
	if !r.isSampled() {
		return search{}
	}
	offers, theta := j.offersOf(r), n.distance(&j.req)
	slices.Sort(offers)
	if r.search.part > 0 {
		next := r.search.next(r.search.part, r.offers, offers, now)
		if next.part == 0 && theta == 0 {
			n.found(&j.req, r.search, offers)
		}
		return next
	}
	if len(offers) == 0 {
		return search{}
	}
	next := search{}
	may := theta == 0 || offers[0] > theta && n.tally.isBelow(replies)
	if may && r.offers >= enoughOffers && r.sample*nearMany < 1 {
		took := now.Sub(r.opened)
		first := search{nearer: offers[0], long: took, until: r.opened.Add(searchTime(j.spec.TTL))}
		next = first.next(r.sample, r.offers, offers, now)
	}
	if next.part == 0 || theta > 0 {
		n.learn(&j.req, offers, r.drawn, r.sample)
	}
	return next
}

// found notes how near sites should be, after the last round of a search. Only if that was not
// known: jobs that find nobody near later are those that need something else.
func (n *near) found(req *grid.Requirement, s search, offers []float64) {
	theta := s.nearer
	if i := int(math.Ceil(nearSites*s.part)) - 1; i < len(offers) {
		theta = min(theta, offers[i])
	}
	n.theta[req.Map] = theta / scale(req)
}

// search asks some of the sites that are nearer than the nearest that has answered.
func (h herald) search(j *job, last *round, s search) {
	r := h.openRound(j, append(h.peers.connected(), h.cfg.Here), true)
	r.sample, r.drawn, r.search, r.complete = last.sample, last.drawn, s, false
	j.inPart, j.searched = true, j.seq
	h.gossip(j, j.announcement(&h.cfg, h.wall()))
	h.startTimers(j)
}
