package site

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerAsk asks again whether an attempt may start; its ID is the attempt's as text.
const timerAsk = "ask"

// renews reports whether an attempt's leases are asked for with the others of its
// submitter. One that other sites queue, too, is not: it waits in the plan without
// any, and asks by itself when its turn has come.
func (a *attempt) renews() bool { return a.wantsLease() && !a.asks }

// asksFirst holds an attempt back that must not start without having asked, and asks
// when its turn has come: its inputs are here, its place in the plan is now, and the
// owner does not need the machine. "When one of these jobs gets active, all other
// jobs are cancelled" (Migol 6.2.2): it is the submitter who does that, so that
// exactly one becomes active.
func (m *Machine) asksFirst(a *attempt) bool {
	if a.asks && a.asked.IsZero() && a.phase == phaseReady && m.standsFor(a) == grid.ReasonNone && m.due(a) {
		a.asked = m.now
		m.askStart(a)
	}
	return a.asks
}

// askStart asks, and asks again soon should nobody answer.
func (m *Machine) askStart(a *attempt) {
	m.out.Send(a.submitter, protocol.MayStart{
		Renewal: m.request(a.submitter), Attempts: []grid.AttemptID{a.id},
	})
	m.out.SetTimer(timerAsk, a.id.String(), m.now.Add(m.cfg.RenewRetry))
}

// onAskTimer asks again, and gives the attempt up when there was no answer for too
// long: others may have use for its place. Its submitter hears of it, since nothing
// else would tell him that this site does not queue the task any more.
func (m *Machine) onAskTimer(a *attempt) {
	switch {
	case !a.asks || a.asked.IsZero() || a.phase != phaseReady:
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
	case m.now.Sub(a.asked) < m.cfg.GiveUp:
		m.askStart(a)
	default:
		m.stop(a, false, "nobody said that it may start")
	}
}

// admitted takes note that an attempt got its first lease: from now on it is one
// like all others.
func (m *Machine) admitted(a *attempt) {
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
