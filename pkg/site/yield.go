package site

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerOwner ends the patience with an owner who stays.
const timerOwner = "owner"

// onOwnerBusy takes it that the owner needs the machine. It is no fact: the driver says it
// again after a restart, and what ran has died with it.
func (m *Machine) onOwnerBusy(in step.OwnerBusy) {
	if in.Reason != grid.ReasonOwnerHours {
		in.Reason = grid.ReasonOwnerBusy
	}
	before := m.owner.needs()
	m.owner.busy = in.Reason
	m.yield(before, in.Text)
}

// onOwnerAway takes it that the owner needs the machine no more.
func (m *Machine) onOwnerAway() {
	before := m.owner.needs()
	m.owner.busy = grid.ReasonNone
	m.yield(before, "")
}

// onSpace takes it that the disk is full, or has space again. A full disk is like a busy owner:
// running attempts are frozen before a write of theirs fails, and others go elsewhere.
func (m *Machine) onSpace(in step.SpaceChanged) {
	before := m.owner.needs()
	m.owner.full = in.Full
	m.yield(before, "")
}

// needs is why the site neither offers nor starts anything, and suspends running attempts;
// ReasonNone: it goes on.
func (o owner) needs() grid.Reason {
	if o.full {
		return grid.ReasonDiskFull
	}
	return o.busy
}

// yield does what follows when the reason to yield is another one than before, or none any
// more.
func (m *Machine) yield(before grid.Reason, text string) {
	switch now := m.owner.needs(); now {
	case before:
		m.out.Report(step.LevelDebug, eventStale, step.Report{
			Reason: now, Text: "the machine was needed, or free, before",
		})
	case grid.ReasonNone:
		m.goOn()
	default:
		m.out.Report(step.LevelInfo, eventOwnerBusy, step.Report{Reason: now, Text: text})
		m.stand(before == grid.ReasonNone)
	}
}

// stand lets nothing be offered or started, and freezes running attempts. Leases are still
// renewed, so that nobody takes the attempts for lost. An owner who stays for longer than
// OwnerPatience gets the machine alone; that time begins with the first of several reasons.
func (m *Machine) stand(first bool) {
	if first {
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
	m.noteSuspended(a)
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
	m.noteProceeds(a)
}

// frozenFor returns why a started attempt has to be suspended, ReasonNone if it has not.
func (m *Machine) frozenFor(a *attempt) grid.Reason {
	if why := m.owner.needs(); why != grid.ReasonNone {
		return why
	}
	if a.displaced == grid.ReasonNone && a.surplus {
		return m.owner.share.reason()
	}
	return a.displaced
}

// goOn lets suspended attempts go on, and offers again.
func (m *Machine) goOn() {
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
	why := m.owner.needs()
	if why == grid.ReasonNone {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + timerOwner})
		return
	}
	for _, a := range m.roster.where((*attempt).wantsLease) {
		m.stop(a, told, why.String())
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
