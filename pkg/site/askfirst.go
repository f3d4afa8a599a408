package site

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerAsk asks again whether an attempt may start; its ID is the attempt's as text.
const timerAsk = "ask"

// wantsRenewal reports whether an attempt's leases are asked for with the others of its
// submitter. One that other sites queue, too, is not: it waits in the plan without
// any, and asks by itself when its turn has come.
func (a *attempt) wantsRenewal() bool { return a.wantsLease() && !a.asks }

// askInTurn asks for an attempt that must not start without having asked, when its turn
// has come: its inputs are here, its place in the plan is now, and the
// owner does not need the machine. "When one of these jobs gets active, all other
// jobs are cancelled" (Migol 6.2.2): it is the submitter that does that, so that
// exactly one becomes active.
func (m *Machine) askInTurn(a *attempt) {
	waits := a.asks && a.asked.IsZero() && a.phase == phaseReady
	if waits && m.frozenFor(a) == grid.ReasonNone && m.isDue(a) {
		a.asked = m.now
		m.sendMayStart(a)
	}
}

// sendMayStart asks, and asks again soon should nobody answer.
func (m *Machine) sendMayStart(a *attempt) {
	a.request = m.submitters.requests.number(a.submitter, m.now)
	m.out.Send(a.submitter, protocol.MayStart{
		Renewal: a.request, Attempts: []grid.AttemptID{a.id},
	})
	m.out.SetTimer(timerAsk, a.id.String(), m.now.Add(m.cfg.RenewRetry))
}

// onAskTimer asks again, and gives the attempt up when there was no answer for too
// long: others may have use for its place. Its submitter hears of it, since nothing
// else would tell it that this site does not queue the task any more.
func (m *Machine) onAskTimer(a *attempt) {
	switch {
	case !a.asks || a.asked.IsZero() || a.phase != phaseReady:
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
	case m.now.Sub(a.asked) < m.cfg.GiveUp:
		m.sendMayStart(a)
	default:
		m.stop(a, told, "nobody said that it may start")
	}
}

// noteFirstLease takes note that an attempt got its first lease: from now on it is one
// like all others.
func (m *Machine) noteFirstLease(a *attempt) {
	if !a.asks {
		return
	}
	a.asks = false
	m.stopTimers(a, timerAsk)
	m.expectLease(a.submitter)
	m.watch(a)
}

// checkAsking verifies that nothing asks that has a lease, or was started.
func (m *Machine) checkAsking() error {
	for _, a := range m.roster.where(func(a *attempt) bool { return a.asks }) {
		if a.leased || a.started {
			return fmt.Errorf("attempt %s asks whether it may start, and has a lease or was started", a.id)
		}
	}
	return nil
}
