package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// bid takes an offer (thesis 4.1, step 3). A late one is kept, too: the site
// stands by it until it expires.
func (m *Machine) bid(from grid.SiteID, msg protocol.Bid) {
	j, ok := m.jobs[msg.Job]
	if !ok || j.open == 0 || msg.Seq > j.seq {
		if ok && j.open == 0 && msg.Offer.Firm {
			m.out.Send(from, protocol.Clear{Job: j.id, Submitter: m.cfg.Self, Kind: protocol.ClearEnded})
		}
		m.refusedMessage("bid_unexpected", from, grid.AttemptID{Task: grid.TaskID{Job: msg.Job}}, grid.ReasonInvalid)
		return
	}
	if p, known := m.members[from]; known {
		p.answers, p.silentTill = true, timeZero
	}
	if m.firmBid(j, from, msg) {
		return
	}
	if last, has := j.answers[from]; has && last.Seq > msg.Seq {
		return // overtaken by an answer to a later announcement
	}
	offer := m.completed(j, from, msg.Offer)
	if old, had := j.offers[from]; !had || offer.ID > old.offer.ID {
		j.offers[from] = m.candidate(offer, msg.Offer.Parts.Distance)
		j.offers[from].seq = msg.Seq
	}
	j.bid = true
	m.answered(j, Answer{Site: from, Seq: msg.Seq, Offer: &offer, At: m.now})
}

func (m *Machine) refuse(from grid.SiteID, msg protocol.Refuse) {
	j, ok := m.jobs[msg.Job]
	if !ok || j.open == 0 || msg.Seq > j.seq {
		return
	}
	if p, known := m.members[from]; known {
		p.answers, p.silentTill = true, timeZero
	}
	if last, has := j.answers[from]; has && last.Seq > msg.Seq {
		return // overtaken by an answer to a later announcement
	}
	if m.holdRefused(j, from, msg) {
		return
	}
	delete(j.offers, from)
	m.answered(j, Answer{Site: from, Seq: msg.Seq, Refusal: msg.Refusal, At: m.now})
}

// note keeps an answer for `why`.
func (m *Machine) note(j *job, a Answer) {
	if _, known := j.answers[a.Site]; known || len(j.answers) < maxAnswers {
		j.answers[a.Site] = a
	}
}
