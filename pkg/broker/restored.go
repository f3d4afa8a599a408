package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A state that was restored from a backup, or copied to another machine, does not know what
// was awarded after it was saved: a task that waits in it may run somewhere, and the attempt
// that it knows may have been overtaken. So nothing is granted and nothing is placed for as
// long as a grant from before may stand. Meanwhile the sites ask for the leases of what they
// run; the highest token that is heard of a task is its latest attempt, and gets its lease
// when the time is over. What nobody asks for is placed anew.

// doubtWithin is for how long after its start a run can find, from what a site says, that its
// state is too old. Who asks for leases does so as soon as it hears of a start; later, such a
// request is a mistake, or a lie.
const doubtWithin = time.Minute

// heir is an attempt that a state does not know of: the latest one that a site asks for.
type heir struct {
	token grid.Token
	site  grid.SiteID
}

// isPresumed reports whether the tasks may run in attempts that are not known.
func (e *enquiry) isPresumed(now time.Time) bool { return e.presumed.After(now) }

// doubt begins when the state is found to be older than what was promised.
func (m *Machine) doubt(about grid.AttemptID, site grid.SiteID, why string) {
	if m.doubted || m.cfg.NoBinding {
		return
	}
	m.doubted = true
	m.persist(factGrants, grantsUnknown, struct{}{})
	m.out.Report(step.LevelWarn, eventRestored, step.Report{Attempt: about, Site: site, Text: why})
	for _, id := range m.jobs.ids() {
		if j := m.jobs.all[id]; j.open > 0 {
			m.presumeRunning(j)
		}
	}
	m.rights.settleDoubt()
}

// presumeRunning lets a job rest until no grant from before can stand.
func (m *Machine) presumeRunning(j *job) {
	own := max(j.traits.lease, j.traits.presumed)
	own += m.cfg.margin(own)
	span := max(own, m.covered)
	for i := range j.tasks {
		span = max(span, m.left(j.tasks[i].long))
	}
	j.presumed = m.now.Add(span)
	m.setTimer(timerPresumed, string(j.id), j.presumed)
	for i := range j.tasks { // their sites have until then, and a lease more, to be heard
		if t := &j.tasks[i]; t.active() && !t.leaseEnd.IsZero() {
			t.leaseEnd = j.presumed.Add(own)
			m.setTimer(timerLease, j.attempt(uint32(i)).String(), t.leaseEnd)
		}
	}
	if j.holding() != nil {
		j.how.released(desk{m, j}, windowOver)
	}
	for _, name := range []string{timerRound, timerExplain, timerAgain, timerHold} {
		m.stopTimer(name, string(j.id))
	}
	clear(j.offers)
	j.enter(nil)
}

// setApart keeps a request for a lease of an attempt that this state does not know of, and
// that is later than all it knows. It is not answered: an attempt later still may hold a
// lease somewhere.
func (m *Machine) setApart(from grid.SiteID, id grid.AttemptID) bool {
	j, t := m.jobs.task(id.Task)
	if t == nil || t.phase.Ended() || !t.isBefore(id.Token) || !m.suspects(j, from, id) {
		return false
	}
	if id.Token > t.heir.token {
		t.heir = heir{token: id.Token, site: from}
	}
	return true
}

// suspects reports whether a later attempt than all that are known is to be believed in. This
// run's own tokens are known, so that it is one of an earlier run.
func (m *Machine) suspects(j *job, from grid.SiteID, id grid.AttemptID) bool {
	if id.Token >= grid.TokenOf(max(m.incarnation, 1)-1, 0) {
		return false
	}
	if !j.isPresumed(m.now) && m.now.Sub(m.bootedAt) <= doubtWithin {
		m.doubt(id, from, "a site has an attempt that was awarded after this state was saved")
	}
	return j.isPresumed(m.now)
}

// endsUnknown takes the end of an attempt that this state does not know of. A final one is the
// task's result; after any other the task waits on.
func (m *Machine) endsUnknown(from grid.SiteID, id grid.AttemptID, exit grid.Exit) {
	j, t := m.jobs.task(id.Task)
	if t == nil || t.phase.Ended() || !t.isBefore(id.Token) || !m.suspects(j, from, id) {
		return
	}
	if exit.Cause.Final() && !j.traits.whole {
		m.inherit(j, id.Task.Index, heir{token: id.Token, site: from})
		return
	}
	m.overtaken(j, id.Task.Index, id.Token)
}

// overtaken notes that a task had a later attempt than all that are known. Parts are started
// together, so that all of them had.
func (r *run) overtaken(j *job, index uint32, token grid.Token) {
	for i := range j.tasks {
		if t := &j.tasks[i]; (uint32(i) == index || j.traits.whole) && t.isBefore(token) {
			t.top = token
			r.saveTask(j, uint32(i))
		}
	}
}

// onPresumedTimer: no grant from before can stand. Who asked for the latest attempt of a task
// has it; a split job, which starts as one, is placed anew.
func (m *Machine) onPresumedTimer(j *job) {
	if j.isPresumed(m.now) || j.presumed.IsZero() {
		return
	}
	if m.peers.noneMet() {
		// As for a copy that has no network yet: the site it was copied from may go on.
		j.presumed = m.now.Add(m.cfg.Lease)
		m.setTimer(timerPresumed, string(j.id), j.presumed)
		return
	}
	j.presumed = timeZero
	m.rights.settleDoubt()
	for i := range j.tasks {
		t := &j.tasks[i]
		if t.phase.Ended() {
			continue
		}
		switch h := t.heir; {
		case !t.isBefore(h.token):
		case j.traits.whole:
			m.overtaken(j, uint32(i), h.token)
		default:
			m.inherit(j, uint32(i), h)
		}
		t.heir = heir{}
		if t.active() && !t.queued() && t.leaseEnd.IsZero() {
			m.presume(j, uint32(i))
			m.setTimer(timerLease, j.attempt(uint32(i)).String(), t.leaseEnd)
		}
	}
	if !m.jobs.isBlocked(j) {
		m.announceInTurn(j)
	}
}

// trust ends the doubt about a job that has ended: nothing of it is placed any more.
func (r rights) trust(j *job) {
	if j.presumed.IsZero() {
		return
	}
	j.presumed = timeZero
	r.stopTimer(timerPresumed, string(j.id))
	r.settleDoubt()
}

// settleDoubt notes that no job may run in unknown attempts any more.
func (r rights) settleDoubt() {
	for _, id := range r.jobs.ids() {
		if !r.jobs.all[id].presumed.IsZero() {
			return
		}
	}
	r.persistRemoval(factGrants, grantsUnknown)
}

// inherit makes an attempt that another run has awarded the task's latest one.
func (m *Machine) inherit(j *job, index uint32, h heir) {
	t := &j.tasks[index]
	m.stopTimer(timerLease, j.attempt(index).String())
	m.stopTimer(timerCollect, j.attempt(index).String())
	m.stopTimer(timerRivals, j.taskID(index).String())
	desk{m, j}.unwait(index)
	t.rivals, t.result, t.silence, t.heir = nil, result{}, silence{}, heir{}
	// It was awarded at a time that is not known, and may have begun since.
	t.attempt = attempt{token: h.token, site: h.site, line: m.lines[h.site]}
	t.move(grid.PhaseStaging)
	if j.traits.promise { // its site has promised it a place, and an earlier run has heard that
		t.accepted, t.promise = true, grid.PromiseOpen
	}
	m.saveTask(j, index)
	m.report(step.LevelInfo, eventInherited, j.attempt(index), h.site)
}
