package broker

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// drainLooks takes the looks that wait. The job of a look may be gone by then.
func (m *Machine) drainLooks() {
	for {
		l, some := m.looks.next()
		if !some && !compareNext(m) {
			return
		}
		if !some {
			continue
		}
		j, known := m.jobs.all[l.job]
		switch {
		case !known:
		case l.why == lookPredecessorEnded:
			m.goOn(j)
		case l.why == lookReservationHeld:
			m.announceAgain(j)
		case l.why == lookReservationOver && m.jobs.isReleased(j.traits.within):
			open := func(t *task) bool { return t.isWaiting() || t.active() }
			m.refuseBecause(j, grid.PhaseRefused, m.jobs.reservationOver(j), open)
		case l.why == lookReservationOver: // what its sites still run they stop themselves, and say so
			m.hopeless(j)
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
