package broker

import (
	"errors"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// round is one announcement and the answers to it.
type round struct {
	// expected holds the sites that should answer before the TTL ends; true until one did, or
	// is gone. pending counts those, so that an answer costs nothing but its own.
	expected map[grid.SiteID]bool
	pending  int
	// unseen holds those asked without being connected: when the next answer comes, such a
	// site is waited for only if it is connected by then.
	unseen   []grid.SiteID
	complete bool // all sites were asked and must explain a refusal
	explain  bool
	within   bool    // only the sites that hold its reservation were asked
	sample   float64 // the part of the sites that was asked to answer
	drawn    float64 // so many sites
	theta    float64 // sites as near as that were asked, too; 0: none
	offers   int
	later    []grid.SiteID // members that are asked when those that were have too little, ascending
	long     time.Duration // it takes so long, if answers are missing; 0: the job's TTL
	opened   time.Time
	closing  bool   // there are enough offers; those that are on their way are awaited
	heard    bool   // another member has answered
	search   search // what it is of a search for near sites
	awaits   bool   // nobody is asked: another job is searching
	abroad   bool   // the neighbouring domains were asked, as no member takes all tasks
	refusing bool   // abroad: the job is refused if they do not either
	asked    bool   // abroad: all members were asked before
	first    uint32 // its first announcement; answers to earlier ones do not count
}

// enoughOffers ends a sampled round before its time is over, if as many were drawn that this is two
// thirds of them.
const enoughOffers = 8

// expect counts a site among those that should answer.
func (r *round) expect(site grid.SiteID) {
	if !r.expected[site] {
		r.expected[site] = true
		r.pending++
	}
}

// settle takes a site from those whose answer is awaited: it has answered, or is gone.
func (r *round) settle(site grid.SiteID) {
	if r.expected[site] {
		r.expected[site] = false
		r.pending--
	}
}

// enter takes an answer into account.
func (r *round) enter(a Answer) {
	awaited, asked := r.expected[a.Site]
	if a.Offer != nil && (awaited || !asked) && (a.Domain == "" || !r.isSampled()) {
		r.offers++
	}
	r.settle(a.Site)
}

// enough reports whether a sampled round has brought so many offers that it may end: two thirds of
// those that were drawn, but not many of them, and of those that should be near.
func (r *round) enough() bool {
	wanted := min(r.drawn*2/3, enoughOffers)
	switch {
	case r.search.part > 0:
		wanted = enoughOffers
	case r.theta > 0:
		wanted += nearSites * 2. / 3
	}
	return r.isSampled() && float64(r.offers) >= wanted
}

// isSampled reports whether only a part of the sites was asked to answer.
func (r *round) isSampled() bool { return r.sample < 1 }

// wantsMore reports whether a sampled round has brought too few offers.
func (r *round) wantsMore() bool {
	return r.isSampled() && r.offers+r.search.offers < enoughOffers
}

// check implements stage.
func (r *round) check(j *job) error {
	if j.open == 0 {
		return errors.New("asks for offers for nothing")
	}
	return nil
}

// openRound begins to await answers to the next announcement.
func (h herald) openRound(j *job, expected []grid.SiteID, everybody bool) *round {
	j.seq++
	r := &round{
		expected: make(map[grid.SiteID]bool, len(expected)), complete: everybody, sample: 1, first: j.seq,
		opened:  h.now,
		explain: j.traits.probe || len(expected) <= h.cfg.ExplainUpTo+1,
	}
	for _, id := range expected {
		if everybody && h.peers.silent(id) && !j.traits.probe {
			continue // it did not answer the last time; it may, but is not waited for
		}
		if r.expect(id); !h.peers.reachable(id) {
			r.unseen = append(r.unseen, id)
		}
	}
	j.enter(r)
	h.stopTimer(timerAgain, string(j.id))
	return r
}

// noteSilence remembers the sites that did not answer although they should have; when none of
// all members did, it is this site that is cut off.
func (p *peers) noteSilence(r *round) {
	if !r.explain || r.isSampled() {
		return // silence may mean that a site cannot offer, or was not drawn
	}
	for _, id := range sortedSites(r.expected) {
		if r.expected[id] {
			p.fellSilent(id)
		}
	}
	if r.complete && !r.within && !r.heard && p.met() {
		p.cutOff = true
		if !p.anyIsHeard() {
			p.isAlone()
		}
	}
}

// isUnplaceable: no site has ever offered, at least one has answered, and every
// member seen within the last minute says that the job never fits.
func (h herald) isUnplaceable(j *job, r *round) bool {
	if j.offered || !r.complete || !r.explain || len(j.answers) == 0 || !h.peers.allRefuse(j.answers) {
		return false
	}
	if own, answered := j.answers[h.cfg.Here]; !answered || !own.neverFits() {
		return false
	}
	return h.peers.metEnough()
}

// round is the announcement under way, or nil.
func (j *job) round() *round {
	r, _ := j.stage.(*round)
	return r
}

// offersOf are the distances that members have said in a round.
func (j *job) offersOf(r *round) []float64 {
	var all []float64
	for _, site := range sortedSites(j.offers) {
		if c := j.offers[site]; c.seq >= r.first && !c.abroad {
			all = append(all, c.quoted)
		}
	}
	return all
}
