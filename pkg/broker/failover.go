package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// What happens when a site does not bring a task to its end: it falls silent, dies, or
// says so. The task waits again and is placed elsewhere; should the site have been cut off
// only, its attempt is taken up again as long as no other one was awarded.

// onLeaseTimer: the site has been silent for a whole lease. The attempt has
// frozen itself by now, or died; the task moves. So does one whose attempt has had its time and
// can run no more.
func (m *Machine) onLeaseTimer(id grid.AttemptID) {
	j, t := m.jobs.task(id.Task)
	if t != nil && t.token == id.Token && leaveEarly(m, j, id) || !t.isOverLease(id, m.now) {
		return
	}
	if t.over && t.moving.stage == moveStopping {
		m.moved(j, id.Task.Index)
		m.placeAgain(j)
		return
	}
	if t.over {
		why := "was " + t.phase.String() + " for too long"
		m.out.Report(step.LevelWarn, eventAttemptLost, step.Report{Attempt: id, Site: t.site, Text: why})
		if !t.isHeldUp() || t.standing == grid.ReasonNone { // else its owner, or a promise, came first
			m.peers.breach(t.site, t.awardedAt, why)
			m.peers.blame(m.jobs, t, fault.Overdue)
		}
		t.overruns++
		t.lose(why, &m.cfg, m.now)
		m.peers.lost(t)
		delete(j.offers, t.site)
		m.requeue(j, id.Task.Index)
		m.placeAgain(j)
		return
	}
	if m.remaps.stays(j, t) {
		m.remaps.keep(j, id.Task.Index)
		return
	}
	t.leave.stays = false
	site, why := t.site, "the site fell silent"
	if t.deaf() {
		why = "its site does not hear the leases that it asks for"
	} else if !m.peers.refuses(site) && !m.isAbandoned(t) {
		t.away = m.now
	}
	if !m.isAbandoned(t) { // else it is another run that speaks for the site
		m.peers.fellSilent(site)
	}
	m.peers.fired(t.leaseEnd)
	m.peers.blame(m.jobs, t, fault.Silent)
	m.giveUp(j, id.Task.Index, why)
	m.placeAgain(j)
}

// leaveEarly looks for another place for a task whose site is gone and which is to leave it, though
// its lease lasts, and awards it when that is over. It reports whether the timer was set for that.
func leaveEarly(m *Machine, j *job, id grid.AttemptID) bool {
	index := id.Task.Index
	t := &j.tasks[index]
	switch {
	case m.remaps.leavesEarly(j, t):
		if !m.peers.refuses(t.site) {
			t.away = m.now
		}
		m.giveUp(j, index, "the site is gone; another place is looked for")
		m.remaps.leftEarly(j, index)
	case t.leave.isOver(t, m.now):
		t.leave.early = false
		m.peers.fellSilent(t.site)
		m.peers.fired(t.leaseEnd)
		m.peers.blame(m.jobs, t, fault.Silent)
		m.saveTask(j, index)
		j.how.woken(desk{m, j}, wake{why: wakeHoldOver})
	case !t.leave.at.IsZero() && t.active() && t.leaseEnd.After(m.now): // its site is back
		m.setTimer(timerLease, id.String(), t.leaseEnd)
		return true
	default:
		return false
	}
	m.placeAgain(j)
	return true
}

// siteRefuses lets go of what a site cannot have begun that seems to have died, and hurries
// what is fetched from it. Leases stand: that its address refuses is no proof.
func (m *Machine) siteRefuses(j *job, site grid.SiteID) {
	j.how.woken(desk{m, j}, wake{why: wakeSiteRefuses, site: site})
	for i := range j.tasks {
		t := &j.tasks[i]
		switch {
		case t.site != site:
		case t.phase == grid.PhaseCollecting:
			m.hurryCollect(j, uint32(i))
		case t.active() && !t.queued() && t.leaseEnd.IsZero():
			m.giveUp(j, uint32(i), "its site refuses connections")
		}
	}
	m.placeAgain(j)
}

// onAttemptsDied takes a site's word that its agent and these attempts are dead: their
// leases are over. Nobody waits for its answers until it is seen again.
func (m *Machine) onAttemptsDied(in step.AttemptsDied) {
	for _, id := range in.Attempts {
		j, t := m.jobs.current(in.Site, id)
		if j == nil {
			continue // it has ended, has moved on, or was never there
		}
		if !m.isAbandoned(t) { // else another run speaks for the site
			m.peers.fellSilent(in.Site)
		}
		m.onExited(in.Site, protocol.Exited{Attempt: id, Exit: grid.Exit{
			Cause: grid.CauseSiteRestart, Text: "the site's agent died",
		}})
	}
}

// giveUp puts a task whose site is silent back among the waiting.
func (m *Machine) giveUp(j *job, index uint32, why string) {
	t := &j.tasks[index]
	id := j.attempt(index)
	t.lose(why, &m.cfg, m.now)
	m.peers.lost(t)
	// a deaf one would come back, and be given up, again and again
	t.silent = !t.deaf() && !m.isAbandoned(t)
	delete(j.offers, t.site)
	m.stopTimer(timerLease, id.String())
	m.out.Report(step.LevelWarn, eventAttemptLost, step.Report{Attempt: id, Site: t.site, Text: why})
	m.requeue(j, index)
}

// suspect names who may be to blame for a failure.
type suspect uint8

const (
	suspectTask   suspect = iota // or its site
	suspectSite                  // it died, or what it said is done is not there
	suspectNobody                // the task has failed by its own doing, and may run again
)

// failedAt moves a task whose site could not bring it to an end, and says so.
func (m *Machine) failedAt(j *job, index uint32, exit grid.Exit, who suspect) {
	t := &j.tasks[index]
	id := j.attempt(index)
	t.bringsNothing(t.site, t.token)
	t.log(inWords(exit), m.now)
	t.remember(t.site)
	m.out.Report(step.LevelWarn, eventAttemptFailed, step.Report{
		Attempt: id, Site: t.site, Text: exit.Cause.String(),
	})
	switch {
	case who == suspectNobody: // perhaps because of its state, too: it begins anew
		t.reruns++
		m.dropSaved(j, index)
	case exit.Cause == grid.CauseStopped: // an owner who wants the machine back is no fault
		t.rests(&m.cfg, m.now)
	case exit.Cause == grid.CauseSiteRestart, who == suspectSite:
		t.rests(&m.cfg, m.now)
		cause := fault.NoOutput
		if exit.Cause == grid.CauseSiteRestart {
			cause = fault.Died
		}
		m.peers.blame(m.jobs, t, cause)
	default:
		t.failures++
		m.peers.blame(m.jobs, t, faultOf(exit.Cause))
	}
	site := t.site
	m.requeue(j, index)
	m.rights.acknowledge(site, id)
	m.placeAgain(j)
}

// faultOf is the fault that an end is which is not of the job's own doing.
func faultOf(cause grid.ExitCause) fault.Cause {
	switch cause {
	case grid.CauseSiteRestart:
		return fault.Died
	case grid.CauseNoOutput:
		return fault.NoOutput
	default:
		return fault.Failed
	}
}

// overdue takes it that an attempt has had its time: it is to be fenced off. The task moves
// when its last lease has ended.
func (r *run) overdue(j *job, id grid.AttemptID) grid.AttemptID {
	t := &j.tasks[id.Task.Index]
	if !t.over {
		t.over = true
		r.out.Report(step.LevelWarn, eventOverdue, step.Report{
			Attempt: id, Site: t.site, Text: t.phase.String(), Reason: t.standing,
		})
		r.setTimer(timerLease, id.String(), latest(t.leaseEnd, r.now))
	}
	return above(id.Task, id.Token)
}

// requeue lets a task wait for another site, or gives it up after too many
// failures. Awards that were declined do not count, nor what was lost by its site: they say
// that the mesh is busy, or restless, not that the task is bad.
func (m *Machine) requeue(j *job, index uint32) {
	t := &j.tasks[index]
	t.rest = latest(t.rest, t.leaseEnd) // of an attempt that was called off
	t.roundsFailed, t.startsAt = 0, timeZero
	t.reopenPledge()
	if t.failures >= m.cfg.MaxTries {
		t.exit = &grid.Exit{Cause: grid.CauseSandbox, Text: "given up: no site has brought it to an end"}
		m.endTask(j, index, grid.PhaseFailed)
		j.how.unseated(desk{m, j}, index)
		m.endIfDone(j)
		return
	}
	j.wait(index)
	j.placed = false
	if len(t.counted) > 0 {
		m.herald.describe(j) // sites offer for what is left to be fetched
	}
	m.saveTask(j, index)
	j.how.unseated(desk{m, j}, index)
}

// placeAgain places waiting tasks after a failure: with the runner-ups first, else by
// asking all sites again, whose caches are warm.
func (m *Machine) placeAgain(j *job) {
	if j.round() != nil || !m.jobs.isAsking(j) || m.hopeless(j) {
		return
	}
	m.place(j, occasion{why: lost})
	m.announceInTurn(j)
}

// takeUp takes back an attempt that was given up and not yet replaced: nothing else has
// been started meanwhile.
func (m *Machine) takeUp(j *job, index uint32) {
	t := &j.tasks[index]
	desk{m, j}.unwait(index)
	t.move(grid.PhaseRunning)
	t.countOn(m.now)
	t.silence = silence{}
	if t.promise == grid.PromiseOpen {
		t.note = ""
	}
	m.moves.resume(j, index)
	if j.traits.promise && t.startedAt.IsZero() {
		t.move(grid.PhaseStaging) // its place in the plan is ahead, as far as was heard
	}
	m.saveTask(j, index)
	m.looks.atBound(j)
	m.report(step.LevelInfo, eventAttemptReturned, j.attempt(index), t.site)
}

// unwait takes a task from the waiting whose site speaks after all.
func (d desk) unwait(index uint32) {
	d.j.seat(index)
	d.j.how.released(d, heardAgain)
}
