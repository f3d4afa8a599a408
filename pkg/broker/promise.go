package broker

import (
	"errors"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// holding is the request to some sites to make their offers firm, until all of them
// have answered or the award window is over (Migol 6.2.1).
type holding struct {
	awaited map[grid.SiteID]*candidate // asked and silent so far, with the offer each had made
	firm    map[grid.SiteID]*candidate // who holds what it offered
	parts   *together                  // what is held is a common start of all parts; else nil
}

// Bounds on the search for somebody who promises.
const (
	maxHolds = 64 // sites that are asked to hold at the same time
	maxHasty = 2  // announcements at once because everybody who had offered was taken meanwhile
	maxEmpty = 2  // complete rounds without an offer before a silent member is waited for no more
)

// promised reports whether the job wants a promise: it is awarded to firm offers
// only, and refused when nobody makes one.
func (j *job) promised() bool {
	return j.job.Spec.Window.Promised() || j.job.Spec.Kind == grid.KindReservation
}

// seek asks the nearest sites to hold what they have offered. When there is nobody
// to ask, nothing happens.
func (m *Machine) seek(j *job) {
	if j.hold != nil || len(j.waiting) == 0 || j.probe || j.over(m.now) {
		return
	}
	j.hold = &holding{awaited: make(map[grid.SiteID]*candidate), firm: make(map[grid.SiteID]*candidate)}
	m.askToHold(j)
	if len(j.hold.awaited) == 0 {
		j.hold = nil
		return
	}
	j.empty = 0
}

// askToHold asks the nearest that were not asked yet, until as many as are wanted
// have been. An offer that was asked for is used up: it is held or it is gone.
func (m *Machine) askToHold(j *job) {
	h, asked := j.hold, false
	for _, c := range m.holdable(j) {
		if h.enough(m.cfg.HoldTop, uint32(len(j.waiting))) {
			break
		}
		site := c.offer.Site
		delete(j.offers, site)
		if h.awaited[site] != nil || h.firm[site] != nil {
			continue
		}
		h.awaited[site] = c
		m.out.Send(site, protocol.HoldOffer{
			Job: j.id, Seq: c.seq, OfferID: c.offer.ID, Tasks: min(c.left, uint32(len(j.waiting))),
		})
		asked = true
	}
	if asked && h.held() < uint32(len(j.waiting)) { // what is held already does not wait longer for more
		m.out.SetTimer(timerHold, string(j.id), m.now.Add(m.cfg.AwardWindow))
	}
}

// enough reports whether no further site is to be asked: the top ones were, and those
// asked suffice for the tasks.
func (h *holding) enough(top int, tasks uint32) bool {
	asked := len(h.awaited) + len(h.firm)
	if asked < top {
		return false
	}
	places := h.held()
	for _, site := range sortedSites(h.awaited) {
		places += min(h.awaited[site].left, tasks)
	}
	return places >= tasks || asked >= maxHolds
}

// held is how many tasks the firm offers take.
func (h *holding) held() uint32 {
	var places uint32
	for _, site := range sortedSites(h.firm) {
		places += h.firm[site].left
	}
	return places
}

// holdable lists the standing offers that a waiting task may go to, nearest first.
func (m *Machine) holdable(j *job) []*candidate {
	standing := m.standing(j)
	var all []*candidate
	for _, c := range standing {
		if slices.ContainsFunc(j.waiting, func(i uint32) bool { return m.mayGo(&j.tasks[i], c, standing) }) {
			all = append(all, c)
		}
	}
	if len(all) == 0 && len(standing) > 0 && len(j.hold.firm) == 0 { // only sites that have failed them
		for _, i := range j.waiting {
			j.tasks[i].roundsFailed++
		}
	}
	return all
}

// mayGo reports whether a task may go to a site, by the rules of choose.
func (m *Machine) mayGo(t *task, c *candidate, standing []*candidate) bool {
	switch {
	case t.silent && m.now.Before(m.reunion):
		return false
	case !t.away.IsZero() && !c.at.After(t.away):
		return false
	case !slices.Contains(t.failed, c.offer.Site):
		return true
	}
	others := slices.ContainsFunc(standing, func(o *candidate) bool { return !slices.Contains(t.failed, o.offer.Site) })
	return !others && t.roundsFailed > 1
}

// firmBid takes the answer to a request to hold, and reports whether it was one. Who
// holds a place that is not wanted any more is told so.
func (m *Machine) firmBid(j *job, from grid.SiteID, msg protocol.Bid) bool {
	if !msg.Offer.Firm || !j.firm() || j.probe {
		return false
	}
	h := j.hold
	if h == nil || h.awaited[from] == nil && h.firm[from] == nil {
		if r := j.round; r != nil && msg.Seq >= r.first {
			return false // an answer to the announcement
		}
		if msg.Offer.ID != j.taken[from] {
			m.release(j, from)
		}
		return true
	}
	if h.latest(from) >= msg.Offer.ID {
		return true // said twice
	}
	offer := m.completed(j, from, msg.Offer)
	c := m.candidate(offer, msg.Offer.Parts.Distance)
	c.seq = msg.Seq
	delete(h.awaited, from)
	h.firm[from] = c
	m.note(j, Answer{Site: from, Seq: msg.Seq, Offer: &offer, At: m.now})
	m.out.Emit(step.Report{
		Event: "held", Level: step.LevelDebug, Attempt: j.attemptOfJob(), Site: from, Value: offer.Parts.Distance,
	})
	m.goOn(j)
	return true
}

// holdRefused takes a refusal to hold, and reports whether it was one: the next
// nearest is asked.
func (m *Machine) holdRefused(j *job, from grid.SiteID, msg protocol.Refuse) bool {
	h := j.hold
	if h == nil || h.awaited[from] == nil || msg.Seq < h.awaited[from].seq {
		return false
	}
	m.note(j, Answer{Site: from, Seq: msg.Seq, Refusal: msg.Refusal, At: m.now})
	m.holdLost(j, from)
	return true
}

// holdLost: a site that was asked to hold cannot, or is gone.
func (m *Machine) holdLost(j *job, site grid.SiteID) {
	h := j.hold
	if h == nil || h.awaited[site] == nil && h.firm[site] == nil {
		return
	}
	delete(h.awaited, site)
	delete(h.firm, site)
	m.goOn(j)
}

// goOn follows an answer to a request to hold: others are asked if it does not
// suffice, and when nobody's answer is awaited it is decided.
func (m *Machine) goOn(j *job) {
	if len(j.waiting) > 0 && j.hold.parts == nil {
		m.askToHold(j)
	}
	if len(j.hold.awaited) == 0 {
		m.decide(j)
	}
}

// decide awards the waiting tasks to the firm offers with the shortest expected
// delay. The other holds are cancelled: "For the top resource the broker commits the
// reservation. All other reservations are cancelled." (Migol 6.2.1)
func (m *Machine) decide(j *job) {
	h := j.hold
	if h == nil {
		return
	}
	if j.over(m.now) {
		m.releaseHolds(j)
		if !m.expire(j) && len(j.waiting) > 0 {
			m.waitFor(j, &round{sample: 1, complete: true})
		}
		return
	}
	if h.parts != nil {
		m.gathered(j)
		return
	}
	m.endHold(j)
	m.awardAmong(j, m.byDelay(j, h.firm))
	for _, site := range sortedSites(h.firm) {
		if j.taken[site] != h.firm[site].offer.ID {
			m.release(j, site)
		}
	}
	if len(j.waiting) == 0 {
		return
	}
	m.seek(j)
	if j.hold == nil {
		m.nobodyHolds(j)
	}
}

func (m *Machine) endHold(j *job) {
	if j.hold != nil {
		j.hold = nil
		m.out.StopTimer(timerHold, string(j.id))
	}
}

// release tells a site that what it holds for the job is not wanted.
func (m *Machine) release(j *job, site grid.SiteID) {
	m.out.Send(site, protocol.Clear{Job: j.id, Submitter: m.cfg.Self, Kind: protocol.ClearPlaced})
}

// releaseHolds gives up a request to hold: the sites are told.
func (m *Machine) releaseHolds(j *job) {
	h := j.hold
	if h == nil {
		return
	}
	m.endHold(j)
	for _, site := range sortedSites(h.firm) {
		m.release(j, site)
	}
}

// byDelay orders firm offers by shortest expected delay; those that have expired
// are left out.
func (m *Machine) byDelay(j *job, firm map[grid.SiteID]*candidate) []*candidate {
	mode := index.DelayFixed
	if !j.job.Spec.Window.At.IsZero() {
		mode = index.DelayPaper // all start at the same time: the nearest
	}
	var left []index.Reservation
	for _, site := range sortedSites(firm) {
		if firm[site].expires.After(m.now) {
			left = append(left, m.reservation(j, firm[site]))
		}
	}
	var order []*candidate
	for len(left) > 0 {
		best, found, err := index.ShortestExpectedDelay(left, len(left), mode)
		if err != nil || !found { // offers were validated: not reached
			return order
		}
		order = append(order, firm[best.Site])
		left = slices.DeleteFunc(left, func(r index.Reservation) bool { return r.Site == best.Site })
	}
	return order
}

// reservation is a firm offer as the shortest expected delay compares it. Durations
// in an offer count from its sending.
func (m *Machine) reservation(j *job, c *candidate) index.Reservation {
	parts, elapsed := c.offer.Parts, m.now.Sub(c.at)
	left := func(d time.Duration) float64 { return max(d-elapsed, 0).Seconds() }
	r := index.Reservation{
		Site: c.offer.Site, Rank: parts.Distance, Accepted: true,
		StartSeconds: left(parts.Wait), TransferSeconds: left(parts.StageIn), RuntimeSeconds: parts.Run.Seconds(),
	}
	if at := j.job.Spec.Window.At; !at.IsZero() {
		r.StartSeconds = max(at.Sub(m.now), 0).Seconds()
	}
	return r
}

// nobodyHolds: all who had offered were taken by others meanwhile, or cannot keep
// their offers. Everybody is asked again at once, but not for ever.
func (m *Machine) nobodyHolds(j *job) {
	if j.hasty < maxHasty {
		j.hasty++
		m.announceAgain(j)
		return
	}
	j.hasty = 0
	m.refuseJob(j)
	if len(j.waiting) > 0 {
		m.waitFor(j, &round{sample: 1, complete: true})
	}
}

// unpromised ends a round in which nobody offered what was to be promised: the job is
// refused at once, and the answers say the earliest that could be kept. A task that
// was promised a place before, and has lost it, is not given up before its window is
// over.
func (m *Machine) unpromised(j *job, r *round) {
	if r.complete {
		j.empty++
	}
	known := m.met() || m.now.Sub(m.bootedAt) >= m.cfg.BootGrace
	if r.complete && known && (j.noWait || j.empty >= maxEmpty || r.explain && m.allAnswered(j, r)) {
		m.refuseJob(j)
	}
	if len(j.waiting) > 0 {
		m.waitFor(j, r)
	}
}

// allAnswered reports whether every site that is connected has answered the round.
func (m *Machine) allAnswered(j *job, r *round) bool {
	if r.pending > 0 {
		return false
	}
	for _, id := range m.connected() {
		if a, has := j.answers[id]; !has || a.Seq < r.first {
			return false
		}
	}
	return true
}

// pledge notes how likely the promise of an award is kept.
func (t *task) pledge(j *job, c *candidate) {
	t.kept = 0
	if j.promised() {
		t.kept = 1 - c.offer.Parts.Z
	}
}

// promiseMade: a site has accepted a task, and so promised it its place.
func (m *Machine) promiseMade(j *job, number uint32) {
	if t := &j.tasks[number]; j.promised() && !t.accepted {
		t.accepted = true
		m.saveTask(j, number)
	}
	j.hasty, j.arrived = 0, true
}

// clearIfPlaced says that a promised job is placed when all its sites have
// acknowledged: before, that word could overtake an award, and end what is held
// for it.
func (m *Machine) clearIfPlaced(j *job) {
	if len(j.waiting) > 0 || j.cleared || j.open == 0 ||
		slices.ContainsFunc(j.tasks, func(t task) bool { return t.phase == grid.PhaseAwarded }) {
		return
	}
	j.cleared = true
	m.clear(j, protocol.ClearPlaced)
}

// plannedStep is by how much a planned start changes before that is written down.
const plannedStep = time.Second

// planned notes when a task's place in its site's plan begins.
func (m *Machine) planned(j *job, msg protocol.Progress) {
	t := &j.tasks[msg.Attempt.Task.Index]
	if msg.Phase != grid.PhaseStaging || msg.StartsIn == 0 {
		t.startsAt = timeZero
		return
	}
	at := m.now.Add(msg.StartsIn)
	moved := at.Sub(t.startsAt).Abs() >= plannedStep
	if moved || !j.promised() {
		t.startsAt = at
	}
	if moved && j.promised() {
		m.saveTask(j, msg.Attempt.Task.Index)
	}
}

// checkPlacing reports a job that is placed by two ways at a time, or before its turn.
func (m *Machine) checkPlacing(j *job) error {
	switch {
	case j.hold != nil && (j.round != nil || j.probe || j.open == 0 || !j.firm()):
		return errors.New("asks sites to hold their offers while it asks for offers, or for nothing")
	case j.open > 0 && m.blocked(j) && (j.round != nil || len(j.waiting) < len(j.tasks)):
		return errors.New("is placed before those that it comes after are done")
	default:
		return nil
	}
}
