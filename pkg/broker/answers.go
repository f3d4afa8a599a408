package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Answer is what a site last said to a job.
type Answer struct {
	Site    grid.SiteID
	Seq     uint32       // of the announcement
	Offer   *grid.Offer  // nil when it refused
	Refusal grid.Refusal // when it refused
	At      time.Time
}

func (a Answer) neverFits() bool { return a.Offer == nil && a.Refusal.Never }

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
	m.peers.answered(from)
	if j.how.answered(desk{m, j}, from, msg) || j.overtaken(from, msg.Seq) {
		return
	}
	offer := m.peers.completed(j.req, from, msg.Offer)
	if old, had := j.offers[from]; !had || offer.ID > old.offer.ID {
		j.offers[from] = newCandidate(offer, msg.Offer.Parts.Distance, msg.Seq, m.now)
	}
	j.offered = true
	m.take(j, Answer{Site: from, Seq: msg.Seq, Offer: &offer, At: m.now})
}

// onRefuse takes it that a site cannot take the job, and why.
func (m *Machine) onRefuse(from grid.SiteID, msg protocol.Refuse) {
	j, ok := m.enquiry(msg.Job)
	if !ok || j.open == 0 || msg.Seq > j.seq {
		return
	}
	m.peers.answered(from)
	if j.overtaken(from, msg.Seq) || j.how.answered(desk{m, j}, from, msg) {
		return
	}
	delete(j.offers, from)
	m.take(j, Answer{Site: from, Seq: msg.Seq, Refusal: msg.Refusal, At: m.now})
}

// take counts an answer to the announcement under way. Without one an offer is used at
// once, and what it does not place is announced again when its pause is over.
func (m *Machine) take(j *job, a Answer) {
	j.note(a)
	r := j.round()
	if r == nil {
		if a.Offer != nil && m.jobs.isAsking(j) {
			m.place(j, occasion{why: lateOffer})
		}
		return
	}
	r.heard = r.heard || a.Site != m.cfg.Here
	if a.Seq < r.first {
		return
	}
	r.enter(a)
	m.closeIfComplete(j)
}
