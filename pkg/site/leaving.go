package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// An attempt can leave this site for another one: because its submitter wants it, or because the
// owner does. Here that is prepared, and said: a last checkpoint is taken while the program runs,
// and an attempt is ended when its submitter says so, and not before. Until then it goes on: the
// submitter may find no other site for it.

const (
	timerMove    = "move"    // tells a submitter that its attempt may move; its ID is the attempt's
	timerReturns = "returns" // the hours in which the owner shares the machine end soon
	timerStopAt  = "stop-at" // ends what a pause has let run on
)

const (
	retellMove = time.Minute      // until a submitter is told again that its attempt may move
	closesSoon = 5 * time.Minute  // before the owner's hours end: attempts begin to leave
	freshSave  = 5 * time.Second  // besides what it took: one that is not older is new enough
	hurrySave  = 10 * time.Second // until a last checkpoint that failed is tried again
	askedAgain = time.Minute      // within that a submitter repeats what it has asked
)

// leaving follows whether an attempt is to leave.
type leaving struct {
	since time.Time // it has been suspended since then; zero: it is not
	told  bool      // its submitter was told that it may move
	asked time.Time // when its submitter last asked for a last checkpoint
	next  uint64    // the number of that, as it was told
	again bool      // one is to be taken as soon as the last is answered
	armed bool      // timerMove is set
}

// leavesFor is why the site had rather not go on with an attempt; ReasonNone: it does. What was
// promised a time stays, and so does what only holds capacity or waits in several queues.
func (m *Machine) leavesFor(a *attempt) grid.Reason {
	switch {
	case !a.wantsLease() || a.reserves() || a.asks || !a.startBy.IsZero():
		return grid.ReasonNone
	case m.owner.paused.leave:
		return grid.ReasonPaused
	case !a.leaving.since.IsZero() && m.now.Sub(a.leaving.since) >= m.cfg.MoveAfter:
		return m.frozenFor(a)
	case m.closesOn(a):
		return grid.ReasonOwnerHours
	default:
		return grid.ReasonNone
	}
}

// closesOn reports whether the owner's hours end soon, and before an attempt is expected to.
func (m *Machine) closesOn(a *attempt) bool {
	c, planned := m.plan.Commitment(a.id)
	return a.started && planned && m.closesBefore(c.End)
}

// closesBefore reports whether the owner's hours end soon, and before something does: that would
// leave then, so it does not begin here either.
func (m *Machine) closesBefore(end time.Time) bool {
	at := m.owner.returns
	return !at.IsZero() && !m.now.Before(at.Add(-closesSoon)) && end.After(at)
}

// loses reports whether an attempt that ends here could go on nowhere: it has begun, and no state
// of it was ever saved.
func (a *attempt) loses() bool {
	s := &a.saving
	return a.started && !s.able && len(s.from)+len(s.kept) == 0
}

// shownLeave is why an attempt leaves, as its submitter was told.
func (m *Machine) shownLeave(a *attempt) grid.Reason {
	if !a.leaving.told {
		return grid.ReasonNone
	}
	return m.leavesFor(a)
}

// reviewLeaving finds the attempts that the site wants to leave, or does not any more.
func (m *Machine) reviewLeaving() {
	for _, a := range m.roster.where((*attempt).wantsLease) {
		m.reviewLeave(a)
	}
}

func (m *Machine) reviewLeave(a *attempt) {
	switch why := m.leavesFor(a); {
	case why == grid.ReasonNone && a.leaving.told:
		a.leaving.told = false
		m.stopLeaving(a)
		m.sendMovable(a, why, 0)
	case why != grid.ReasonNone && !a.leaving.told && !a.loses():
		a.leaving.told = true
		r := about(a.id, a.submitter)
		r.Reason = why
		m.out.Report(step.LevelInfo, eventMayMove, r)
		m.offerMove(a, why, m.lastSave(a))
	}
}

// offerMove tells a submitter that its attempt may move, and that again after a while.
func (m *Machine) offerMove(a *attempt, why grid.Reason, next uint64) {
	m.sendMovable(a, why, next)
	m.armMove(a, m.now.Add(retellMove))
}

func (m *Machine) armMove(a *attempt, at time.Time) {
	a.leaving.armed = true
	m.out.SetTimer(timerMove, a.id.String(), at)
}

func (m *Machine) onMoveTimer(a *attempt) {
	a.leaving.armed = false
	switch why := m.leavesFor(a); {
	case why == grid.ReasonNone:
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
	case !a.leaving.told:
		m.reviewLeave(a)
	default:
		m.offerMove(a, why, a.saving.untold.Number)
	}
}

// noteSuspended and noteProceeds follow an attempt that is suspended: after a while it may move.
func (m *Machine) noteSuspended(a *attempt) {
	a.leaving.since = m.now
	if !a.leaving.told && !a.loses() {
		m.armMove(a, m.now.Add(m.cfg.MoveAfter))
	}
}

func (m *Machine) noteProceeds(a *attempt) {
	a.leaving.since = time.Time{}
	if !a.leaving.told {
		m.stopLeaving(a)
	}
	m.reviewLeave(a)
}

// rearmMoves follows that the owner has set another time after which suspended attempts may move.
func (m *Machine) rearmMoves() {
	for _, a := range m.roster.where((*attempt).isUnderWay) {
		if since := a.leaving.since; !since.IsZero() && !a.leaving.told && !a.loses() {
			m.armMove(a, since.Add(m.cfg.MoveAfter))
		}
	}
}

func (m *Machine) stopLeaving(a *attempt) {
	if a.leaving.armed {
		a.leaving.armed = false
		m.stopTimers(a, timerMove)
	}
}

// lastSave makes the latest checkpoint of an attempt as new as it can be, and returns the number
// of that; 0: none is to be expected.
func (m *Machine) lastSave(a *attempt) uint64 {
	s := &a.saving
	fresh := len(s.kept) > 0 && m.now.Sub(s.taken) < freshSave+s.cost
	switch {
	case a.phase != phaseRunning || a.suspended || !a.isSaved():
		return s.untold.Number
	case s.asked, fresh:
		return s.number
	case s.untold.Number != 0:
		a.leaving.again = true
		m.sendCheckpointed(a)
		return s.number + 1
	default:
		m.takeSave(a)
		return s.number
	}
}

// onMove prepares that an attempt leaves, or ends it, as its submitter says.
func (m *Machine) onMove(from grid.SiteID, msg protocol.Move) {
	a := m.roster.all[msg.Attempt]
	switch {
	case a == nil:
		m.out.Report(step.LevelDebug, eventUnknownAttempt, about(msg.Attempt, from))
	case a.submitter != from:
		m.out.Report(step.LevelWarn, eventNotSubmitter, about(msg.Attempt, from))
	case a.phase == phaseExited:
		m.out.Send(from, m.exitedOf(a))
	case !a.wantsLease():
		m.out.Report(step.LevelDebug, eventStale, about(a.id, from))
	case msg.Stop:
		m.stop(a, told, "its submitter moves it")
	default:
		m.sendMovable(a, m.leavesFor(a), m.askedSave(a))
	}
}

// askedSave is the number of the last checkpoint of an attempt, as its submitter asks for it. When
// it asks again no further one is taken: one that is slow to come would never be the last.
func (m *Machine) askedSave(a *attempt) uint64 {
	l := &a.leaving
	repeated := m.now.Sub(l.asked) < askedAgain && l.next > a.saving.held
	if l.asked = m.now; !repeated || a.phase != phaseRunning || a.suspended {
		l.next = m.lastSave(a)
	}
	return l.next
}

// isToLeave reports whether somebody waits for the last checkpoint of an attempt.
func (m *Machine) isToLeave(a *attempt) bool {
	return a.leaving.told || m.now.Sub(a.leaving.asked) < askedAgain
}

func (m *Machine) sendMovable(a *attempt, why grid.Reason, next uint64) {
	m.out.Send(a.submitter, protocol.Movable{
		Attempt: a.id, Reason: why, Saves: a.saving.able, Begun: a.started, Next: next,
	})
}

// onOwnerReturns takes it when the hours end in which the owner shares the machine.
func (m *Machine) onOwnerReturns(in step.OwnerReturns) {
	m.owner.returns = in.At
	if soon := in.At.Add(-closesSoon); !in.At.IsZero() && soon.After(m.now) {
		m.out.SetTimer(timerReturns, "", soon)
	}
	m.reviewLeaving()
}

// onStopAtTimer ends what the owner has let run on for a while.
func (m *Machine) onStopAtTimer() {
	if at := m.owner.paused.stopAt; at.IsZero() || m.now.Before(at) {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + timerStopAt})
		return
	}
	for _, a := range m.roster.where((*attempt).wantsLease) {
		if !a.reserves() {
			m.stop(a, told, grid.ReasonPaused.String())
		}
	}
}
