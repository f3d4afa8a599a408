package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// heldParts is into how many parts the time is divided for which an end is held: each part
// that has passed is written down, so that a crash forgets one at most.
const heldParts = 128

// heldFor counts the time that an end was held while this agent was up. Time that it was down
// does not count, and the wall clock is not asked: it may have been set meanwhile, and a
// finished result must not be dropped because a date was wrong for an hour.
func (m *Machine) heldFor(a *attempt) time.Duration { return a.held + m.now.Sub(a.heldFrom) }

// noteHeld writes down how long an end has been held, now and then.
func (m *Machine) noteHeld(a *attempt) {
	since := m.now.Sub(a.heldFrom).Truncate(time.Millisecond)
	if since < m.cfg.ResultHold/heldParts {
		return
	}
	a.held, a.heldFrom = a.held+since, a.heldFrom.Add(since)
	m.save(a)
}

// sendExited tells the submitter how an attempt ended and sets the time of the
// next repetition.
func (m *Machine) sendExited(a *attempt) {
	m.out.Send(a.submitter, m.exitedOf(a))
	next := min(a.repeat, m.cfg.ResultHold-m.heldFor(a))
	m.out.SetTimer(timerExited, a.id.String(), m.now.Add(next))
	a.repeat = min(2*a.repeat, maxExitRepeat)
}

// tellEnds tells a submitter that has come how its attempts have ended, without waiting for the
// next repetition: it may be about to give up a task whose result is here. What was told only
// once is told again soon.
func (m *Machine) tellEnds(submitter grid.SiteID) {
	for _, a := range m.roster.where(func(a *attempt) bool {
		return a.submitter == submitter && a.phase == phaseExited && a.repeat > 2*firstExitRepeat
	}) {
		a.repeat = firstExitRepeat
		m.sendExited(a)
	}
}

func (m *Machine) onExitedTimer(a *attempt) {
	switch {
	case a.phase != phaseExited:
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
	case m.heldFor(a) < m.cfg.ResultHold:
		m.noteHeld(a)
		m.sendExited(a)
	default:
		m.out.Report(step.LevelWarn, eventResultExpired, about(a.id, a.submitter))
		m.drop(a, a.exit.CIDs())
	}
}
