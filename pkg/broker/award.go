package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// award is an award whose answer is awaited.
type award struct {
	job   grid.JobID
	site  grid.SiteID
	tasks []grid.AttemptID
}

// award gives the waiting tasks of a job to the standing offers (thesis 4.1,
// step 4). Tasks for which there is no room stay waiting.
func (m *Machine) award(j *job) {
	switch {
	case j.split():
		m.gather(j)
		return
	case j.promised():
		m.seek(j)
		return
	}
	standing := m.standing(j)
	if len(standing) == 0 {
		return
	}
	if j.job.Flood {
		m.flood(j, standing)
	}
	m.awardAmong(j, standing)
	if len(j.waiting) == 0 && !j.cleared {
		j.cleared = true
		m.clear(j, protocol.ClearPlaced)
	}
}

// awardAmong gives the waiting tasks to offers, in their order.
func (m *Machine) awardAmong(j *job, standing []*candidate) {
	shares := make(map[grid.SiteID][]uint32)
	for _, i := range j.waiting { // it does not change before the awards are sent
		c := m.choose(j, i, standing)
		if c == nil {
			if len(j.tasks[i].failed) == 0 {
				break // no room for anybody
			}
			continue
		}
		c.left--
		site := c.offer.Site
		shares[site] = append(shares[site], i)
	}
	for _, c := range standing {
		m.awardShare(j, c, shares[c.offer.Site], standing)
	}
}

// awardShare sends a site its tasks, in messages that keep to the limits.
func (m *Machine) awardShare(j *job, c *candidate, indexes []uint32, standing []*candidate) {
	for len(indexes) > 0 {
		n := j.fitting(indexes)
		m.sendAward(j, c, indexes[:n], standing)
		indexes = indexes[n:]
	}
}

// fitting is how many of the tasks one award can carry.
func (j *job) fitting(indexes []uint32) int {
	n, size := 1, j.awardBase+itemBytes(j.item(indexes[0]))
	for n < len(indexes) && n < protocol.MaxAwardTasks {
		if size += itemBytes(j.item(indexes[n])); size > protocol.MaxMessageBytes {
			break
		}
		n++
	}
	return n
}

// itemBytes is an upper bound of what a task adds to an award.
func itemBytes(item grid.Item) int {
	size := 32 + len(item.Value)
	for _, in := range item.Inputs {
		size += 32 + len(in.Path) + len(in.CID)
	}
	return size
}

func (m *Machine) sendAward(j *job, c *candidate, indexes []uint32, standing []*candidate) {
	msg := protocol.Award{
		Job: j.id, OfferID: c.offer.ID, Spec: m.specFor(j, c.offer.Site), Quoted: c.quoted, RunnerUp: c.quoted,
	}
	if next, has := runnerUp(standing, c.offer.Site); has && m.cfg.Requote && !j.firm() {
		msg.RunnerUp, msg.HasNext = max(c.asSeen(next), msg.Quoted), true
	}
	if j.firm() {
		j.taken[c.offer.Site] = c.offer.ID
	}
	pending := award{job: j.id, site: c.offer.Site}
	for _, i := range indexes {
		t := &j.tasks[i]
		j.place(i)
		t.phase, t.site, t.distance, t.awardedAt = grid.PhaseAwarded, c.offer.Site, c.offer.Parts.Distance, m.now
		t.token = t.nextToken()
		t.silent, t.away = false, timeZero
		t.leaseEnd, t.startedAt, t.startsAt, t.done, t.total = timeZero, timeZero, timeZero, 0, 0
		t.pledge(j, c)
		m.saveTask(j, i)
		msg.Tasks = append(msg.Tasks, protocol.AwardedTask{Index: i, Token: t.token, Item: j.item(i)})
		pending.tasks = append(pending.tasks, j.attempt(i))
		m.out.Emit(step.Report{
			Event: "awarded", Level: step.LevelInfo, Attempt: j.attempt(i), Site: t.site, Value: t.distance,
		})
	}
	first := pending.tasks[0]
	m.awards[first] = pending
	m.out.Send(c.offer.Site, msg)
	m.out.SetTimer(timerAward, first.String(), m.now.Add(m.cfg.AwardWindow))
}

// awardMissed: the response window is over. No lease was granted for attempts
// that were not accepted, so they cannot have started and move on at once.
func (m *Machine) awardMissed(first grid.AttemptID) {
	a, ok := m.awards[first]
	delete(m.awards, first)
	j := m.jobs[a.job]
	if !ok || j == nil {
		return
	}
	missed := false
	for _, id := range a.tasks {
		t := &j.tasks[id.Task.Index]
		if t.token == id.Token && t.phase == grid.PhaseAwarded && t.leaseEnd.IsZero() {
			missed = true
			m.lost(j, id.Task.Index, "did not answer the award")
		}
	}
	if missed {
		delete(j.offers, a.site)
		m.blame(a.site)
		m.placeWaiting(j)
	}
}

// declined: the site does not take attempts; with a worse quote it stays a
// candidate at its new distance. One that quotes what it has just declined does
// not: it could go on for ever.
func (m *Machine) declined(from grid.SiteID, msg protocol.Declined) {
	var touched []*job
	requoted := msg.Quote != nil
	for _, id := range msg.Attempts {
		if m.rivalDeclined(from, id, msg.Refusal) {
			continue
		}
		j, t := m.current(from, id)
		if t == nil || t.phase != grid.PhaseAwarded || !t.leaseEnd.IsZero() {
			continue
		}
		requoted = requoted && m.completed(j, from, *msg.Quote).Parts.Distance > t.distance
		t.log("declined: "+msg.Refusal.Reason.String(), m.now)
		if j.promised() {
			t.remember(from) // it could not keep what it held
		}
		j.wait(id.Task.Index)
		m.saveTask(j, id.Task.Index)
		m.refusedMessage("award_declined", from, id, msg.Refusal.Reason)
		if !slices.Contains(touched, j) {
			touched = append(touched, j)
		}
	}
	for _, j := range touched {
		delete(j.offers, from)
		a := Answer{Site: from, Seq: j.seq, Refusal: msg.Refusal, At: m.now}
		if requoted {
			offer := m.completed(j, from, *msg.Quote)
			j.offers[from] = m.candidate(offer, msg.Quote.Parts.Distance)
			j.offers[from].seq = max(j.seq, 1)
			a.Offer = &offer
		}
		j.answers[from] = a
		j.cleared = false
		m.regroup(j)
		m.placeDeclined(j)
	}
}

// placeDeclined tries the other offers, and else pauses: asking again at once
// could go round and round with a site that quotes what it then declines.
func (m *Machine) placeDeclined(j *job) {
	if j.round != nil {
		return
	}
	m.award(j)
	switch {
	case len(j.waiting) == 0 || j.hold != nil:
	case j.promised():
		m.nobodyHolds(j)
	default:
		m.waitFor(j, &round{sample: 1})
	}
}

// current finds the job and task of an attempt if it is the task's latest and
// its site is the one that speaks; otherwise, and while several sites queue the task,
// both are nil.
func (m *Machine) current(from grid.SiteID, id grid.AttemptID) (*job, *task) {
	j, ok := m.jobs[id.Task.Job]
	if !ok || j.probe || id.Task.Index >= uint32(len(j.tasks)) {
		return nil, nil
	}
	t := &j.tasks[id.Task.Index]
	if t.token != id.Token || t.site != from || len(t.rivals) > 0 {
		return nil, nil
	}
	return j, t
}
