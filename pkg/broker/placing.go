package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// place lets the strategy place what waits, and follows its verdict.
func (m *Machine) place(j *job, on occasion) {
	if j.held {
		return
	}
	if j.isPresumed(m.now) {
		return // it is looked at when no unknown attempt can hold a lease
	}
	m.follow(j, j.how.place(desk{m, j}, on))
}

// follow does what a strategy has decided. For tasks that found no place the next round is
// arranged: right away at the sites that have reported capacity meanwhile, else after a
// growing pause.
func (m *Machine) follow(j *job, v verdict) {
	switch v.do {
	case verdictNone:
		return
	case verdictAsk:
		m.announceAgain(j)
		return
	case verdictRefuse:
		if m.herald.asksAbroad(j, v.last, true) {
			return
		}
		if m.peers.waitsForNeighbours(j) {
			m.herald.rest(j, v.everybody)
			return
		}
		m.refuseJob(j)
	case verdictWait:
	}
	if len(j.waiting) == 0 {
		return
	}
	if v.last != nil && v.last.wantsMore() {
		m.herald.widen(j, v.last)
		return
	}
	for _, site := range sortedSites(j.vacant) {
		delete(j.vacant, site)
		if m.peers.reachable(site) {
			if m.ask(j, site); j.round() != nil {
				return
			}
		}
	}
	if !m.herald.asksAbroad(j, v.last, false) {
		m.herald.rest(j, v.everybody)
	}
}

// closeAbroad awards what neighbours offer. For the rest the verdict on the round over the members,
// which was before, holds: but a job that no member can ever run waits if a neighbour may, later.
func closeAbroad(m *Machine, j *job, r *round) {
	m.place(j, occasion{why: lateOffer})
	if len(j.waiting) == 0 || j.stage != nil {
		return
	}
	v := verdict{do: verdictWait, last: r, everybody: r.asked}
	if r.refusing && !m.peers.waitsForNeighbours(j) {
		v.do = verdictRefuse
	}
	m.follow(j, v)
}

// wakes wakes the strategy of a job whose timer has fired.
func (m *Machine) wakes(why wakeReason) func(*job) {
	return func(j *job) { j.how.woken(desk{m, j}, wake{why: why}) }
}

// onRivalsTimer looks after the sites that queue a task.
func (m *Machine) onRivalsTimer(id string) {
	task, err := grid.ParseTaskID(id)
	if err != nil {
		return
	}
	if j, t := m.jobs.task(task); t != nil && t.queued() {
		j.how.woken(desk{m, j}, wake{why: wakeRivals, index: task.Index})
	}
}

// onWindowTimer ends what waits when it is too late for it. What may still come back is
// waited for.
func (m *Machine) onWindowTimer(j *job) {
	m.missDeadline(j)
	if !m.expire(j) {
		m.announceInTurn(j)
	}
}

// strategyKnows gives what a site says of an attempt to the strategy of its job, and
// reports whether the attempt is one that only the strategy knows.
func (m *Machine) strategyKnows(from grid.SiteID, id grid.AttemptID, msg protocol.Message) bool {
	j, t := m.jobs.task(id.Task)
	return t != nil && j.how.answered(desk{m, j}, from, msg)
}
