package broker

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerRivals looks whether the sites that queue a task are there; ID is the task.
const timerRivals = "rivals"

const (
	// floodWidth is to how many sites a task is dispatched: "to the top three sites
	// from the candidate list" (Migol 6.2.2).
	floodWidth = 3
	// rivalCheck is the time between two looks.
	rivalCheck = 10 * time.Second
)

// rival is an attempt of a task that several sites queue at the same time. None of
// them holds a lease, so that any of them can be given up at any time. The first
// that asks becomes the task's attempt, and the others are fenced off.
type rival struct {
	token    grid.Token
	site     grid.SiteID
	offer    uint64 // that it took
	quoted   float64
	distance float64
	accepted bool // its site said so to this run
}

type rivalFact struct {
	Token    grid.Token  `json:"token"`
	Site     grid.SiteID `json:"site"`
	Offer    uint64      `json:"offer"`
	Quoted   float64     `json:"quoted"`
	Distance float64     `json:"distance"`
}

func (t *task) rivalFacts() []rivalFact {
	var facts []rivalFact
	for _, r := range t.rivals {
		facts = append(facts, rivalFact{Token: r.token, Site: r.site, Offer: r.offer, Quoted: r.quoted, Distance: r.distance})
	}
	return facts
}

func rivalsOf(facts []rivalFact) []rival {
	var rivals []rival
	for _, f := range facts {
		rivals = append(rivals, rival{token: f.Token, site: f.Site, offer: f.Offer, quoted: f.Quoted, distance: f.Distance})
	}
	return rivals
}

// nextToken is above all that were ever given out for the task.
func (t *task) nextToken() grid.Token { return max(t.token, t.top) + 1 }

// stand makes one of its rivals stand for the task: its token is the one below
// which attempts are fenced off, its site the one that is shown.
func (t *task) stand(r rival) { t.token, t.site, t.distance = r.token, r.site, r.distance }

// flood dispatches the waiting tasks of a job that several of the offers could take
// to the nearest of these. What only one could take is awarded as always.
func (m *Machine) flood(j *job, standing []*candidate) {
	shares := make(map[grid.SiteID][]uint32)
	for _, i := range slices.Clone(j.waiting) {
		picked := m.pickRivals(&j.tasks[i], standing)
		if len(picked) < 2 {
			continue
		}
		m.makeRivals(j, i, picked)
		for _, c := range picked {
			c.left--
			shares[c.offer.Site] = append(shares[c.offer.Site], i)
		}
	}
	for _, c := range standing {
		for indexes := shares[c.offer.Site]; len(indexes) > 0; {
			n := j.fitting(indexes)
			m.out.Send(c.offer.Site, m.rivalAward(j, c.offer.Site, indexes[:n]))
			indexes = indexes[n:]
		}
	}
}

// pickRivals finds the nearest sites for a task, by the rules of choose: none that
// failed it, and after a silence none that has not offered since.
func (m *Machine) pickRivals(t *task, standing []*candidate) []*candidate {
	if t.silent && m.now.Before(m.reunion) {
		return nil
	}
	var picked []*candidate
	for _, c := range standing {
		if c.left == 0 || !c.at.After(t.away) || slices.Contains(t.failed, c.offer.Site) {
			continue
		}
		if picked = append(picked, c); len(picked) == floodWidth {
			break
		}
	}
	return picked
}

// makeRivals turns offers into attempts of one task. All of them are durable before
// the first is sent.
func (m *Machine) makeRivals(j *job, index uint32, picked []*candidate) {
	t := &j.tasks[index]
	j.place(index)
	t.phase, t.awardedAt, t.silent, t.away = grid.PhaseAwarded, m.now, false, timeZero
	t.leaseEnd, t.startedAt, t.done, t.total = timeZero, timeZero, 0, 0
	t.rivals = nil
	for _, c := range picked {
		t.top = t.nextToken()
		t.rivals = append(t.rivals, rival{
			token: t.top, site: c.offer.Site, offer: c.offer.ID, quoted: c.quoted, distance: c.offer.Parts.Distance,
		})
		m.out.Emit(step.Report{
			Event: "awarded_rival", Level: step.LevelInfo, Attempt: grid.AttemptID{Task: j.taskID(index), Token: t.top},
			Site: c.offer.Site, Value: c.offer.Parts.Distance,
		})
	}
	t.stand(t.rivals[0])
	m.saveTask(j, index)
	m.out.SetTimer(timerRivals, j.taskID(index).String(), m.now.Add(m.cfg.AwardWindow))
}

// rivalAward is what one of the sites is sent.
func (m *Machine) rivalAward(j *job, site grid.SiteID, indexes []uint32) protocol.Award {
	msg := protocol.Award{Job: j.id, Spec: j.job.Spec, AskFirst: true}
	for _, i := range indexes {
		t := &j.tasks[i]
		r := t.rivals[slices.IndexFunc(t.rivals, func(r rival) bool { return r.site == site })]
		msg.OfferID, msg.Quoted, msg.RunnerUp = r.offer, r.quoted, r.quoted
		msg.Tasks = append(msg.Tasks, protocol.AwardedTask{Index: i, Token: r.token, Item: j.item(i)})
	}
	return msg
}

// rivalOf finds the job, the task and the place among its rivals of an attempt, if
// it is one of them and its site is the one that speaks.
func (m *Machine) rivalOf(from grid.SiteID, id grid.AttemptID) (*job, *task, int) {
	j, ok := m.jobs[id.Task.Job]
	if !ok || id.Task.Index >= uint32(len(j.tasks)) {
		return nil, nil, -1
	}
	t := &j.tasks[id.Task.Index]
	at := slices.IndexFunc(t.rivals, func(r rival) bool { return r.token == id.Token && r.site == from })
	return j, t, at
}

// withoutRivals takes note that sites have accepted rivals, and gives the other
// attempts: a rival gets no lease before it asks whether it may start.
func (m *Machine) withoutRivals(from grid.SiteID, attempts []grid.AttemptID) []grid.AttemptID {
	var others []grid.AttemptID
	for _, id := range attempts {
		j, t, at := m.rivalOf(from, id)
		if at < 0 {
			others = append(others, id)
			continue
		}
		if !t.rivals[at].accepted {
			t.rivals[at].accepted = true
			m.report(step.LevelInfo, "accepted", id, from)
		}
		t.phase, j.backoff = grid.PhaseStaging, 0
	}
	return others
}

// mayStart lets exactly one of a task's rivals start: the first that asks. "When one
// of these jobs gets active, all other jobs are cancelled" (Migol 6.2.2). That is
// durable before the lease is sent; whoever asks later is fenced off.
func (m *Machine) mayStart(from grid.SiteID, msg protocol.MayStart) {
	for _, id := range msg.Attempts {
		if j, t, at := m.rivalOf(from, id); at >= 0 {
			m.letStart(j, t, id, at)
		}
	}
	m.renew(from, msg.Renewal, msg.Attempts)
}

func (m *Machine) letStart(j *job, t *task, id grid.AttemptID, at int) {
	rivals := t.rivals
	t.rivals = nil
	t.stand(rivals[at])
	t.phase, j.backoff = grid.PhaseStaging, 0
	m.saveTask(j, id.Task.Index)
	m.out.StopTimer(timerRivals, id.Task.String())
	m.report(step.LevelInfo, "rival_starts", id, t.site)
	for i, r := range rivals {
		if i != at {
			m.fenceRivals(r.site, id.Task, t.top)
		}
	}
}

// fenceRivals stops what a site has of a task up to a token.
func (m *Machine) fenceRivals(site grid.SiteID, id grid.TaskID, upTo grid.Token) {
	m.out.Send(site, protocol.Fence{Below: []grid.AttemptID{{Task: id, Token: max(upTo, upTo+1)}}})
}

// dropRival takes one of its rivals from a task. Without any the task waits for
// another site; it is the caller who places it then.
func (m *Machine) dropRival(j *job, index uint32, at int, why string) {
	t := &j.tasks[index]
	r := t.rivals[at]
	t.stand(r)
	t.log(why, m.now)
	m.out.Emit(step.Report{
		Event: "rival_lost", Level: step.LevelWarn, Attempt: j.attempt(index), Site: r.site, Text: why,
	})
	if t.rivals = slices.Delete(t.rivals, at, at+1); len(t.rivals) > 0 {
		t.stand(t.rivals[0])
		m.saveTask(j, index)
		return
	}
	t.rivals = nil
	t.token = t.top // so that none of them is the task's attempt
	m.out.StopTimer(timerRivals, j.taskID(index).String())
	m.requeue(j, index)
}

// faultOf counts against a site, and the task, that a rival came to nothing there.
func (m *Machine) faultOf(j *job, t *task, site grid.SiteID) {
	t.failures++
	t.remember(site)
	delete(j.offers, site)
	m.blame(site)
}

// rivalsTimer drops the rivals whose sites have not answered the award, or are away.
// They hold no lease: should one come back, and ask, it is told to stop.
func (m *Machine) rivalsTimer(id grid.TaskID) {
	j, ok := m.jobs[id.Job]
	if !ok || id.Index >= uint32(len(j.tasks)) || len(j.tasks[id.Index].rivals) == 0 {
		return
	}
	t := &j.tasks[id.Index]
	for at, r := range slices.Backward(t.rivals) {
		p, known := m.members[r.site]
		switch {
		case r.site != m.cfg.Self && (!known || !p.connected):
			m.dropRival(j, id.Index, at, "its site is away")
		case !r.accepted:
			m.faultOf(j, t, r.site)
			m.dropRival(j, id.Index, at, "did not answer the award")
		default:
			continue
		}
		m.fenceRivals(r.site, id, r.token)
	}
	if len(t.rivals) > 0 {
		m.out.SetTimer(timerRivals, id.String(), m.now.Add(rivalCheck))
		return
	}
	m.placeWaiting(j)
}

// rivalsDied drops the rivals of a dead site.
func (m *Machine) rivalsDied(j *job, site grid.SiteID) {
	for i := range j.tasks {
		at := slices.IndexFunc(j.tasks[i].rivals, func(r rival) bool { return r.site == site })
		if at >= 0 {
			m.dropRival(j, uint32(i), at, "its site died")
		}
	}
}

// rivalDeclined takes note that a site does not queue a task, and reports whether
// the attempt was a rival.
func (m *Machine) rivalDeclined(from grid.SiteID, id grid.AttemptID, refusal grid.Refusal) bool {
	j, t, at := m.rivalOf(from, id)
	if at < 0 {
		return false
	}
	m.refusedMessage("award_declined", from, id, refusal.Reason)
	delete(j.offers, from)
	j.answers[from] = Answer{Site: from, Seq: j.seq, Refusal: refusal, At: m.now}
	m.dropRival(j, id.Task.Index, at, "declined: "+refusal.Reason.String())
	if len(t.rivals) == 0 {
		m.placeDeclined(j)
	}
	return true
}

// rivalExited takes the end of a rival, which cannot have run, and reports whether
// it was one.
func (m *Machine) rivalExited(from grid.SiteID, msg protocol.Exited) bool {
	j, t, at := m.rivalOf(from, msg.Attempt)
	if at < 0 {
		return false
	}
	if t.remember(from); msg.Exit.Cause != grid.CauseStopped {
		m.faultOf(j, t, from)
	}
	m.dropRival(j, msg.Attempt.Task.Index, at, msg.Exit.Cause.String()+": "+msg.Exit.Text)
	m.out.Send(from, protocol.ExitAck{Attempts: []grid.AttemptID{msg.Attempt}})
	if len(t.rivals) == 0 {
		m.placeWaiting(j)
	}
	return true
}

// cancelRivals calls a task off at all sites that queue it.
func (m *Machine) cancelRivals(j *job, index uint32, told map[grid.SiteID]bool) {
	t := &j.tasks[index]
	for _, r := range t.rivals {
		if !told[r.site] {
			told[r.site] = true
			m.out.Send(r.site, protocol.Cancel{Job: j.id})
		}
	}
	if len(t.rivals) > 0 {
		m.out.StopTimer(timerRivals, j.taskID(index).String())
	}
	t.rivals = nil
}

// resumeRivals takes up a task that was dispatched to several sites by an earlier
// run. Whether they have it, and had received it at all, they are asked by sending
// the same award again as soon as they are there.
func (m *Machine) resumeRivals(j *job, index uint32) {
	m.out.SetTimer(timerRivals, j.taskID(index).String(), m.now.Add(m.cfg.BootGrace+rivalCheck))
	m.awardAgain(j, index, m.cfg.Self)
}

// awardAgain repeats the awards that a site which is there now has not answered.
func (m *Machine) awardAgain(j *job, index uint32, site grid.SiteID) {
	for _, r := range j.tasks[index].rivals {
		if r.site == site && !r.accepted {
			m.out.Send(site, m.rivalAward(j, site, []uint32{index}))
		}
	}
}

// rivalSeen repeats all unanswered awards to a site that has come.
func (m *Machine) rivalSeen(site grid.SiteID) {
	for _, id := range m.jobIDs() {
		j := m.jobs[id]
		if !j.job.Flood || j.open == 0 {
			continue
		}
		for i := range j.tasks {
			m.awardAgain(j, uint32(i), site)
		}
	}
}

// checkRivals verifies that rivals are apart, in order and without a lease.
func (t *task) checkRivals(index int) error {
	if len(t.rivals) == 0 {
		return nil
	}
	if t.phase != grid.PhaseAwarded && t.phase != grid.PhaseStaging || !t.leaseEnd.IsZero() {
		return fmt.Errorf("task %d is %s, or has a lease, and %d sites queue it", index, t.phase, len(t.rivals))
	}
	for i, r := range t.rivals {
		apart := !slices.ContainsFunc(t.rivals[:i], func(o rival) bool { return o.site == r.site || o.token >= r.token })
		if !apart || r.token > t.top || r.site == "" {
			return fmt.Errorf("task %d: rival %d is out of order: %+v", index, i, t.rivals)
		}
	}
	if t.token != t.rivals[0].token || t.site != t.rivals[0].site {
		return fmt.Errorf("task %d: %d at %s stands for its rivals %+v", index, t.token, t.site, t.rivals)
	}
	return nil
}

func (t *task) shownRivals() []Rival {
	var shown []Rival
	for _, r := range t.rivals {
		shown = append(shown, Rival{Site: r.site, Token: r.token, Distance: r.distance})
	}
	return shown
}

// Rival is one of several sites that queue the same task: the first whose turn it is
// runs it (Migol 6.2.2).
type Rival struct {
	Site     grid.SiteID
	Token    grid.Token
	Distance float64
}
