package broker

import (
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// look learns from a round that a part of the sites was asked to answer, and says how to search on:
// part is 0 if nobody is to be searched for, or it takes too long. Where it is known what is near a
// job whose needs are other ones may search, as long as no more answer than are asked for. Of
// rounds that were under way together one changes what is near: all say the same of what it was.
func (n *near) look(j *job, r *round, replies int, now time.Time) search {
	if !r.isSampled() {
		return search{}
	}
	offers := j.offersOf(r)
	slices.Sort(offers)
	if r.search.part > 0 {
		next := r.search.next(r.search.part, r.offers, offers, now)
		if next.part == 0 {
			n.tally.count(j.poll)
			n.out = slices.DeleteFunc(n.out, func(o outing) bool { return o.job == j.id })
			n.found(&j.req, r.search, offers)
		}
		return next
	}
	theta, next := n.distance(&j.req), search{}
	if len(offers) == 0 || theta == 0 && n.pioneer[j.req.Map].isOut(j.id, now) {
		return search{} // the search of another job will say what is near
	}
	if isLarge(r.sample) && n.maySearch(j, offers[0], replies, now) {
		first := search{
			nearer: offers[0], long: min(now.Sub(r.opened), j.spec.TTL/2),
			until: r.opened.Add(searchTime(j.spec.TTL)),
		}
		if next = first.next(r.sample, r.offers, offers, now); next.part > 0 && theta > 0 {
			n.out = append(n.out, outing{j.id, next.until})
		}
	}
	if r.theta == theta && (next.part == 0 || theta > 0) {
		n.learn(&j.req, offers, r.drawn, r.sample)
	}
	return next
}

// isLarge reports whether so small a part of all sites is drawn that near ones are to be searched
// for.
func isLarge(part float64) bool { return part*nearMany < 1 }

// maySearch reports whether a job whose nearest offer is that far away may search: what is near is
// not known, and no other job is about to find out; or none is, and with the searches that are
// under way fewer answer than are asked for.
func (n *near) maySearch(j *job, nearest float64, replies int, now time.Time) bool {
	theta := n.distance(&j.req)
	if theta == 0 {
		return !n.pioneer[j.req.Map].isOut(j.id, now)
	}
	n.tally.settle(now)
	n.out = slices.DeleteFunc(n.out, func(o outing) bool { return !o.until.After(now) })
	return nearest > theta && n.tally.isBelow(replies, len(n.out)*searchCost)
}

// send notes that a job is about to search for what is not known, if none does. Who has waited for
// an earlier one waits no more.
func (n *near) send(j *job, now time.Time) {
	if s := &n.pioneer[j.req.Map]; !s.isOut(j.id, now) {
		*s = pioneer{job: j.id, until: now.Add(searchTime(j.spec.TTL))}
	}
}

// found notes how near sites should be, after the last round of a search. Only if that was not
// known: jobs that find nobody near later are those that need something else.
func (n *near) found(req *grid.Requirement, s search, offers []float64) {
	if n.distance(req) > 0 {
		return
	}
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

// awaitSearch lets a job wait for what another one finds, if nothing is known of near sites: a
// hundred jobs that come together would else search for the same sites. It waits no longer than a
// search may take; nobody is asked meanwhile.
func (h herald) awaitSearch(j *job) bool {
	s := &h.near.pioneer[j.req.Map]
	if h.near.distance(&j.req) > 0 || !s.isOut(j.id, h.now) ||
		!h.asksInPart(j, len(h.peers.connected())) {
		return false
	}
	s.waiting = append(s.waiting, j.id)
	j.enter(&round{awaits: true, sample: 1, first: j.seq + 1, opened: h.now})
	h.stopTimer(timerAgain, string(j.id))
	h.setTimer(timerRound, string(j.id), s.until)
	return true
}

// endSearch notes that a job searches no more. Those that wait for it go on.
func (h herald) endSearch(j *job) {
	s := &h.near.pioneer[j.req.Map]
	if s.job != j.id {
		return
	}
	for _, id := range s.waiting {
		if w, known := h.jobs.all[id]; known && w.round() != nil && w.round().awaits {
			h.setTimer(timerRound, string(id), h.now)
		}
	}
	*s = pioneer{}
}
