package site

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerOwner ends the patience with an owner who stays.
const timerOwner = "owner"

// onOwnerBusy yields: nothing is offered or started, and running attempts are frozen.
// Leases are still renewed, so that nobody takes the attempts for lost. An owner
// who stays for longer than OwnerPatience gets the machine alone. It is no
// fact: the driver says it again after a restart, and what ran has died with it.
func (m *Machine) onOwnerBusy(in step.OwnerBusy) {
	if in.Reason != grid.ReasonOwnerHours && in.Reason != grid.ReasonDiskFull {
		in.Reason = grid.ReasonOwnerBusy
	}
	before := m.owner.busy
	m.owner.busy = in.Reason
	if before == in.Reason {
		m.out.Report(step.LevelDebug, eventStale, step.Report{
			Reason: in.Reason, Text: "the owner was busy before",
		})
		return
	}
	m.out.Report(step.LevelInfo, eventOwnerBusy, step.Report{Reason: in.Reason, Text: in.Text})
	if before == grid.ReasonNone {
		m.out.SetTimer(timerOwner, "", m.now.Add(m.cfg.OwnerPatience))
	}
	for _, a := range m.roster.where((*attempt).wantsLease) {
		if a.started {
			m.suspend(a)
		} else {
			m.tell(a)
		}
	}
}

// suspend suspends an attempt; one that is frozen already tells its reason.
func (m *Machine) suspend(a *attempt) {
	if a.suspended {
		m.sendFrozen(a)
		return
	}
	a.suspended = true
	m.out.Emit(step.SuspendAttempt{Attempt: a.id})
	if a.phase == phaseFrozen {
		m.sendFrozen(a)
	}
}

// proceed ends suspend, unless there is another reason to be suspended.
func (m *Machine) proceed(a *attempt) {
	if !a.suspended || m.frozenFor(a) != grid.ReasonNone {
		return
	}
	a.suspended = false
	m.out.Emit(step.ContinueAttempt{Attempt: a.id})
}

// frozenFor returns why a started attempt has to be suspended, ReasonNone if it has not.
func (m *Machine) frozenFor(a *attempt) grid.Reason {
	if m.owner.busy != grid.ReasonNone {
		return m.owner.busy
	}
	return a.displaced
}

// onOwnerAway lets suspended attempts go on, and offers again.
func (m *Machine) onOwnerAway() {
	if m.owner.busy == grid.ReasonNone {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "the owner was away before"})
		return
	}
	m.owner.busy = grid.ReasonNone
	m.out.StopTimer(timerOwner, "")
	m.out.Report(step.LevelInfo, eventOwnerAway, step.Report{})
	for _, a := range m.roster.where((*attempt).wantsLease) {
		m.proceed(a)
		if a.phase == phaseFrozen && !a.leaseUntil.After(m.now) {
			m.sendFrozen(a) // its lease ended meanwhile
		}
		m.tryStart(a)
	}
	m.noteRoom()
}

// onOwnerTimer stops the attempts that wait for an owner who stays.
func (m *Machine) onOwnerTimer() {
	if m.owner.busy == grid.ReasonNone {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + timerOwner})
		return
	}
	for _, a := range m.roster.where((*attempt).wantsLease) {
		m.stop(a, told, m.owner.busy.String())
	}
}

// sendFrozen tells the submitter of an attempt that it is frozen, and why.
func (m *Machine) sendFrozen(a *attempt) {
	msg := m.progressOf(a, grid.PhaseFrozen)
	if a.suspended {
		msg.Reason = m.frozenFor(a)
	}
	m.out.Send(a.submitter, msg)
}
