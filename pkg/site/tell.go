package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// tellAgain is the time after which a submitter is told again how its attempts go: what was
// told once may be lost, and a submitter gives up what does not start.
const tellAgain = time.Minute

// tellOfAll tells a submitter, from time to time, how those of its attempts go whose leases
// it is asked for.
func (m *Machine) tellOfAll(t *tenant, attempts []*attempt) {
	if t.told.IsZero() {
		t.told = m.now
	}
	if m.now.Sub(t.told) < tellAgain {
		return
	}
	t.told = m.now
	for _, a := range attempts {
		m.tell(a)
	}
}

// tell tells the submitter of an attempt how it goes. One that is being staged tells of
// itself as its data comes.
func (m *Machine) tell(a *attempt) {
	switch {
	case a.phase == phaseRunning:
		m.sendRunning(a)
	case a.phase == phaseFrozen:
		m.sendFrozen(a)
	case a.started || a.phase == phaseAsked:
	case a.reserves() && m.isDue(a):
		m.sendProgress(a, grid.PhaseRunning, 0, 0)
	case m.frozenFor(a) != grid.ReasonNone:
		m.sendProgress(a, grid.PhaseStaging, 0, 0)
	default:
		m.sendStart(a)
	}
}

// sendRunning tells the submitter of an attempt that it runs, or what it waits for.
func (m *Machine) sendRunning(a *attempt) {
	msg := m.progressOf(a, grid.PhaseRunning)
	if a.preparing {
		msg.Reason = grid.ReasonPreparing
	}
	m.out.Send(a.submitter, msg)
}
