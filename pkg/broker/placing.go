package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// place lets the strategy place what waits, and follows its verdict.
func (m *Machine) place(j *job, on occasion) {
	if j.isPresumed(m.now) {
		return // it is looked at when no unknown attempt can hold a lease
	}
	m.follow(j, j.how.place(desk{m, j}, on))
}

// follow does what a strategy has decided.
func (m *Machine) follow(j *job, v verdict) {
	switch v.do {
	case verdictNone:
		return
	case verdictAsk:
		m.announceAgain(j)
		return
	case verdictRefuse:
		m.refuseJob(j)
	case verdictWait:
	}
	if len(j.waiting) > 0 {
		m.waitFor(j, v)
	}
}

// onHoldTimer ends the time in which sites make their offers firm.
func (m *Machine) onHoldTimer(j *job) { j.how.woken(desk{m, j}, wake{why: wakeHoldOver}) }

// onRestTimer goes on placing.
func (m *Machine) onRestTimer(j *job) { j.how.woken(desk{m, j}, wake{why: wakeRest}) }

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
