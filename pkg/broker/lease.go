package broker

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// renew answers a site that asks for leases: Accepted asks for the first, Renew
// for each further one. The latest attempt of an open task gets its lease; all
// others are fenced off.
func (m *Machine) renew(from grid.SiteID, renewal uint64, attempts []grid.AttemptID) {
	if attempts = m.withoutRivals(from, attempts); len(attempts) == 0 {
		return
	}
	leases := make(map[time.Duration][]grid.AttemptID)
	var below []grid.AttemptID
	var placed []*job
	for _, id := range attempts {
		j, t := m.current(from, id)
		if t == nil || !m.holds(j, t, id) {
			below = append(below, m.fenceOf(id))
			continue
		}
		if j.firm() && !slices.Contains(placed, j) {
			placed = append(placed, j)
		}
		if m.early(j, from, renewal, id) {
			continue
		}
		d := m.leaseOf(j)
		leases[d] = append(leases[d], id)
	}
	if m.cfg.NoFencing && len(below) > 0 {
		leases[m.cfg.Lease] = attempts
		below = nil
	}
	if len(below) > 0 {
		m.refusedMessage("fenced", from, below[0], grid.ReasonStale)
		m.out.Send(from, protocol.Fence{Below: below})
	}
	for _, d := range slices.Sorted(maps.Keys(leases)) {
		m.grant(from, renewal, leases[d], d)
	}
	for _, j := range placed {
		m.startTogether(j)
		m.clearIfPlaced(j)
		if j.arrived {
			j.arrived = false
			m.lookAtBound(j)
		}
	}
}

// holds takes note that the site has the attempt, and reports whether the
// attempt may run. One that was given up but not yet replaced is taken back:
// nothing else has been started meanwhile.
func (m *Machine) holds(j *job, t *task, id grid.AttemptID) bool {
	switch {
	case t.active():
	case t.phase == grid.PhaseWaiting && t.token > 0 && t.silent:
		m.notWaiting(j, id.Task.Index)
		t.phase, t.silent, t.away = grid.PhaseRunning, false, timeZero
		if j.promised() && t.startedAt.IsZero() {
			t.phase = grid.PhaseStaging // its place in the plan is ahead, as far as was heard
		}
		j.arrived = true
		m.saveTask(j, id.Task.Index)
		m.report(step.LevelInfo, "attempt_returned", id, t.site)
	default:
		return false
	}
	if t.phase == grid.PhaseAwarded {
		t.phase = grid.PhaseStaging
		j.backoff = 0
		m.promiseMade(j, id.Task.Index)
		m.report(step.LevelInfo, "accepted", id, t.site)
	}
	return true
}

// notWaiting takes a task from the waiting whose site speaks after all. The only part of
// a split job may be looked for elsewhere already: what is held for its next start is
// not wanted any more.
func (m *Machine) notWaiting(j *job, index uint32) {
	j.place(index)
	if j.split() {
		m.releaseHolds(j)
	}
}

func (m *Machine) leaseOf(j *job) time.Duration {
	switch {
	case j.job.Spec.Kind == grid.KindReservation:
		return m.cfg.ReservationLease
	case j.split(): // parts that may run on alone would keep the others from starting anew
		return m.cfg.Lease
	case j.job.Spec.Unattended == grid.UnattendedFinish:
		return m.cfg.LongLease
	default:
		return m.cfg.Lease
	}
}

// grant makes the promise: until the lease's end on this clock, a margin
// included, the task is not awarded again. A promise that outlives what a
// restarted broker presumes anyway is durable before it is made.
func (m *Machine) grant(to grid.SiteID, renewal uint64, attempts []grid.AttemptID, d time.Duration) {
	if len(attempts) == 0 {
		return
	}
	end := m.now.Add(d + m.cfg.LeaseMargin)
	for _, id := range attempts {
		j, t := m.current(to, id)
		if t == nil {
			continue // only without fencing
		}
		t.leaseEnd = end
		if d > m.cfg.Lease {
			m.saveTask(j, id.Task.Index)
		}
		m.out.SetTimer(timerLease, id.String(), end)
	}
	m.out.Send(to, protocol.Lease{Renewal: renewal, Attempts: attempts, Duration: d})
}

// fenceOf is the token below which the attempts of a task are to stop.
func (m *Machine) fenceOf(id grid.AttemptID) grid.AttemptID {
	below := grid.AttemptID{Task: id.Task, Token: max(id.Token, id.Token+1)} // the greatest number has no next
	if j, ok := m.jobs[id.Task.Job]; ok && id.Task.Index < uint32(len(j.tasks)) {
		if t := j.tasks[id.Task.Index]; t.token > id.Token {
			below.Token = t.token
		}
	}
	return below
}

// leaseEnded: the site has been silent for a whole lease. The attempt has
// frozen itself by now, or died; the task moves.
func (m *Machine) leaseEnded(id grid.AttemptID) {
	j, ok := m.jobs[id.Task.Job]
	if !ok || id.Task.Index >= uint32(len(j.tasks)) {
		return
	}
	t := &j.tasks[id.Task.Index]
	if t.token != id.Token || !t.active() || t.leaseEnd.After(m.now) || len(t.rivals) > 0 {
		return
	}
	site := t.site
	if p, known := m.members[site]; !known || !p.dead {
		t.away = m.now
	}
	if p, known := m.members[site]; known {
		p.silentTill = m.now.Add(memberSilent)
	}
	m.lost(j, id.Task.Index, "lease ended without a word")
	m.blame(site)
	m.placeWaiting(j)
}

// lost puts a task whose site is silent back among the waiting.
func (m *Machine) lost(j *job, index uint32, why string) {
	t := &j.tasks[index]
	id := j.attempt(index)
	t.log(why, m.now)
	t.remember(t.site)
	t.failures++
	t.silent = true
	delete(j.offers, t.site)
	m.out.StopTimer(timerLease, id.String())
	m.out.Emit(step.Report{Event: "attempt_lost", Level: step.LevelWarn, Attempt: id, Site: t.site, Text: why})
	m.requeue(j, index)
}

// requeue lets a task wait for another site, or gives it up after too many
// failures. Awards that were declined do not count: they say that the mesh is
// busy, not that the task is bad.
func (m *Machine) requeue(j *job, index uint32) {
	t := &j.tasks[index]
	t.roundsFailed, t.startsAt = 0, timeZero
	if t.failures >= m.cfg.MaxTries {
		t.exit = &grid.Exit{Cause: grid.CauseSandbox, Text: "given up: no site has brought it to an end"}
		m.endTask(j, index, grid.PhaseFailed)
		m.partGivenUp(j)
		m.jobEndedIfDone(j)
		return
	}
	j.wait(index)
	j.cleared = false
	m.saveTask(j, index)
	m.regroup(j)
}

// placeWaiting places what waits after a failure: with the runner-ups first,
// and else by asking everybody again, whose caches are warm.
func (m *Machine) placeWaiting(j *job) {
	if j.round != nil || !m.asking(j) {
		return
	}
	if m.hopeless(j) {
		return
	}
	m.award(j)
	m.announceInTurn(j)
}

// blame counts a missed response window or a lost lease against a site.
func (m *Machine) blame(site grid.SiteID) {
	m.faults.Missed(site, 1)
	m.saveFault(site)
}

// progress follows an attempt.
func (m *Machine) progress(from grid.SiteID, msg protocol.Progress) {
	j, t := m.current(from, msg.Attempt)
	if t == nil || !t.active() || t.phase == grid.PhaseAwarded {
		return
	}
	if msg.Phase == grid.PhaseStaging && t.phase > grid.PhaseStaging {
		return // overtaken on its way
	}
	if t.phase != msg.Phase || t.standing != msg.Reason {
		m.out.Emit(step.Report{
			Event: msg.Phase.String(), Level: step.LevelInfo, Attempt: msg.Attempt, Site: from, Reason: msg.Reason,
		})
	}
	t.phase, t.done, t.total, t.standing = msg.Phase, msg.Done, msg.Total, msg.Reason
	m.planned(j, msg)
	if msg.Phase == grid.PhaseRunning && t.startedAt.IsZero() {
		t.startedAt = m.now
		m.lookAtBound(j)
	}
}
