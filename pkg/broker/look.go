package broker

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// drainLooks takes the looks that wait. The job of a look may be gone by then.
func (m *Machine) drainLooks() {
	for {
		l, some := m.looks.next()
		if !some {
			return
		}
		j, known := m.jobs.all[l.job]
		switch {
		case !known:
		case l.why == lookPredecessorEnded:
			m.goOn(j)
		case l.why == lookReservationHeld:
			m.announceAgain(j)
		case l.why == lookReservationOver:
			m.refuseBecause(j, grid.PhaseRefused, m.jobs.reservationOver(j), m.jobs.stops(j))
		}
	}
}

// goOn announces a job when all that it waits for is done, and ends it when that
// cannot be.
func (m *Machine) goOn(j *job) {
	if j.open == 0 {
		return
	}
	for _, id := range m.jobs.awaits(j) {
		first := m.jobs.all[id]
		if first.open > 0 {
			continue
		}
		phase := grid.PhaseRefused
		if first.outcome() == outcomeCancelled {
			phase = grid.PhaseCancelled
		}
		why := fmt.Sprintf("it was to run after job %s, which has %s", id, first.outcome().phrase())
		m.refuseBecause(j, phase, why, func(*task) bool { return true })
		return
	}
	if !m.jobs.isBlocked(j) {
		m.announceAgain(j)
	}
}

// stops says which tasks of a job end when its reservation is over. What its sites still run
// they stop themselves, and say so; what was released early is stopped from here.
func (l *jobs) stops(j *job) func(*task) bool {
	res, known := l.all[j.traits.within]
	released := known && res.released()
	return func(t *task) bool {
		return t.phase == grid.PhaseWaiting || released && t.active()
	}
}
