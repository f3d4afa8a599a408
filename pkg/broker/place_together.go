package broker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// together starts all tasks of a job at the same time, on one site or on several: they are
// its parts and need each other. Sites are asked to hold their shares of a division; all of
// them are awarded or none. Parts start when the last one is accepted (parts_start.go), and
// are all taken back when one is lost (parts_again.go).
type together struct {
	promised
	mode      grid.Split
	commBytes int64 // that a part exchanges with the others
	// asked holds each site's latest request for first leases until all parts are accepted:
	// a part that started while another one's award is lost would run for nothing.
	asked map[grid.SiteID]uint64
	// rooms holds how many parts each site offered to take when it was asked last. A site that
	// reports capacity is asked alone; only if they suffice together all sites are asked.
	rooms map[grid.SiteID]uint32
}

// maxDivisions bounds how many divisions of the same offers are tried.
const maxDivisions = 16

func (s *together) place(d desk, on occasion) verdict {
	if on.why == roundOver {
		s.noteRooms(d, on.round)
	}
	s.gather(d)
	switch {
	case len(d.j.waiting) == 0 || d.j.holding() != nil:
		return verdict{}
	case on.why == roundOver:
		return s.ungatheredAfter(d, on)
	case on.why == declined && d.j.traits.promise:
		return s.nobodyHolds()
	case on.why == declined:
		return waitAfter(on)
	default:
		return verdict{}
	}
}

// ungatheredAfter ends a round whose offers do not suffice for all parts together.
func (s *together) ungatheredAfter(d desk, on occasion) verdict {
	switch {
	case d.j.traits.promise:
		return s.unpromised(d, on)
	case d.isUnplaceable(on.round), s.refuseTooWide(d, on.round), refusesToWait(d, on.round):
		return refuseAfter(on)
	case !on.round.complete && s.maySuffice(d):
		return verdict{do: verdictAsk}
	default:
		return waitAfter(on)
	}
}

// noteRooms notes what the sites that were asked have offered, or that they offer nothing.
func (s *together) noteRooms(d desk, r *round) {
	if r.complete {
		clear(s.rooms)
	}
	for _, site := range sortedSites(r.expected) {
		delete(s.rooms, site)
	}
	for _, site := range sortedSites(d.j.offers) {
		if c := d.j.offers[site]; c.seq >= r.first {
			s.rooms[site] = c.left
		}
	}
}

// maySuffice reports whether there would be a place for each part if all sites still had the
// capacity that they had when they were asked last.
func (s *together) maySuffice(d desk) bool {
	most, sum := uint32(0), uint64(0)
	for _, site := range sortedSites(s.rooms) {
		most, sum = max(most, s.rooms[site]), sum+uint64(s.rooms[site])
	}
	if s.mode == grid.SplitNever {
		sum = uint64(most)
	}
	return sum >= uint64(len(d.j.tasks))
}

func (s *together) answered(d desk, from grid.SiteID, msg protocol.Message) bool {
	mine, changed := s.hear(d, from, msg)
	if changed && len(d.j.holding().awaited) == 0 {
		s.decide(d)
	}
	return mine
}

func (s *together) released(d desk, why releaseReason) {
	if why == heardAgain { // the only part: no place for its next start is needed any more
		s.releaseHolds(d)
	}
	s.promised.released(d, why)
}

func (s *together) woken(d desk, w wake) {
	switch w.why {
	case wakeBooted:
		s.resume(d)
	case wakeHoldOver:
		s.decide(d)
	case wakeGranted:
		s.startTogether(d)
		s.clearIfPlaced(d)
	default:
	}
}

// gather looks for places in which all parts of a job can start together, and asks
// for them. All of them are held or none.
func (s *together) gather(d desk) {
	if d.j.holding() != nil || len(d.j.waiting) < len(d.j.tasks) {
		return
	}
	if d.j.isResting(d.now()) {
		d.setTimer(timerAgain, string(d.j.id), d.j.rest)
		return
	}
	g := &gathering{holding: newHolding()}
	d.j.enter(g)
	if !s.holdTogether(d, g) {
		d.endHold()
	}
}

// holdTogether divides the parts among the offers that stand and asks the chosen
// sites to hold their shares. Who holds something from a division that came to
// nothing, and is not chosen again, is told that it is free. It reports whether there
// was a division.
func (s *together) holdTogether(d desk, g *gathering) bool {
	before := g.firm
	g.holding = newHolding()
	g.shares, g.at = s.division(d)
	for _, share := range g.shares {
		c := d.j.offers[share.site]
		g.awaited[share.site] = c
		d.askToHold(c, share.parts, g.at)
	}
	for _, site := range sortedSites(before) {
		if g.awaited[site] == nil {
			delete(d.j.offers, site)
			d.release(site)
		}
	}
	if len(g.shares) == 0 {
		return false
	}
	d.awaitHolds()
	return true
}

// division is the best division of the parts among the standing offers, and when they
// can start. Sites that failed a part come in only when the job has waited for a
// further round and the others do not suffice.
func (s *together) division(d desk) ([]share, time.Time) {
	standing, failed := d.standing(), d.j.failedSites()
	all := make([]place, 0, len(standing))
	for _, c := range standing {
		p := placeOf(d, c)
		if p.ready > grid.MaxRuntime || p.run > grid.MaxRuntime {
			continue
		}
		all = append(all, p)
	}
	good := all
	if len(failed) > 0 {
		good = slices.DeleteFunc(slices.Clone(all), func(p place) bool {
			return slices.Contains(failed, p.site)
		})
	}
	n := uint32(len(d.j.tasks))
	shares := divide(s.mode, n, s.commBytes, good)
	if shares == nil && len(good) < len(all) {
		if first := &d.j.tasks[0]; first.roundsFailed > 1 {
			shares = divide(s.mode, n, s.commBytes, all)
		} else {
			first.roundsFailed++
		}
	}
	if shares == nil {
		return nil, timeZero
	}
	at := s.commonStart(d, shares)
	if !s.inTime(d, shares, at) || !s.isSayable(d, shares) {
		return nil, timeZero
	}
	return shares, at
}

// placeOf reads an offer as a place for parts that start together. Durations in an offer
// count from its sending.
func placeOf(d desk, c *candidate) place {
	parts := c.offer.Parts
	ready := c.offer.Finish - parts.Run
	if ready < parts.Wait {
		ready = parts.Wait + min(parts.StageIn, grid.MaxRuntime)
	}
	return place{
		site: c.offer.Site, room: c.left, ready: max(ready-d.now().Sub(c.at), 0), run: parts.Run,
		bps: d.bps(c.offer.Site),
	}
}

// commonStart is when all parts can start: the longest wait, staging included, and
// the time it takes to ask and to award.
func (s *together) commonStart(d desk, shares []share) time.Time {
	w := d.j.traits.window
	if !w.At.IsZero() {
		return w.At
	}
	at := d.now()
	for _, share := range shares {
		if t := d.now().Add(share.ready); t.After(at) {
			at = t
		}
	}
	at = at.Add(d.cfg().AwardWindow)
	if at.Before(w.NotBefore) {
		at = w.NotBefore
	}
	return at.Truncate(time.Millisecond).Add(time.Millisecond) // the wire's step
}

// inTime reports whether a common start lies ahead and the parts end before the
// deadline, if there is one.
func (s *together) inTime(d desk, shares []share, at time.Time) bool {
	deadline := d.j.traits.window.Deadline
	if !at.After(d.now()) {
		return false
	}
	return deadline.IsZero() || completion(shares, s.commBytes) <= deadline.Sub(at)+readyOf(shares)
}

// decide follows an answer, or the end of the time for it: when all chosen sites
// hold their shares these are awarded, else all of them are free again and the next
// division is tried.
func (s *together) decide(d desk) {
	g, is := d.j.stage.(*gathering)
	if !is || s.isTooLate(d) {
		return
	}
	if g.isComplete(d.now()) {
		s.awardTogether(d, g)
		return
	}
	g.tries++
	for _, share := range g.shares {
		if c := g.firm[share.site]; c != nil {
			if c.left >= share.parts {
				c.left = max(c.left, share.room)
			}
			d.j.offers[share.site] = c
		}
	}
	if g.tries < maxDivisions && s.holdTogether(d, g) {
		return
	}
	for _, site := range sortedSites(g.firm) {
		delete(d.j.offers, site) // it is released, and no offer any more
	}
	s.releaseHolds(d)
	d.rest(s.ungathered(d))
}

// ungathered: the sites that had offered could not hold it all at the same time. All sites
// are asked again, without a pause the first times.
func (s *together) ungathered(d desk) verdict {
	if s.hasty < maxHasty || d.j.traits.promise || d.j.noWait {
		return s.nobodyHolds()
	}
	s.hasty = 0
	return verdict{do: verdictWait, everybody: true}
}

// awardTogether awards the shares that are held. The parts are numbered in the order
// of the host list.
func (s *together) awardTogether(d desk, g *gathering) {
	d.endHold()
	d.j.pause = 0 // there was capacity: if this comes to nothing, it is looked for again soon
	hosts := hostList(d, g.shares)
	rest := slices.Clone(d.j.waiting)
	for _, share := range g.shares {
		c := g.firm[share.site]
		spec := d.j.spec.Spec
		spec.Window.At, spec.Window.NotBefore = d.onWall(g.at), timeZero
		spec.Env = partEnv(spec.Env, len(d.j.tasks), hosts)
		s.note([]*candidate{c})
		d.award(handover{
			c: c, tasks: rest[:share.parts], spec: spec, extra: envBytes(hosts), at: g.at,
		})
		rest = rest[share.parts:]
	}
	d.report(step.LevelInfo, eventAwardedTogether, step.Report{
		Attempt: d.j.about(), Text: hosts, Value: float64(len(g.shares)),
	})
}

// isSayable reports whether the awards can be sent with the list of hosts.
func (s *together) isSayable(d desk, shares []share) bool {
	hosts := hostList(d, shares)
	spec := d.j.spec.Spec
	spec.Env = partEnv(spec.Env, len(d.j.tasks), hosts)
	err := spec.Validate()
	for i := range d.j.spec.Items {
		size := d.j.awardSize + envBytes(hosts) + itemBytes(d.j.item(uint32(i)))
		if err == nil && size > protocol.MaxMessageBytes {
			err = fmt.Errorf("%w: item %d: too long for an award with %d hosts",
				grid.ErrInvalid, i, len(shares))
		}
	}
	if err != nil {
		d.report(step.LevelWarn, eventHostsTooMany, step.Report{
			Attempt: d.j.about(), Value: float64(len(shares)), Text: err.Error(),
		})
	}
	return err == nil
}

// refuseTooWide reports whether the parts of a split job can never run together, whatever
// other jobs leave: all sites that were there within the last minute are too small for
// them, each alone if the job is not to be split, else all together. If so it says so in
// the tasks' exits.
func (s *together) refuseTooWide(d desk, r *round) bool {
	if !r.complete {
		return false
	}
	onOne := s.mode == grid.SplitNever
	limit, wide := d.tooWide(d.j.spec.Count, onOne)
	if !wide {
		return false
	}
	what := "all sites together take"
	if onOne {
		what = "the largest site takes"
	}
	text := fmt.Sprintf("%d parts are to run at the same time, and %s %d; "+
		"ask for fewer or smaller parts", d.j.spec.Count, what, limit)
	if onOne {
		text += ", or let the job be split"
	}
	for _, i := range d.j.waiting {
		d.j.tasks[i].exit = &grid.Exit{Cause: grid.CauseStopped, Text: text}
	}
	return true
}

// checkParts verifies that parts wait all or not at all, and were awarded as often.
func (j *job) checkParts() error {
	if j.any(func(t *task) bool { return t.token != j.tasks[0].token }) {
		return errors.New("parts are of different starts")
	}
	if len(j.waiting) > 0 && len(j.waiting) < j.open {
		return fmt.Errorf("%d of %d parts wait", len(j.waiting), j.open)
	}
	return nil
}
