package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// promised awards to firm offers only, and has a job refused that nobody promises a place:
// one with a fixed start or a deadline, and a reservation (Migol 6.2.1).
type promised struct {
	nearest
	// taken is the last firm offer of each site that was awarded. A firm offer that is not
	// that one, and was not asked for, is let go.
	taken map[grid.SiteID]uint64
	// hasty counts the announcements made without a pause because no site could hold its
	// offer. It starts again from 0 when a site accepts a task.
	hasty int
	// empty counts the complete rounds in a row in which nobody offered: one silent member is
	// not waited for any longer than that.
	empty int
}

func newPromised() promised { return promised{taken: make(map[grid.SiteID]uint64)} }

func (p *promised) place(d desk, on occasion) verdict {
	p.seek(d)
	switch {
	case len(d.j.waiting) == 0 || d.j.holding() != nil:
		return verdict{}
	case on.why == roundOver:
		return p.unpromised(d, on)
	case on.why == declined:
		return p.nobodyHolds()
	default:
		return verdict{}
	}
}

func (p *promised) answered(d desk, from grid.SiteID, msg protocol.Message) bool {
	mine, changed := p.hear(d, from, msg)
	if !changed {
		return mine
	}
	if len(d.j.waiting) > 0 {
		p.askToHold(d)
	}
	if len(d.j.holding().awaited) == 0 {
		p.decide(d)
	}
	return mine
}

func (p *promised) claimed(_ desk, c claim) bool {
	if c.first {
		p.hasty = 0
	}
	return true
}

func (p *promised) released(d desk, why releaseReason) {
	switch why {
	case jobEnded:
		d.endHold()
		d.stopTimer(timerWindow, string(d.j.id))
	case windowOver:
		p.releaseHolds(d)
	case heardAgain:
		if len(d.j.waiting) == 0 {
			p.releaseHolds(d)
		}
	}
}

func (p *promised) woken(d desk, w wake) {
	switch w.why {
	case wakeHoldOver:
		p.decide(d)
	case wakeGranted:
		p.clearIfPlaced(d)
	default:
	}
}

// seek asks the nearest sites to hold what they have offered. When there is nobody
// to ask, nothing happens.
func (p *promised) seek(d desk) {
	if d.j.holding() != nil || len(d.j.waiting) == 0 || d.isOver() {
		return
	}
	h := newHolding()
	d.j.enter(&h)
	if p.askToHold(d); len(h.awaited) == 0 {
		d.j.enter(nil)
		return
	}
	p.empty = 0
}

// askToHold asks the nearest that were not asked yet, until as many as are wanted
// have been. An offer that was asked for is used up: it is held or it is gone.
func (p *promised) askToHold(d desk) {
	j, h, asked := d.j, d.j.holding(), false
	all, top := p.holdable(d), d.cfg().HoldTop
	if j.wantedFirst(all) || h.firm[j.target()] != nil {
		top = 1 // others are to have what it leaves them
	}
	for _, c := range all {
		if h.enough(top, uint32(len(j.waiting))) {
			break
		}
		site := c.offer.Site
		if h.awaited[site] != nil || h.firm[site] != nil {
			delete(j.offers, site)
			continue
		}
		h.awaited[site] = c
		d.askToHold(c, min(c.left, uint32(len(j.waiting))), timeZero)
		asked = true
	}
	if asked && h.held() < uint32(len(j.waiting)) { // what is held does not wait longer for more
		d.awaitHolds()
	}
}

// holdable lists the standing offers that a waiting task may go to, nearest first.
func (p *promised) holdable(d desk) []*candidate {
	j, standing := d.j, d.standing()
	var all []*candidate
	for _, c := range standing {
		may := func(i uint32) bool { return p.mayGo(d, &j.tasks[i], c, standing) }
		if slices.ContainsFunc(j.waiting, may) {
			all = append(all, c)
		}
	}
	if len(all) == 0 && len(standing) > 0 && len(j.holding().firm) == 0 { // all failed them
		for _, i := range j.waiting {
			j.tasks[i].roundsFailed++
		}
	}
	return all
}

// mayGo reports whether a task may go to a site, by the rules of choose.
func (p *promised) mayGo(d desk, t *task, c *candidate, standing []*candidate) bool {
	switch {
	case t.silent && d.reuniting(), t.isResting(d.now()) && !t.awaitsLease(d.now()):
		return false
	case !t.away.IsZero() && !c.at.After(t.away):
		return false
	case !t.failedAt(c.offer.Site):
		return true
	}
	fresh := func(o *candidate) bool { return !t.failedAt(o.offer.Site) }
	others := slices.ContainsFunc(standing, fresh)
	return !others && t.roundsFailed > 1
}

// hear takes what a site says to a request to hold, and reports whether it was an answer
// to one, and whether that changed anything.
func (p *promised) hear(d desk, from grid.SiteID, msg protocol.Message) (mine, changed bool) {
	switch msg := msg.(type) {
	case protocol.Bid:
		return p.hearFirm(d, from, msg)
	case protocol.Refuse:
		h := d.j.holding()
		if h == nil || h.awaited[from] == nil || msg.Seq < h.awaited[from].seq {
			return false, false
		}
		d.j.note(Answer{Site: from, Seq: msg.Seq, Refusal: msg.Refusal, At: d.now()})
		return true, p.cannotHold(d, from)
	case nil: // it is gone
		return false, p.cannotHold(d, from)
	default:
		return false, false
	}
}

// hearFirm takes a firm offer. Who holds a place that is not wanted any more is told so.
func (p *promised) hearFirm(d desk, from grid.SiteID, msg protocol.Bid) (mine, changed bool) {
	if !msg.Offer.Firm {
		return false, false
	}
	h := d.j.holding()
	if h == nil || !h.involves(from) {
		if r := d.j.round(); r != nil && msg.Seq >= r.first {
			return false, false // an answer to the announcement
		}
		if msg.Offer.ID != p.taken[from] {
			d.release(from)
		}
		return true, false
	}
	if h.latest(from) >= msg.Offer.ID {
		return true, false // said twice
	}
	offer := d.completed(from, msg.Offer)
	delete(h.awaited, from)
	h.firm[from] = newCandidate(offer, msg.Offer.Parts.Distance, msg.Seq, d.now())
	d.j.note(Answer{Site: from, Seq: msg.Seq, Offer: &offer, At: d.now()})
	d.report(step.LevelDebug, eventHeld, step.Report{
		Attempt: d.j.about(), Site: from, Value: offer.Parts.Distance,
	})
	return true, true
}

// cannotHold takes it that a site that was asked to hold cannot, or is gone, and reports
// whether it was asked.
func (p *promised) cannotHold(d desk, site grid.SiteID) bool {
	h := d.j.holding()
	if h == nil || !h.involves(site) {
		return false
	}
	delete(h.awaited, site)
	delete(h.firm, site)
	return true
}

// decide awards the waiting tasks to the firm offers with the shortest expected
// delay. The other holds are cancelled: "For the top resource the broker commits the
// reservation. All other reservations are cancelled." (Migol 6.2.1)
func (p *promised) decide(d desk) {
	h := d.j.holding()
	if h == nil || p.isTooLate(d) || p.prolong(d) {
		return
	}
	d.endHold()
	p.note(p.awardAmong(d, slices.Clone(d.j.waiting), h.byDelay(d), false))
	for _, site := range sortedSites(h.firm) {
		if p.taken[site] != h.firm[site].offer.ID {
			d.release(site)
		}
	}
	if len(d.j.waiting) > 0 {
		d.place(occasion{why: declined})
	}
}

// prolong keeps the best of what is held for tasks that only a lease keeps from being awarded, and
// reports whether there is any. An offer may be held for less than that: its site is asked again.
func (p *promised) prolong(d desk) bool {
	now, h, until := d.now(), d.j.holding(), timeZero
	for _, i := range d.j.waiting {
		t := &d.j.tasks[i]
		if !t.awaitsLease(now) {
			return false
		}
		until = latest(until, t.leaseEnd)
	}
	kept, wanted, window := h.byDelay(d), len(d.j.waiting), d.cfg().AwardWindow
	if len(kept) == 0 || wanted == 0 {
		return false
	}
	next := until.Add(window)
	for _, c := range kept {
		half := c.at.Add(c.offer.Validity / 2)
		switch {
		case wanted <= 0:
			d.release(c.offer.Site)
			p.cannotHold(d, c.offer.Site)
		case c.expires.After(until.Add(window)):
		case half.After(now):
			next = earlier(next, half)
		default:
			h.awaited[c.offer.Site] = c
			d.askToHold(c, min(c.left, uint32(wanted)), timeZero)
			next = earlier(next, now.Add(window))
		}
		wanted -= int(c.left)
	}
	for _, i := range d.j.waiting {
		if t := &d.j.tasks[i]; t.promise == grid.PromiseOpen && t.note != noteHeld {
			t.note = noteHeld
			d.save(i)
		}
	}
	d.setTimer(timerHold, string(d.j.id), latest(next, now.Add(window/2)))
	return true
}

// note remembers which firm offers were taken.
func (p *promised) note(awarded []*candidate) {
	for _, c := range awarded {
		p.taken[c.offer.Site] = c.offer.ID
	}
}

// isTooLate ends the search when the window is over.
func (p *promised) isTooLate(d desk) bool {
	if !d.isOver() {
		return false
	}
	p.releaseHolds(d)
	if !d.expire() && len(d.j.waiting) > 0 {
		d.rest(verdict{do: verdictWait, everybody: true})
	}
	return true
}

// releaseHolds gives up a request to hold: the sites are told.
func (p *promised) releaseHolds(d desk) {
	h := d.j.holding()
	if h == nil {
		return
	}
	d.endHold()
	for _, site := range sortedSites(h.firm) {
		d.release(site)
	}
}

// byDelay orders firm offers by shortest expected delay; those that have expired
// are left out.
func (h *holding) byDelay(d desk) []*candidate {
	mode := index.DelayFixed
	if !d.j.traits.window.At.IsZero() {
		mode = index.DelayPaper // all start at the same time: the nearest
	}
	var left []index.Reservation
	for _, site := range sortedSites(h.firm) {
		if h.firm[site].expires.After(d.now()) {
			left = append(left, h.firm[site].asReservation(d.j.traits.window.At, d.now()))
		}
	}
	var order []*candidate
	for len(left) > 0 {
		best, found, err := index.ShortestExpectedDelay(left, len(left), mode)
		if err != nil || !found { // offers were validated: not reached
			return order
		}
		order = append(order, h.firm[best.Site])
		left = slices.DeleteFunc(left, func(r index.Reservation) bool { return r.Site == best.Site })
	}
	return order
}

// asReservation is a firm offer as the shortest expected delay compares it. Durations
// in an offer count from its sending. With a fixed start all begin then.
func (c *candidate) asReservation(fixed, now time.Time) index.Reservation {
	parts, elapsed := c.offer.Parts, now.Sub(c.at)
	left := func(d time.Duration) float64 { return max(d-elapsed, 0).Seconds() }
	r := index.Reservation{
		Site: c.offer.Site, Rank: parts.Distance, Accepted: true,
		StartSeconds: left(parts.Wait), TransferSeconds: left(parts.StageIn),
		RuntimeSeconds: parts.Run.Seconds(),
	}
	if !fixed.IsZero() {
		r.StartSeconds = max(fixed.Sub(now), 0).Seconds()
	}
	return r
}

// nobodyHolds: all sites that had offered were taken by others meanwhile, or cannot keep
// their offers. All sites are asked again right away, but not forever.
func (p *promised) nobodyHolds() verdict {
	if p.hasty < maxHasty {
		p.hasty++
		return verdict{do: verdictAsk}
	}
	p.hasty = 0
	return verdict{do: verdictRefuse, everybody: true}
}

// unpromised ends a round in which no site offered the promise that was wanted: the job is
// refused right away, and the answers say the earliest that could be kept. A task that
// was promised a place before, and has lost it, is not given up before its window is
// over.
func (p *promised) unpromised(d desk, on occasion) verdict {
	r := on.round
	if !r.complete {
		return waitAfter(on)
	}
	p.empty++
	d.warn()
	if d.metEnough() && (d.j.noWait || p.empty >= maxEmpty || r.explain && allAnswered(d, r)) {
		return refuseAfter(on)
	}
	return waitAfter(on)
}

// allAnswered reports whether every site that is connected has answered the round.
func allAnswered(d desk, r *round) bool {
	if r.pending > 0 {
		return false
	}
	return !slices.ContainsFunc(d.connected(), func(id grid.SiteID) bool {
		a, has := d.j.answers[id]
		return !has || a.Seq < r.first
	})
}

// clearIfPlaced says that the job is placed when all its sites have acknowledged: before,
// that word could overtake an award, and end what is held for it.
func (p *promised) clearIfPlaced(d desk) {
	awaited := func(t *task) bool { return t.phase == grid.PhaseAwarded }
	if len(d.j.waiting) == 0 && d.j.open > 0 && !d.j.any(awaited) {
		d.clear()
	}
}
