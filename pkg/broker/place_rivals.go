package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// rivals dispatches a task to several sites, of which the first whose turn comes runs it
// (Migol 6.2.2). What only one could take is awarded as by nearest. What it knows stands in
// the tasks, because it must outlive a restart.
type rivals struct{ nearest }

const (
	// floodWidth is to how many sites a task is dispatched: "to the top three sites
	// from the candidate list" (Migol 6.2.2).
	floodWidth = 3
	// rivalCheck is the time between two looks at them.
	rivalCheck = 10 * time.Second
)

func (s *rivals) place(d desk, on occasion) verdict {
	return s.placeSome(d, on, func(tasks []uint32, standing []*candidate) {
		s.flood(d, tasks, standing)
		rest := slices.DeleteFunc(tasks, func(i uint32) bool { return !d.j.tasks[i].isWaiting() })
		s.awardAmong(d, rest, standing, d.cfg().Requote)
	})
}

func (s *rivals) answered(d desk, from grid.SiteID, msg protocol.Message) bool {
	switch msg := msg.(type) {
	case protocol.Accepted:
		return s.accepted(d, from, msg.Attempts[0])
	case protocol.MayStart:
		return s.letStart(d, from, msg.Attempts[0])
	case protocol.Declined:
		return s.declined(d, from, msg.Attempts[0], msg.Refusal)
	case protocol.Exited:
		return s.exited(d, from, msg)
	default:
		return false
	}
}

func (s *rivals) woken(d desk, w wake) {
	switch w.why {
	case wakeResumed:
		s.resume(d, w.index)
	case wakeRivals:
		s.lookAfter(d, w.index)
	case wakeSiteRefuses:
		s.refused(d, w.site)
	case wakeSiteSeen:
		for i := range d.j.tasks {
			s.awardAgain(d, uint32(i), w.site)
		}
	default:
		s.nearest.woken(d, w)
	}
}

// flood dispatches the waiting tasks of a job that several of the offers could take
// to the nearest of these.
func (s *rivals) flood(d desk, tasks []uint32, standing []*candidate) {
	shares := make(map[grid.SiteID][]uint32)
	for _, i := range tasks {
		picked := s.pick(d, &d.j.tasks[i], standing)
		if len(picked) < 2 {
			continue
		}
		s.dispatch(d, i, picked)
		for _, c := range picked {
			c.left--
			shares[c.offer.Site] = append(shares[c.offer.Site], i)
		}
	}
	for _, c := range standing {
		for indexes := shares[c.offer.Site]; len(indexes) > 0; {
			n := d.j.fitting(indexes, 0)
			d.send(c.offer.Site, s.awardTo(d, c.offer.Site, indexes[:n]))
			indexes = indexes[n:]
		}
	}
}

// pick finds the nearest sites for a task, by the rules of choose: none that
// failed it, and after a silence none that has not offered since.
func (s *rivals) pick(d desk, t *task, standing []*candidate) []*candidate {
	if t.silent && d.reuniting() || t.isResting(d.now()) {
		return nil
	}
	var picked []*candidate
	for _, c := range standing {
		if c.left == 0 || !c.at.After(t.away) || t.failedAt(c.offer.Site) {
			continue
		}
		if picked = append(picked, c); len(picked) == floodWidth {
			break
		}
	}
	return picked
}

// dispatch turns offers into attempts of one task. All of them are durable before
// the first is sent.
func (s *rivals) dispatch(d desk, index uint32, picked []*candidate) {
	t := &d.j.tasks[index]
	d.j.seat(index)
	t.move(grid.PhaseAwarded)
	t.silence, t.rivals, t.pulling = silence{}, nil, grid.Checkpoint{}
	t.awardedAt, t.leaseEnd, t.startedAt, t.done, t.total = d.now(), timeZero, timeZero, 0, 0
	t.stint = stint{}
	for _, c := range picked {
		t.top = d.nextToken(t)
		t.rivals = append(t.rivals, rival{
			token: t.top, site: c.offer.Site, offer: c.offer.ID, quoted: c.quoted,
			distance: c.offer.Parts.Distance, stint: stintOf(c.offer.Parts, timeZero, d.now()),
		})
		d.report(step.LevelInfo, eventAwardedRival, step.Report{
			Attempt: grid.AttemptID{Task: d.j.taskID(index), Token: t.top},
			Site:    c.offer.Site, Value: c.offer.Parts.Distance,
		})
	}
	t.stand(t.rivals[0])
	d.save(index)
	d.setTimer(timerRivals, d.j.taskID(index).String(), d.now().Add(d.cfg().AwardWindow))
}

// awardTo makes the award that is sent to one of the sites.
func (s *rivals) awardTo(d desk, site grid.SiteID, indexes []uint32) protocol.Award {
	msg := protocol.Award{Job: d.j.id, Spec: d.j.spec.Spec, AskFirst: true, Clock: d.wall()}
	for _, i := range indexes {
		t := &d.j.tasks[i]
		r := t.rivals[slices.IndexFunc(t.rivals, func(r rival) bool { return r.site == site })]
		msg.OfferID, msg.Quoted, msg.RunnerUp = r.offer, r.quoted, r.quoted
		msg.Tasks = append(msg.Tasks, protocol.AwardedTask{
			Index: i, Token: r.token, Item: d.j.item(i), Saved: t.offered(),
		})
	}
	return msg
}

// find is the task of an attempt and its place among the rivals; -1: it is none.
func (s *rivals) find(d desk, from grid.SiteID, id grid.AttemptID) (*task, int) {
	t := &d.j.tasks[id.Task.Index]
	return t, t.rivalAt(from, id.Token)
}

// accepted takes note that a site has accepted a rival. It gets no lease before it asks
// whether it may start.
func (s *rivals) accepted(d desk, from grid.SiteID, id grid.AttemptID) bool {
	t, at := s.find(d, from, id)
	if at < 0 {
		return false
	}
	if !t.rivals[at].accepted {
		t.rivals[at].accepted = true
		d.report(step.LevelInfo, eventAccepted, step.Report{Attempt: id, Site: from})
	}
	t.move(grid.PhaseStaging)
	d.j.pause = 0
	return true
}

// letStart lets exactly one of a task's rivals start: the first that asks. "When one
// of these jobs gets active, all other jobs are cancelled" (Migol 6.2.2). That is
// durable before the lease is sent; later requests are fenced off.
func (s *rivals) letStart(d desk, from grid.SiteID, id grid.AttemptID) bool {
	t, at := s.find(d, from, id)
	if at < 0 {
		return false
	}
	all := t.rivals
	t.rivals = nil
	t.stand(all[at])
	t.stint = all[at].stint
	t.move(grid.PhaseStaging)
	d.j.pause = 0
	d.save(id.Task.Index)
	d.stopTimer(timerRivals, id.Task.String())
	d.report(step.LevelInfo, eventRivalStarts, step.Report{Attempt: id, Site: t.site})
	for i, r := range all {
		if i != at {
			d.fence(r.site, []grid.AttemptID{above(id.Task, t.top)})
		}
	}
	return true
}

// declined takes note that a site does not queue a task.
func (s *rivals) declined(d desk, from grid.SiteID, id grid.AttemptID, refusal grid.Refusal) bool {
	t, at := s.find(d, from, id)
	if at < 0 {
		return false
	}
	d.reportRefused(eventAwardDeclined, from, id, refusal.Reason)
	delete(d.j.offers, from)
	d.j.answers[from] = Answer{Site: from, Seq: d.j.seq, Refusal: refusal, At: d.now()}
	s.drop(d, id.Task.Index, at, "declined: "+refusal.Reason.String())
	if !t.queued() && d.j.round() == nil {
		d.place(occasion{why: declined})
	}
	return true
}

// exited takes the end of a rival, which cannot have run.
func (s *rivals) exited(d desk, from grid.SiteID, msg protocol.Exited) bool {
	t, at := s.find(d, from, msg.Attempt)
	if at < 0 {
		return false
	}
	if t.remember(from); msg.Exit.Cause != grid.CauseStopped {
		s.blame(d, t, from, faultOf(msg.Exit.Cause))
	}
	s.drop(d, msg.Attempt.Task.Index, at, msg.Exit.Cause.String()+": "+msg.Exit.Text)
	d.acknowledge(from, msg.Attempt)
	if !t.queued() {
		d.placeAgain()
	}
	return true
}

// drop takes one of its rivals from a task. Without any the task waits for
// another site; it is the caller who places it then.
func (s *rivals) drop(d desk, index uint32, at int, why string) {
	t := &d.j.tasks[index]
	r := t.rivals[at]
	t.stand(r)
	t.log(why, d.now())
	d.report(step.LevelWarn, eventRivalLost, step.Report{
		Attempt: d.j.attempt(index), Site: r.site, Text: why,
	})
	if t.rivals = slices.Delete(t.rivals, at, at+1); t.queued() {
		t.stand(t.rivals[0])
		d.save(index)
		return
	}
	t.rivals = nil
	t.token = t.top // so that none of them is the task's attempt
	d.stopTimer(timerRivals, d.j.taskID(index).String())
	d.requeue(index)
}

// blame counts against a site that a rival came to nothing there.
func (s *rivals) blame(d desk, t *task, site grid.SiteID, cause fault.Cause) {
	t.remember(site)
	delete(d.j.offers, site)
	d.blame(site, cause)
}

// lookAfter drops the rivals whose sites have not answered the award, or are away.
// They hold no lease: should one come back, and ask, it is told to stop.
func (s *rivals) lookAfter(d desk, index uint32) {
	t, id := &d.j.tasks[index], d.j.taskID(index)
	for at, r := range slices.Backward(t.rivals) {
		switch {
		case !d.reachable(r.site):
			s.drop(d, index, at, "its site is away")
		case !r.accepted:
			s.blame(d, t, r.site, fault.NoAnswer)
			s.drop(d, index, at, "did not answer the award")
		case d.isLate(index, r):
			s.blame(d, t, r.site, fault.Overdue)
			s.drop(d, index, at, "has queued it for too long")
		default:
			continue
		}
		d.fence(r.site, []grid.AttemptID{above(id, r.token)})
	}
	if t.queued() {
		d.setTimer(timerRivals, id.String(), d.now().Add(rivalCheck))
		return
	}
	d.placeAgain()
}

// refused drops the rivals of a site that seems to have died.
func (s *rivals) refused(d desk, site grid.SiteID) {
	for i := range d.j.tasks {
		at := slices.IndexFunc(d.j.tasks[i].rivals, func(r rival) bool { return r.site == site })
		if at >= 0 {
			s.drop(d, uint32(i), at, "its site refuses connections")
		}
	}
}

// resume takes up a task that was dispatched to several sites by an earlier
// run. Whether they have it, and had received it at all, they are asked by sending
// the same award again as soon as they are there.
func (s *rivals) resume(d desk, index uint32) {
	d.setTimer(timerRivals, d.j.taskID(index).String(), d.now().Add(d.cfg().BootGrace+rivalCheck))
	s.awardAgain(d, index, d.cfg().Here)
}

// awardAgain repeats the awards that a site which is there now has not answered.
func (s *rivals) awardAgain(d desk, index uint32, site grid.SiteID) {
	for _, r := range d.j.tasks[index].rivals {
		if r.site == site && !r.accepted {
			d.send(site, s.awardTo(d, site, []uint32{index}))
		}
	}
}
