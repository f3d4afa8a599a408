package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// nearest awards each task to the nearest offer. It holds nothing of its own.
type nearest struct{}

// place gives the waiting tasks of a job to the standing offers (thesis 4.1, step 4). Tasks
// that find no capacity stay waiting.
func (n *nearest) place(d desk, on occasion) verdict {
	if standing := d.standing(); len(standing) > 0 {
		n.awardAmong(d, standing, d.cfg().Requote)
		if len(d.j.waiting) == 0 {
			d.clear()
		}
	}
	return n.leftOver(d, on)
}

// leftOver says what is to become of tasks that found no place.
func (n *nearest) leftOver(d desk, on occasion) verdict {
	switch {
	case len(d.j.waiting) == 0:
		return verdict{}
	case on.why == roundOver && (d.isUnplaceable(on.round) || refusesToWait(d.j, on.round)):
		return refuseAfter(on)
	case on.why == roundOver, on.why == declined:
		return waitAfter(on)
	default:
		return verdict{}
	}
}

// refusesToWait reports whether the user wants a refusal now that all sites were asked.
func refusesToWait(j *job, r *round) bool { return j.noWait && r.complete && !r.isSampled() }

func (n *nearest) answered(desk, grid.SiteID, protocol.Message) bool { return false }

func (n *nearest) claimed(desk, claim) bool { return true }

func (n *nearest) unseated(desk, uint32) {}

func (n *nearest) released(desk, releaseReason) {}

func (n *nearest) woken(desk, wake) {}

// awardAmong gives the waiting tasks to offers, in their order, and lists those that were
// taken.
func (n *nearest) awardAmong(d desk, standing []*candidate, requote bool) (taken []*candidate) {
	shares := make(map[grid.SiteID][]uint32)
	for _, i := range d.j.waiting { // it does not change before the awards are sent
		t := &d.j.tasks[i]
		c := n.choose(d, t, standing)
		if c == nil {
			if len(t.failed) == 0 {
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
// lowest fault index (FIBR), and never first to a site that failed it: only when
// no other site offers, and it has waited for another round.
//
// When a site has fallen silent it may be this one that is cut off. The attempt
// is frozen there then, and can go on when the two meet again, unless a later
// one was awarded meanwhile. So the task moves only to sites that have offered
// since: runner-ups from before may be out of reach as well.
func (n *nearest) choose(d desk, t *task, standing []*candidate) *candidate {
	if t.silent && d.reuniting() {
		return nil
	}
	if !t.away.IsZero() {
		standing = slices.DeleteFunc(slices.Clone(standing), func(c *candidate) bool {
			return !c.at.After(t.away)
		})
		if len(standing) == 0 {
			return nil
		}
	}
	if len(t.failed) > 0 {
		return n.leastFault(d, t, standing)
	}
	if d.cfg().Choice == ChoiceSoftMin {
		return n.softMin(d, standing)
	}
	at := slices.IndexFunc(standing, func(c *candidate) bool { return c.left > 0 })
	if at < 0 {
		return nil
	}
	return standing[at]
}

// softMin draws one of the nearest offers not used up, nearer ones more likely.
func (n *nearest) softMin(d desk, standing []*candidate) *candidate {
	var free []*candidate
	var offers []grid.Offer
	for _, c := range standing {
		if c.left > 0 {
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
func (n *nearest) leastFault(d desk, t *task, standing []*candidate) *candidate {
	var free []fault.Candidate
	others := false // whether a site that did not fail the task has offered
	for _, c := range standing {
		others = others || !t.failedAt(c.offer.Site)
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
	best, ok := d.leastFault(free, excluded)
	if !ok {
		t.roundsFailed++
		return nil
	}
	at := slices.IndexFunc(standing, func(c *candidate) bool { return c.offer.Site == best })
	return standing[at]
}
