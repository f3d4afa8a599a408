package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// handover holds the tasks that a strategy gives to one site.
type handover struct {
	c     *candidate
	tasks []uint32
	spec  grid.Spec
	extra int       // by how much the spec is longer than the job's, bytes
	at    time.Time // when parts start together; zero: they do not
	// runnerUp is the distance of the next best offer: a site that has become worse than that
	// may decline. Without one it has to take what it offered.
	runnerUp float64
	hasNext  bool
}

// award sends a site its tasks, in messages that keep to the limits.
func (d desk) award(h handover) {
	for _, p := range d.j.parcels(h) {
		for tasks := p.tasks; len(tasks) > 0; {
			n := d.j.fitting(tasks, p.extra)
			p.tasks = tasks[:n]
			d.sendAward(p)
			tasks = tasks[n:]
		}
	}
	comparison(d).pairUp(h.tasks)
}

// fitting counts the tasks that one award can carry.
func (j *job) fitting(indexes []uint32, extra int) int {
	n, size := 1, j.awardSize+extra+j.taskBytes(indexes[0])
	for n < len(indexes) && n < protocol.MaxAwardTasks {
		if size += j.taskBytes(indexes[n]); size > protocol.MaxMessageBytes {
			break
		}
		n++
	}
	return n
}

// taskBytes is an upper bound of what a task adds to an award.
func (j *job) taskBytes(index uint32) int {
	return itemBytes(j.item(index)) + j.tasks[index].savedBytes()
}

// itemBytes is an upper bound of what a task adds to an award.
func itemBytes(item grid.Item) int {
	size := 40 + len(item.Value) + len(item.Proof)
	for _, in := range item.Inputs {
		size += 32 + len(in.Path) + len(in.CID)
	}
	return size
}

// sendAward sends one message, and awaits the answer to it.
func (d desk) sendAward(h handover) {
	m, j, c := d.m, d.j, h.c
	msg := protocol.Award{
		Job: j.id, OfferID: c.offer.ID, Spec: h.spec, Quoted: c.quoted, RunnerUp: c.quoted,
		Clock: m.wall(),
	}
	if h.hasNext {
		msg.RunnerUp, msg.HasNext = max(c.asSeen(h.runnerUp), msg.Quoted), true
	}
	pending := award{job: j.id, site: c.offer.Site}
	for _, i := range h.tasks {
		m.awardTask(j, i, h)
		t := &j.tasks[i]
		msg.Tasks = append(msg.Tasks, protocol.AwardedTask{
			Index: i, Token: t.token, Item: j.item(i), Saved: t.offered(),
			CopyOf: j.copyOf(i),
		})
		pending.tasks = append(pending.tasks, j.attempt(i))
		m.out.Report(step.LevelInfo, eventAwarded, step.Report{
			Attempt: j.attempt(i), Site: t.site, Value: t.distance,
		})
	}
	m.peers.tries(c.offer.Site)
	first := pending.tasks[0]
	m.awards[first] = pending
	m.out.Emit(step.Send{To: c.offer.Site, Message: msg, Key: j.spec.Encryption.Key})
	m.setTimer(timerAward, first.String(), m.now.Add(m.cfg.AwardWindow))
}

// awardTask makes an offer the latest attempt of a task. Its token is durable before the
// award is sent.
func (r *run) awardTask(j *job, index uint32, h handover) {
	t, c := &j.tasks[index], h.c
	if j.traits.copies.Compares() && t.savedElsewhere(c.offer.Site) {
		r.dropSaved(j, index) // what another site has saved may be wrong already
	}
	j.seat(index)
	t.move(grid.PhaseAwarded)
	t.attempt = attempt{
		token: r.nextToken(t), site: c.offer.Site, distance: c.offer.Parts.Distance, awardedAt: r.now,
		stint: stintOf(c.offer.Parts, h.at, r.now), line: r.lines[c.offer.Site],
	}
	t.silence, t.pulling = silence{}, grid.Checkpoint{}
	if t.kept = 0; j.traits.promise {
		t.kept = 1 - c.offer.Parts.Z
	}
	r.saveTask(j, index)
}

// onAwardTimer: the response window is over. No lease was granted for attempts
// that were not accepted, so they cannot have started and move on right away.
func (m *Machine) onAwardTimer(first grid.AttemptID) {
	a, ok := m.awards[first]
	delete(m.awards, first)
	j := m.jobs.all[a.job]
	if !ok || j == nil {
		return
	}
	missed := slices.DeleteFunc(slices.Clone(a.tasks), func(id grid.AttemptID) bool {
		t := &j.tasks[id.Task.Index]
		return t.token != id.Token || !t.unanswered()
	})
	if len(missed) == 0 {
		return
	}
	m.peers.fired(j.tasks[missed[0].Task.Index].awardedAt.Add(m.cfg.AwardWindow))
	counts := m.peers.accuse(m.jobs, a.site, fault.NoAnswer) // once for all of the award
	for _, id := range missed {
		t := &j.tasks[id.Task.Index]
		if t.token == id.Token && t.unanswered() { // still: a part takes the others along
			t.blamed = counts
			m.giveUp(j, id.Task.Index, "did not answer the award")
		}
	}
	delete(j.offers, a.site)
	m.placeAgain(j)
}

// onDeclined handles a site that does not take attempts. With a worse quote it stays a
// candidate at its new distance, unless it quotes the same that it has just declined:
// that could go on forever.
func (m *Machine) onDeclined(from grid.SiteID, msg protocol.Declined) {
	var touched []*job
	requoted := msg.Quote != nil
	for _, id := range msg.Attempts {
		one := protocol.Declined{Attempts: []grid.AttemptID{id}, Refusal: msg.Refusal}
		if m.strategyKnows(from, id, one) {
			continue
		}
		j, t := m.jobs.current(from, id)
		if t == nil || !t.unanswered() {
			continue
		}
		requoted = requoted && j.decrypts(*msg.Quote) &&
			m.peers.completed(j.req, from, *msg.Quote).Parts.Distance > t.distance
		t.log("declined: "+msg.Refusal.Reason.String(), m.now)
		if j.traits.promise {
			t.remember(from) // it could not keep what it held
		}
		j.wait(id.Task.Index)
		m.saveTask(j, id.Task.Index)
		m.reportRefused(eventAwardDeclined, from, id, msg.Refusal.Reason)
		if !slices.Contains(touched, j) {
			touched = append(touched, j)
		}
	}
	for _, j := range touched {
		if !requoted {
			msg.Quote = nil
		}
		m.declinedBy(j, from, msg)
	}
}

// declinedBy keeps a site's answer to an award it does not take, and tries the other
// offers. Tasks that find no place then pause: asking again right away could go round and
// round with a site that quotes and then declines.
func (m *Machine) declinedBy(j *job, from grid.SiteID, msg protocol.Declined) {
	delete(j.offers, from)
	a := Answer{
		Site: from, Domain: m.peers.domainOf(from), Beside: m.peers.isBeside(from),
		Seq: j.seq, Refusal: msg.Refusal, At: m.now,
	}
	if msg.Quote != nil {
		offer := m.peers.completed(j.req, from, *msg.Quote)
		j.offers[from] = newCandidate(offer, msg.Quote.Parts.Distance, max(j.seq, 1), m.now)
		a.Offer = &offer
	}
	j.answers[from] = a
	j.placed = false
	if len(j.waiting) > 0 {
		j.how.unseated(desk{m, j}, j.waiting[0])
	}
	if j.round() == nil {
		m.place(j, occasion{why: declined})
	}
}
