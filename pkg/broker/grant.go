package broker

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// onRequest answers a site that asks for leases: Accepted asks for the first, Renew
// for each further one. The latest attempt of an open task gets its lease; all
// others are fenced off. One of several that queue a task has to ask its strategy first.
func (m *Machine) onRequest(from grid.SiteID, renewal uint64, attempts []grid.AttemptID) {
	attempts = slices.DeleteFunc(slices.Clone(attempts), func(id grid.AttemptID) bool {
		one := protocol.Accepted{Attempts: []grid.AttemptID{id}, Renewal: renewal}
		return m.setApart(from, id) || m.strays(m.jobs, from, id) || m.strategyKnows(from, id, one)
	})
	leases := make(map[time.Duration][]grid.AttemptID)
	var below, taken []grid.AttemptID
	var touched []*job
	for _, id := range attempts {
		j, t := m.jobs.current(from, id)
		if t == nil || !t.active() && !t.returnable() {
			below = append(below, m.rights.fenceOf(id))
			continue
		}
		if !slices.Contains(touched, j) {
			touched = append(touched, j)
		}
		c := claim{from: from, renewal: renewal, id: id, first: m.confirm(j, t, id)}
		t.named = max(t.named, renewal)
		taken = append(taken, id)
		if t.count(m.now); m.peers.isOver(j, id.Task.Index) {
			below = append(below, m.overdue(j, id))
			continue
		}
		if j.how.claimed(desk{m, j}, c) && !t.deaf() {
			d := max(m.peers.leaseFor(j, id.Task.Index), m.startLease(j, t))
			leases[d] = append(leases[d], id)
		}
	}
	slices.SortFunc(taken, grid.AttemptID.Compare)
	m.rolls.enter(from, taken, m.jobs.isUnderWay(from))
	if m.cfg.NoFencing && len(below) > 0 {
		leases[m.cfg.Lease], below = attempts, nil
	}
	m.rights.answer(from, renewal, below, leases)
	for _, j := range touched {
		j.how.woken(desk{m, j}, wake{why: wakeGranted})
	}
}

// answer fences off what may not go on, and grants the leases, by their lengths, of the rest.
func (r rights) answer(
	from grid.SiteID, renewal uint64, below []grid.AttemptID,
	leases map[time.Duration][]grid.AttemptID,
) {
	if len(below) > 0 {
		r.reportRefused(eventFenced, from, below[0], grid.ReasonStale)
		r.fence(from, below)
	}
	for _, d := range slices.Sorted(maps.Keys(leases)) {
		r.grant(from, renewal, leases[d], d)
	}
}

// startLease is a lease that reaches beyond the start that an attempt was promised, when that
// is near: it begins then, also while this site is away. Farther from its start it gets none,
// 0, so that another site is found in time when its own falls silent.
func (r *run) startLease(j *job, t *task) time.Duration {
	ahead := j.startOf(t).Sub(r.now)
	if !j.traits.promise || t.phase != grid.PhaseStaging || ahead <= 0 || ahead > r.cfg.StartLease {
		return 0
	}
	whole := (ahead + r.cfg.Lease - 1).Truncate(r.cfg.Lease) // attempts share their leases
	return whole + r.cfg.Lease
}

// onMayStart takes the request of sites that queue a task: their strategy decides which
// attempt may start, and the request then counts as one for leases.
func (m *Machine) onMayStart(from grid.SiteID, msg protocol.MayStart) {
	for _, id := range msg.Attempts {
		if j, _ := m.jobs.task(id.Task); j != nil && j.isPresumed(m.now) {
			continue // it asks again
		}
		one := protocol.MayStart{Attempts: []grid.AttemptID{id}, Renewal: msg.Renewal}
		m.strategyKnows(from, id, one)
	}
	m.onRequest(from, msg.Renewal, msg.Attempts)
}

// confirm takes note that the site has the attempt, and reports whether it says so for the
// first time.
func (m *Machine) confirm(j *job, t *task, id grid.AttemptID) (first bool) {
	index := id.Task.Index
	m.remaps.heardOf(j, t, id)
	if !t.active() {
		m.takeUp(j, index)
	}
	if t.phase != grid.PhaseAwarded {
		return false
	}
	t.move(grid.PhaseStaging)
	j.pause = 0
	if j.traits.promise && (!t.accepted || t.note != "") { // it has promised it a place
		t.accepted, t.promise, t.note = true, grid.PromiseOpen, ""
		m.saveTask(j, index)
	}
	m.looks.atBound(j)
	m.report(step.LevelInfo, eventAccepted, id, t.site)
	return true
}

// onProgress follows an attempt.
func (m *Machine) onProgress(from grid.SiteID, msg protocol.Progress) {
	j, t := m.jobs.current(from, msg.Attempt)
	if t == nil || !t.active() || t.phase == grid.PhaseAwarded || m.isAstray(t) {
		return
	}
	if msg.Phase == grid.PhaseStaging && t.phase > grid.PhaseStaging {
		return // overtaken on its way
	}
	if t.phase != msg.Phase || t.standing != msg.Reason {
		m.out.Report(step.LevelInfo, msg.Phase.String(), step.Report{
			Attempt: msg.Attempt, Site: from, Reason: msg.Reason,
		})
	}
	t.count(m.now)
	if msg.Phase == grid.PhaseStaging && msg.Done > t.done {
		m.peers.grows(from)
	}
	t.move(msg.Phase)
	t.done, t.total, t.standing = msg.Done, msg.Total, msg.Reason
	if m.planned(j, msg) {
		m.takeBack(j, msg.Attempt.Task.Index, "its site would begin at another time")
		m.placeAgain(j)
		return
	}
	if msg.Phase == grid.PhaseRunning && t.startedAt.IsZero() {
		m.begun(j, msg.Attempt.Task.Index, msg.StartedAgo)
		m.looks.atBound(j)
	}
}

// plannedStep is by how much a planned start changes before that is written down.
const plannedStep = time.Second

// planned notes when a task's place in its site's plan begins, and reports whether that is not
// what was promised.
func (r *run) planned(j *job, msg protocol.Progress) (beside bool) {
	t := &j.tasks[msg.Attempt.Task.Index]
	if msg.Phase != grid.PhaseStaging || msg.StartsIn == 0 {
		t.startsAt = timeZero
		return false
	}
	at := r.now.Add(msg.StartsIn)
	beside = r.isBeside(j, t, at, t.startsAt)
	moved := at.Sub(t.startsAt).Abs() >= plannedStep
	if moved || !j.traits.promise {
		t.startsAt = at
	}
	if moved && j.traits.promise {
		r.saveTask(j, msg.Attempt.Task.Index)
	}
	return beside
}
