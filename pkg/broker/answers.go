package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// onBid takes an offer (thesis 4.1, step 3). A late one is kept, too: the site
// stands by it until it expires.
func (m *Machine) onBid(from grid.SiteID, msg protocol.Bid) {
	j, ok := m.enquiry(msg.Job)
	if !ok || j.open == 0 || msg.Seq > j.seq {
		if ok && j.open == 0 && msg.Offer.Firm {
			m.herald.release(j, from, protocol.ClearEnded)
		}
		about := grid.AttemptID{Task: grid.TaskID{Job: msg.Job}}
		m.reportRefused(eventBidUnexpected, from, about, grid.ReasonInvalid)
		return
	}
	if j.req.Saves && m.peers.savesNothing(from) {
		never := grid.Refusal{Reason: grid.ReasonWhole, Never: true}
		m.onRefuse(from, protocol.Refuse{Job: msg.Job, Seq: msg.Seq, Refusal: never})
		return
	}
	if !j.decrypts(msg.Offer) {
		never := grid.Refusal{Reason: grid.ReasonEncrypted, Never: true}
		m.onRefuse(from, protocol.Refuse{Job: msg.Job, Seq: msg.Seq, Refusal: never})
		return
	}
	hearAnswer(m, j, from, msg.Seq)
	m.peers.growSpace(from)
	if j.how.answered(desk{m, j}, from, msg) || j.overtaken(from, msg.Seq) {
		return
	}
	offer := m.peers.completed(j.req, from, msg.Offer)
	c := newCandidate(offer, msg.Offer.Parts.Distance, msg.Seq, m.now)
	c.abroad = m.peers.domainOf(from) != ""
	if old, had := j.offers[from]; !had || offer.ID > old.offer.ID {
		j.offers[from] = c
	}
	j.offered = true
	m.take(j, Answer{Site: from, Seq: msg.Seq, Offer: &c.offer, At: m.now})
}

// hearAnswer notes that a site has answered an announcement. Chance draws members: neighbours do not
// count among those that answer.
func hearAnswer(m *Machine, j *job, from grid.SiteID, seq uint32) {
	m.peers.answered(from)
	if m.peers.domainOf(from) == "" {
		m.near.tally.hear(j.pollOf(seq))
	}
}

// onRefuse takes it that a site cannot take the job, and why.
func (m *Machine) onRefuse(from grid.SiteID, msg protocol.Refuse) {
	j, ok := m.enquiry(msg.Job)
	if !ok || j.open == 0 || msg.Seq > j.seq {
		return
	}
	hearAnswer(m, j, from, msg.Seq)
	if j.overtaken(from, msg.Seq) || j.how.answered(desk{m, j}, from, msg) {
		return
	}
	delete(j.offers, from)
	m.peers.noteSpace(j, from, msg)
	m.take(j, Answer{Site: from, Seq: msg.Seq, Refusal: msg.Refusal, At: m.now})
}

// take counts an answer to the announcement under way. Without one, an offer is used
// right away, and tasks that it does not place are announced again after their pause.
func (m *Machine) take(j *job, a Answer) {
	a.Domain, a.Beside = m.peers.domainOf(a.Site), m.peers.isBeside(a.Site)
	j.note(a)
	r := j.round()
	if r == nil {
		switch {
		case a.Offer == nil:
		case m.jobs.isAsking(j):
			m.place(j, occasion{why: lateOffer})
		case j.placed && j.inPart: // it had not answered when those that had were told
			m.herald.release(j, a.Site, protocol.ClearPlaced)
		}
		return
	}
	r.heard = r.heard || a.Site != m.cfg.Here && a.Domain == ""
	if a.Seq < r.first {
		return
	}
	r.enter(a)
	m.closeIfComplete(j)
}

// closeIfComplete ends a round before its TTL when nobody else is expected to answer. With enough
// offers a sampled one ends after as long again as they took: the nearest site is not the first to
// answer.
func (m *Machine) closeIfComplete(j *job) {
	r := j.round()
	if r == nil {
		return
	}
	for _, site := range r.unseen {
		if !m.peers.reachable(site) {
			r.settle(site)
		}
	}
	r.unseen = nil
	switch took := m.now.Sub(r.opened); {
	case r.awaits:
	case r.pending == 0 || r.enough() && took == 0:
		m.closeRound(j)
	case r.enough() && !r.closing && took < j.spec.TTL/2:
		r.closing = true
		m.setTimer(timerRound, string(j.id), m.now.Add(took))
	}
}

// closeRound ends a round, when its TTL is over or nobody else is expected to answer: it
// awards what the offers allow, refuses a job that can never be placed, and
// lets the rest be asked for again.
func (m *Machine) closeRound(j *job) {
	r := j.round()
	if r == nil {
		return
	}
	j.enter(nil)
	m.stopTimer(timerRound, string(j.id))
	m.stopTimer(timerExplain, string(j.id))
	m.peers.noteSilence(r)
	if len(r.later) > 0 && m.herald.askLater(j, r) {
		return
	}
	next := m.near.look(j, r, m.cfg.ReplyTarget, m.now)
	if next.part == 0 {
		m.herald.endSearch(j)
	}
	if p, is := m.probes[j.id]; is {
		if len(m.peers.standing(j)) == 0 && m.herald.asksAbroad(j, r, false) {
			return
		}
		m.herald.endProbe(p)
		m.border.probed(j)
		if p.seeks != "" {
			m.moves.found(p)
		}
		return
	}
	if !m.peers.admits(j) {
		m.refuseJob(j)
		return
	}
	switch {
	case m.hopeless(j):
	case r.abroad:
		closeAbroad(m, j, r)
	case r.awaits:
		m.herald.announceNow(j)
	case next.part > 0:
		m.herald.search(j, r, next)
	default:
		m.place(j, occasion{why: roundOver, round: r})
	}
}
