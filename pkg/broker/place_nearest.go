package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// nearest awards each task to the nearest offer.
type nearest struct {
	// rest is the occasion on which more tasks are to be placed than one Step looks at; nil:
	// none is. from is the first of them.
	rest *occasion
	from uint32
}

// maxPlaced bounds how many tasks one Step places: what else happens, leases first of all,
// does not wait for the rest.
const maxPlaced = 1024

// place gives the waiting tasks of a job to the standing offers (thesis 4.1, step 4). Tasks
// that find no capacity stay waiting.
func (n *nearest) place(d desk, on occasion) verdict {
	return n.placeSome(d, on, func(tasks []uint32, standing []*candidate) {
		n.awardAmong(d, tasks, standing, d.cfg().Requote)
	})
}

// placeSome places as many of the waiting tasks as one Step may, and says what is to become
// of those that found no place when all of them were looked at.
func (n *nearest) placeSome(
	d desk, on occasion, give func(tasks []uint32, standing []*candidate),
) verdict {
	if n.rest != nil && on.why != roundOver {
		on = *n.rest // it is not over yet
	} else {
		n.from = 0
	}
	standing := d.standing()
	if len(standing) > 0 {
		give(n.next(d), standing)
		if len(d.j.waiting) == 0 {
			d.clear()
			d.j.keepNearest(standing)
		}
	}
	if at, _ := slices.BinarySearch(d.j.waiting, n.from); n.from > 0 && at < len(d.j.waiting) &&
		!(&choices{standing: standing}).isUsedUp() {
		n.rest = &on
		d.setTimer(timerRest, string(d.j.id), d.now())
		return verdict{}
	}
	n.rest = nil
	return n.leftOver(d, on)
}

// next lists the waiting tasks that this Step looks at.
func (n *nearest) next(d desk) []uint32 {
	at, _ := slices.BinarySearch(d.j.waiting, n.from)
	tasks := slices.Clone(d.j.waiting[at:min(at+maxPlaced, len(d.j.waiting))])
	if len(tasks) > 0 {
		n.from = tasks[len(tasks)-1] + 1
	}
	return tasks
}

// placeRest goes on with the tasks that an earlier Step has left. While answers are awaited
// that is done with them.
func (n *nearest) placeRest(d desk) {
	if n.rest != nil && d.j.stage == nil {
		d.place(*n.rest)
	}
}

// leftOver says what is to become of tasks that found no place.
func (n *nearest) leftOver(d desk, on occasion) verdict {
	switch {
	case len(d.j.waiting) == 0:
		return verdict{}
	case on.why == roundOver && (d.isUnplaceable(on.round) || refusesToWait(d, on.round)):
		return refuseAfter(on)
	case on.why == roundOver, on.why == declined:
		return waitAfter(on)
	default:
		return verdict{}
	}
}

// refusesToWait reports whether the user wants a refusal now that all sites were asked.
func refusesToWait(d desk, r *round) bool {
	resting := func(t *task) bool { return t.isResting(d.now()) }
	return d.j.noWait && r.complete && !r.isSampled() && !d.j.any(resting)
}

func (n *nearest) answered(desk, grid.SiteID, protocol.Message) bool { return false }

func (n *nearest) claimed(desk, claim) bool { return true }

func (n *nearest) unseated(desk, uint32) {}

func (n *nearest) released(desk, releaseReason) {}

func (n *nearest) woken(d desk, w wake) {
	if w.why == wakeRest {
		n.placeRest(d)
	}
}

// awardAmong gives tasks to offers, in their order, and lists those that were taken.
func (n *nearest) awardAmong(
	d desk, tasks []uint32, standing []*candidate, requote bool,
) (taken []*candidate) {
	shares := make(map[grid.SiteID][]uint32)
	among := &choices{standing: standing}
	for _, i := range tasks {
		t := &d.j.tasks[i]
		among.apart = d.apartFor(i, shares, standing)
		c := n.choose(d, t, among)
		if c == nil {
			if len(t.failed) == 0 && among.apart == nil || among.isUsedUp() {
				break // no capacity for any task
			}
			continue
		}
		c.left--
		shares[c.offer.Site] = append(shares[c.offer.Site], i)
	}
	for _, c := range standing {
		tasks := shares[c.offer.Site]
		if len(tasks) == 0 {
			continue
		}
		h := handover{c: c, tasks: tasks, spec: d.j.spec.Spec}
		if requote {
			h.runnerUp, h.hasNext = runnerUp(standing, c.offer.Site)
		}
		d.award(h)
		taken = append(taken, c)
	}
	return taken
}

// choose finds the site for a task among the standing offers, or nil. A task
// that has not failed anywhere goes to the nearest; one that has goes to the
// lowest risk, or fault index, and never first to a site that failed it: only when
// no other site offers, and it has waited for another round.
//
// When a site has fallen silent it may be this one that is cut off. The attempt
// is frozen there then, and can go on when the two meet again, unless a later
// one was awarded meanwhile. So the task moves only to sites that have offered
// since: runner-ups from before may be out of reach as well.
func (n *nearest) choose(d desk, t *task, among *choices) *candidate {
	switch {
	case t.silent && d.reuniting(), t.isResting(d.now()):
		return nil
	case len(t.failed) > 0:
		return n.leastFault(d, t, among)
	case d.cfg().Choice == ChoiceSoftMin:
		return n.softMin(d, among)
	}
	at := slices.IndexFunc(among.standing, func(c *candidate) bool {
		return among.isFree(c) && isSince(c, t)
	})
	if at < 0 {
		return nil
	}
	return among.standing[at]
}

// softMin draws one of the nearest offers not used up, nearer ones more likely.
func (n *nearest) softMin(d desk, among *choices) *candidate {
	var free []*candidate
	var offers []grid.Offer
	for _, c := range among.standing {
		if among.isFree(c) {
			free, offers = append(free, c), append(offers, c.offer)
		}
	}
	at := index.SoftMin(offers, enoughOffers, d.draw())
	if at < 0 {
		return nil
	}
	return free[at]
}

// leastFault finds the site with the lowest fault index for a task that has failed.
func (n *nearest) leastFault(d desk, t *task, among *choices) *candidate {
	others := false // whether a site that did not fail the task has offered
	for _, c := range among.standing {
		if others = isSince(c, t) && !t.failedAt(c.offer.Site) && !among.bars(c); others {
			break
		}
	}
	forgiving := !others && t.roundsFailed > 1
	best, ok := fault.Least(among.byFault(d), func(site grid.SiteID) bool {
		c := among.sites[site]
		return !among.isFree(c) || !isSince(c, t) || t.failedAt(site) && !forgiving
	})
	if !ok {
		t.roundsFailed++
		return nil
	}
	return among.sites[best]
}

// isSince reports whether an offer was made since a task's site fell silent, if it has.
func isSince(c *candidate, t *task) bool { return t.away.IsZero() || c.at.After(t.away) }

// choices holds the offers among which tasks are shared out: nearest first, and for tasks that
// have failed somewhere by their sites' fault indices, ranked once for all of them.
type choices struct {
	standing []*candidate
	ranked   []fault.Candidate
	sites    map[grid.SiteID]*candidate
	apart    func(grid.SiteID) bool // sites that the task may not go to; nil: there is none
}

// bars reports whether the task may not go to an offer's site: another copy of it is there.
func (s *choices) bars(c *candidate) bool { return s.apart != nil && s.apart(c.offer.Site) }

// isFree reports whether an offer can take the task.
func (s *choices) isFree(c *candidate) bool { return c.left > 0 && !s.bars(c) }

// byFault ranks the offers, and drops what is used up when that is much.
func (s *choices) byFault(d desk) []fault.Candidate {
	if s.sites == nil {
		s.sites = make(map[grid.SiteID]*candidate, len(s.standing))
		for _, c := range s.standing {
			s.sites[c.offer.Site] = c
			s.ranked = append(s.ranked, fault.Candidate{
				Site: c.offer.Site, Z: d.leaving(c), Distance: c.offer.Parts.Distance,
			})
		}
		d.rankByFault(s.ranked)
	}
	for len(s.ranked) > 0 && s.sites[s.ranked[0].Site].left == 0 {
		s.ranked = s.ranked[1:]
	}
	return s.ranked
}

// isUsedUp reports whether no offer can take a task any more.
func (s *choices) isUsedUp() bool {
	return !slices.ContainsFunc(s.standing, func(c *candidate) bool { return c.left > 0 })
}
