package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Asking changes nothing.

func (d desk) now() time.Time { return d.m.now }

// wall reads the wall clock; onWall turns a time of the machine into one on it.
func (d desk) wall() time.Time { return d.m.wall() }

func (d desk) onWall(t time.Time) time.Time { return d.m.onWall(t) }

func (d desk) cfg() *Config { return &d.m.cfg }

// standing lists the offers of the job that can still be taken.
func (d desk) standing() []*candidate { return d.m.peers.standing(d.j) }

// reachable reports whether a site is this one or connected.
func (d desk) reachable(site grid.SiteID) bool { return d.m.peers.reachable(site) }

// reuniting reports whether frozen attempts still have time to come back.
func (d desk) reuniting() bool { return d.m.peers.reuniting() }

// metEnough reports whether the sites that answer can be taken for the whole domain.
func (d desk) metEnough() bool { return d.m.peers.metEnough() }

// connected lists the other sites that can be reached.
func (d desk) connected() []grid.SiteID { return d.m.peers.connected() }

// name returns a site's display name; empty if it has none.
func (d desk) name(site grid.SiteID) string {
	if p, known := d.m.peers.all[site]; known {
		return p.name
	}
	return d.m.cfg.Name
}

// bps is the lower of a site's declared rates, bit/s; 0 = it declares none.
func (d desk) bps(site grid.SiteID) int64 {
	c := d.m.cfg.Capability
	if p, known := d.m.peers.all[site]; known {
		c = p.capability
	}
	return min(c.UpBps, c.DownBps)
}

// tooWide reports whether so many tasks can never run at the same time, on one site or on
// all, and how many can.
func (d desk) tooWide(tasks uint32, onOne bool) (limit int64, wide bool) {
	if !d.m.peers.met() {
		return 0, false
	}
	most, sum, said := d.m.peers.atTheMost(d.j.req)
	if onOne {
		sum = most
	}
	return sum, said && sum < int64(tasks)
}

// isUnplaceable reports whether no site will ever take the job.
func (d desk) isUnplaceable(r *round) bool { return d.m.herald.isUnplaceable(d.j, r) }

// completed is an offer with what only this submitter knows of its site.
func (d desk) completed(from grid.SiteID, offer grid.Offer) grid.Offer {
	return d.m.peers.completed(d.j.req, from, offer)
}

// leaving is the chance, 0 to 1, that the site of an offer leaves before the task ends.
func (d desk) leaving(c *candidate) float64 { return 1 - d.m.peers.stays(c) }

// rankByFault orders sites for a task that has failed somewhere.
func (d desk) rankByFault(sites []fault.Candidate) {
	order := fault.OrderRisk
	if d.cfg().FIBR {
		order = fault.OrderIndex
	}
	for i := range sites {
		sites[i].Index = d.m.peers.index(sites[i].Site)
	}
	fault.Rank(order, sites)
	atHomeFirst(d.m.peers, d.j, sites, func(c fault.Candidate) grid.SiteID { return c.Site })
}

// nextToken is above all that were ever given out for a task.
func (d desk) nextToken(t *task) grid.Token { return d.m.nextToken(t) }

// draw is a random number from 0 up to 1.
func (d desk) draw() float64 { return d.m.rng.Float64() }

// isLate reports whether one of several sites that queue a task has had its time for that.
func (d desk) isLate(index uint32, r rival) bool {
	wait := stagingTime(d.j.bytesOf(index)) + queueGrace
	return !r.by.IsZero() && d.now().After(latest(r.by, d.j.tasks[index].awardedAt).Add(wait))
}

// apartFor tells the sites apart that a task may not go to as other copies of it are there, or are
// about to be by shares; nil: there is no such site. As long as somebody else offers, no site of
// the same owners is taken either.
func (d desk) apartFor(
	index uint32, shares map[grid.SiteID][]uint32, standing []*candidate,
) func(grid.SiteID) bool {
	if d.j.of == 0 || d.cfg().NoApart {
		return nil
	}
	used := d.j.usedBy(index)
	for _, i := range d.j.copies(d.j.first(index)) {
		for _, site := range sortedSites(shares) {
			if slices.Contains(shares[site], i) {
				used = append(used, site)
			}
		}
	}
	owners := make(map[string]bool)
	for _, site := range used {
		owners[d.m.peers.holder(site)] = true
	}
	same := func(site grid.SiteID) bool { return owners[d.m.peers.holder(site)] }
	another := func(c *candidate) bool { return c.left > 0 && !same(c.offer.Site) }
	if slices.ContainsFunc(standing, another) {
		return same
	}
	return func(site grid.SiteID) bool { return slices.Contains(used, site) }
}

// isOver reports whether it is too late to look for a site.
func (d desk) isOver() bool { return d.j.traits.over(d.m.now) }

// Acting.

// clear says to all that were asked that the job is placed, once.
func (d desk) clear() {
	if !d.j.placed {
		d.j.placed = true
		d.m.herald.clear(d.j, protocol.ClearPlaced)
	}
}

// askToHold asks a site to hold what it has offered, which is used up by that: it is held
// or it is gone. With a time its tasks are to start then.
func (d desk) askToHold(c *candidate, tasks uint32, at time.Time) {
	delete(d.j.offers, c.offer.Site)
	d.m.out.Send(c.offer.Site, protocol.HoldOffer{
		Job: d.j.id, Seq: c.seq, OfferID: c.offer.ID, Tasks: tasks, At: d.m.onWall(at),
		Clock: d.m.wall(),
	})
}

// release tells a site that what it holds for the job is not wanted.
func (d desk) release(site grid.SiteID) { d.m.herald.release(d.j, site, protocol.ClearPlaced) }

// awaitHolds gives the sites that were asked to hold the time to do so.
func (d desk) awaitHolds() {
	d.m.setTimer(timerHold, string(d.j.id), d.m.now.Add(d.m.cfg.AwardWindow))
}

// endHold ends the request to hold.
func (d desk) endHold() {
	if d.j.holding() != nil {
		d.j.enter(nil)
		d.m.stopTimer(timerHold, string(d.j.id))
	}
}

// place lets what waits be placed again.
func (d desk) place(on occasion) { d.m.place(d.j, on) }

// placeAgain places waiting tasks after a failure, and asks all sites.
func (d desk) placeAgain() { d.m.placeAgain(d.j) }

// rest lets a verdict be followed.
func (d desk) rest(v verdict) { d.m.follow(d.j, v) }

// expire ends what waits because it is too late, and reports whether nothing waits.
func (d desk) expire() bool { return d.m.expire(d.j) }

// requeue lets a task wait for another site, or gives it up.
func (d desk) requeue(index uint32) { d.m.requeue(d.j, index) }

// withdraw ends all tasks of the job that have not ended as failed.
func (d desk) withdraw(why string) { d.m.withdraw(d.j, grid.PhaseFailed, why) }

// blame counts a failure against a site.
func (d desk) blame(site grid.SiteID, cause fault.Cause) {
	d.m.peers.accuse(d.m.jobs, site, cause)
}

// save makes a task's state durable.
func (d desk) save(index uint32) { d.m.saveTask(d.j, index) }

// grant gives attempts a lease.
func (d desk) grant(to grid.SiteID, renewal uint64, attempts []grid.AttemptID) {
	d.m.rights.grant(to, renewal, attempts, d.j.traits.lease)
}

// fence stops attempts of lower tokens.
func (d desk) fence(site grid.SiteID, below []grid.AttemptID) { d.m.rights.fence(site, below) }

// acknowledge tells a site that the end of an attempt was heard.
func (d desk) acknowledge(site grid.SiteID, id grid.AttemptID) { d.m.rights.acknowledge(site, id) }

func (d desk) setTimer(name, id string, at time.Time) { d.m.setTimer(name, id, at) }

func (d desk) stopTimer(name, id string) { d.m.stopTimer(name, id) }

// drop forgets an output of an attempt that is to run again.
func (d desk) drop(cids []grid.CID) {
	d.m.out.Emit(step.Hold{Job: d.j.id, CIDs: cids, Release: true})
}

func (d desk) send(to grid.SiteID, msg protocol.Message) { d.m.out.Send(to, msg) }

func (d desk) report(level step.Level, event string, r step.Report) {
	d.m.out.Report(level, event, r)
}

func (d desk) reportRefused(event string, from grid.SiteID, id grid.AttemptID, why grid.Reason) {
	d.m.reportRefused(event, from, id, why)
}
