package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// round is one announcement and the answers to it.
type round struct {
	expected map[grid.SiteID]bool // who should answer before the TTL ends; true until it did
	pending  int                  // of expected, how many have not answered
	complete bool                 // everybody was asked and must explain a refusal
	explain  bool
	sample   float64
	offers   int
	heard    bool   // another site has answered
	first    uint32 // its first announcement; answers to earlier ones do not count
}

// Answer is what a site last said to a job.
type Answer struct {
	Site    grid.SiteID
	Seq     uint32       // of the announcement
	Offer   *grid.Offer  // nil when it refused
	Refusal grid.Refusal // when it refused
	At      time.Time
}

func (a Answer) neverFits() bool { return a.Offer == nil && a.Refusal.Never }

// announce opens a round that asks everybody for the first time: who is known to
// answer directly, the rest by gossip, if there may be a rest (thesis 4.1, step 1).
func (m *Machine) announce(j *job) {
	if j.bound() {
		m.announceBound(j)
		return
	}
	peers := m.connected()
	r := m.openRound(j, append(peers, m.cfg.Self), true)
	j.announced = true
	if k := m.cfg.ReplyTarget; k > 0 && len(peers) > k && !j.probe {
		r.sample = float64(k) / float64(len(peers))
		r.complete = false
	}
	msg := m.announcement(j)
	for _, p := range peers {
		if m.members[p].answers && r.sample == 1 {
			m.send(p, msg)
		}
	}
	if r.sample == 1 && m.allKnown() {
		m.send(m.cfg.Self, msg)
	} else {
		m.gossip(j, msg)
	}
	m.startTimers(j)
}

// announceAgain asks everybody about a job whose requirement they may have
// cached (thesis 4.1, re-submission).
func (m *Machine) announceAgain(j *job) {
	if len(j.waiting) == 0 || j.round != nil || j.hold != nil || m.blocked(j) || m.hopeless(j) || m.apart(j) {
		return
	}
	if !j.announced || j.bound() {
		m.announce(j)
		return
	}
	peers := m.connected()
	m.openRound(j, append(peers, m.cfg.Self), true)
	m.callAgain(j, peers)
	if !j.gossiped { // those who are known have no room for it: there may be others
		m.gossip(j, m.announcement(j))
	}
	m.startTimers(j)
}

// gossip says something of a job to everybody, known or not.
func (m *Machine) gossip(j *job, msg protocol.Message) {
	j.gossiped = true
	m.emit(step.Broadcast{Message: msg})
}

// clear tells those who were asked that a job needs their offers no more.
func (m *Machine) clear(j *job, kind protocol.ClearKind) {
	msg := protocol.Clear{Job: j.id, Submitter: m.cfg.Self, Kind: kind}
	switch {
	case j.seq == 0 && !j.gossiped: // nobody has heard of it
		return
	case j.bound():
		m.clearBound(j, msg)
		return
	}
	if j.gossiped || !m.allKnown() {
		m.emit(step.Broadcast{Message: msg})
		return
	}
	for _, p := range m.connected() {
		m.send(p, msg)
	}
	m.send(m.cfg.Self, msg)
}

// ask asks one site that has reported room, or has just come.
func (m *Machine) ask(j *job, site grid.SiteID) {
	if m.blocked(j) || j.bound() && !slices.Contains(m.holders(j.job.Spec.Reservation), site) {
		return
	}
	if j.round != nil || j.hold != nil {
		j.vacant[site] = true
		return
	}
	if j.split() { // the offer of one says little about places for all parts
		m.announceAgain(j)
		return
	}
	m.openRound(j, []grid.SiteID{site}, false)
	m.send(site, m.reannouncement(j))
	m.startTimers(j)
}

func (m *Machine) openRound(j *job, expected []grid.SiteID, everybody bool) *round {
	j.seq++
	r := &round{expected: make(map[grid.SiteID]bool, len(expected)), complete: everybody, sample: 1, first: j.seq}
	r.explain = j.probe || len(expected) <= m.cfg.ExplainUpTo+1
	for _, id := range expected {
		p, known := m.members[id]
		if everybody && known && p.silentTill.After(m.now) && !j.probe {
			continue // it did not answer the last time; it may, but is not waited for
		}
		if !r.expected[id] {
			r.expected[id] = true
			r.pending++
		}
	}
	j.round = r
	m.stopTimer(timerAgain, string(j.id))
	return r
}

func (m *Machine) startTimers(j *job) {
	m.setTimer(timerRound, string(j.id), m.now.Add(j.job.TTL))
	if j.round.complete && !j.round.explain {
		m.setTimer(timerExplain, string(j.id), m.now.Add(j.job.TTL/2))
	}
	m.emit(step.Report{
		Event: "announced", Level: step.LevelDebug, Attempt: j.attemptOfJob(), Value: float64(j.seq),
	})
}

// explainRound asks for reasons when half the TTL has brought no offer.
func (m *Machine) explainRound(j *job) {
	if j.round == nil || j.round.offers > 0 || j.round.explain {
		return
	}
	j.round.explain = true
	j.seq++
	m.callAgain(j, m.connected())
}

// callAgain sends a re-announcement to everybody, this site's own included.
func (m *Machine) callAgain(j *job, peers []grid.SiteID) {
	msg := m.reannouncement(j)
	if len(peers) > m.cfg.UnicastUpTo {
		m.gossip(j, msg)
		return
	}
	for _, p := range peers {
		m.send(p, msg)
	}
	m.send(m.cfg.Self, msg)
}

func (m *Machine) announcement(j *job) protocol.Announce {
	return protocol.Announce{
		Job: j.id, Seq: j.seq, Submitter: m.cfg.Self, Addrs: m.cfg.Addrs, Req: j.req, Count: j.wanted(),
		TTL: j.job.TTL, Sample: j.sample(), Explain: j.round != nil && j.round.explain,
	}
}

func (m *Machine) reannouncement(j *job) protocol.Reannounce {
	return protocol.Reannounce{
		Job: j.id, Seq: j.seq, Submitter: m.cfg.Self, Digest: j.digest, Count: j.wanted(),
		TTL: j.job.TTL, Explain: j.round != nil && j.round.explain,
	}
}

func (j *job) wanted() uint32 { return max(1, uint32(len(j.waiting))) }

func (j *job) sample() float64 {
	if j.round == nil {
		return 1
	}
	return j.round.sample
}

// needRequirements serves a site whose cache was cold (thesis 4.1,
// re-submission, step 3).
func (m *Machine) needRequirements(from grid.SiteID, msg protocol.NeedRequirements) {
	j, ok := m.jobs[msg.Job]
	if !ok || j.open == 0 || msg.Seq != j.seq {
		return
	}
	m.send(from, protocol.Requirements{Announce: m.announcement(j)})
}

func (m *Machine) answered(j *job, a Answer) {
	m.note(j, a)
	r := j.round
	if r != nil && a.Site != m.cfg.Self {
		r.heard = true
	}
	if r == nil {
		if a.Offer != nil && m.asking(j) {
			m.award(j) // what finds no place is announced again when its pause is over
		}
		return
	}
	if a.Seq < r.first {
		return
	}
	awaited, asked := r.expected[a.Site]
	if a.Offer != nil && (awaited || !asked) {
		r.offers++
	}
	if awaited {
		r.expected[a.Site] = false
		r.pending--
	}
	m.closeIfComplete(j)
}

// closeIfComplete ends a round before its TTL when nobody else is expected to
// answer.
func (m *Machine) closeIfComplete(j *job) {
	r := j.round
	if r == nil {
		return
	}
	for _, id := range sortedSites(r.expected) {
		p, known := m.members[id]
		if r.expected[id] && id != m.cfg.Self && (!known || !p.connected) {
			r.expected[id] = false
			r.pending--
		}
	}
	enough := r.sample < 1 && r.offers >= enoughOffers
	if r.pending == 0 || enough {
		m.closeRound(j)
	}
}

// enoughOffers ends a sampled round early.
const enoughOffers = 8

// closeRound awards what the offers allow, refuses a job that can never be
// placed, and sees to it that the rest is asked for again.
func (m *Machine) closeRound(j *job) {
	r := j.round
	if r == nil {
		return
	}
	j.round = nil
	m.stopTimer(timerRound, string(j.id))
	m.stopTimer(timerExplain, string(j.id))
	m.noteSilence(r)
	if j.probe {
		m.endProbe(j)
		return
	}
	if !m.admit(j) {
		m.refuseJob(j)
		return
	}
	if m.hopeless(j) {
		return
	}
	m.award(j)
	switch {
	case len(j.waiting) == 0 || j.hold != nil:
		return
	case j.promised():
		m.unpromised(j, r)
		return
	}
	if m.unplaceable(j, r) || m.tooWide(j, r) || j.noWait && r.complete && r.sample == 1 {
		m.refuseJob(j)
		return
	}
	m.waitFor(j, r)
}

// noteSilence remembers who did not answer although he should have; when nobody
// did, it is this site that is cut off.
func (m *Machine) noteSilence(r *round) {
	if !r.explain || r.sample < 1 {
		return // silence may mean that a site cannot offer, or was not drawn
	}
	for _, id := range sortedSites(r.expected) {
		if p, known := m.members[id]; known && r.expected[id] {
			p.silentTill = m.now.Add(memberSilent)
		}
	}
	if r.complete && !r.heard && m.met() {
		m.cutOff = true
	}
}

// unplaceable: no site has ever offered, at least one has answered, and every
// member seen within the last minute says that the job never fits.
func (m *Machine) unplaceable(j *job, r *round) bool {
	if j.bid || !r.complete || !r.explain || len(j.answers) == 0 || m.missing(j.answers) {
		return false
	}
	if own, answered := j.answers[m.cfg.Self]; !answered || !own.neverFits() {
		return false
	}
	return m.met() || m.now.Sub(m.bootedAt) >= m.cfg.BootGrace
}

// refuseJob ends what waits, save what was promised a place once.
func (m *Machine) refuseJob(j *job) {
	for _, i := range slices.Clone(j.waiting) {
		if !j.tasks[i].accepted {
			m.endTask(j, i, grid.PhaseRefused)
		}
	}
	m.report(step.LevelWarn, "job_refused", j.attemptOfJob(), m.cfg.Self)
	if j.open == 0 {
		m.jobEnded(j, protocol.ClearWithdrawn)
	}
}

// waitFor arranges the next round for tasks that found no place: at once at the
// sites that have reported room meanwhile, else after a growing pause.
func (m *Machine) waitFor(j *job, r *round) {
	if r.sample < 1 && r.offers < enoughOffers {
		m.widen(j, r)
		return
	}
	for _, site := range sortedSites(j.vacant) {
		delete(j.vacant, site)
		if p, known := m.members[site]; site == m.cfg.Self || known && p.connected {
			if m.ask(j, site); j.round != nil {
				return
			}
		}
	}
	if r.complete || j.backoff == 0 {
		j.backoff = min(max(2*j.backoff, m.cfg.BackoffMin), m.cfg.BackoffMax)
	}
	pause := j.backoff/2 + time.Duration(m.rng.Float64()*float64(j.backoff)/2)
	m.setTimer(timerAgain, string(j.id), m.now.Add(pause))
}

// widen repeats a sampled round with eight times the sites.
func (m *Machine) widen(j *job, last *round) {
	r := m.openRound(j, append(m.connected(), m.cfg.Self), true)
	r.sample = min(1, 8*last.sample)
	r.complete = r.sample == 1
	m.gossip(j, m.announcement(j))
	m.startTimers(j)
}

func (m *Machine) endProbe(j *job) {
	j.open, j.waiting, j.ended = 0, nil, m.now
	m.clear(j, protocol.ClearWithdrawn)
	m.emit(step.Reply{Command: j.command, Job: j.id})
	m.setTimer(timerForget, string(j.id), m.now.Add(probeKept))
}
