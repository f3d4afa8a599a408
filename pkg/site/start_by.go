package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// promisedStart is the latest start that a job's place promises, the zero time if it promises
// none. Parts that start together learn their start with the award; that is an agreement
// among sites, and no promise.
func (m *Machine) promisedStart(job grid.JobID, c plan.Commitment) time.Time {
	announced, cached := m.cache.Get(m.now, job)
	if !cached || c.Holds || !announced.Value.requirement().Window.Promised() {
		return time.Time{}
	}
	switch c.Class {
	case plan.ClassFixTime:
		return c.Start
	case plan.ClassDeadline:
		return c.LatestStart
	default:
		return time.Time{}
	}
}

// isTooLate reports whether the latest start that an attempt was promised has passed, with the
// time that its place has for setting up the sandbox.
func (m *Machine) isTooLate(a *attempt) bool {
	return !a.startBy.IsZero() && m.now.After(a.startBy.Add(startGuard))
}

// missStart gives an attempt back that cannot begin when it was promised to. It would run for
// nothing where its time matters, and its submitter may still find another site.
func (m *Machine) missStart(a *attempt) {
	why := m.whyLate(a)
	r := about(a.id, a.submitter)
	r.Text = why
	m.out.Report(step.LevelWarn, eventStartMissed, r)
	m.stop(a, told, "the latest start that was promised has passed: "+why)
}

// whyLate says what kept an attempt from beginning.
func (m *Machine) whyLate(a *attempt) string {
	switch reason := m.frozenFor(a); {
	case a.phase == phaseStaging:
		return "its inputs were not here"
	case reason != grid.ReasonNone:
		return reason.String()
	case !a.leaseUntil.After(m.now):
		return "nothing was heard of its submitter"
	default:
		return "its place was not free"
	}
}

// noteBegin remembers when an attempt began.
func (m *Machine) noteBegin(a *attempt) {
	if a.began.IsZero() {
		a.began = m.now
	}
}

// startedAgo is for how long an attempt has been under way; 0 if it has not begun, or began before
// a restart.
func (m *Machine) startedAgo(a *attempt) time.Duration {
	if a.began.IsZero() {
		return 0
	}
	return min(m.now.Sub(a.began), grid.MaxRuntime)
}

// exitedOf tells how an attempt ended, and how long ago.
func (m *Machine) exitedOf(a *attempt) protocol.Exited {
	ago := max(m.now.Sub(a.ended), m.heldFor(a)) // the wall clock may have been set meanwhile
	msg := protocol.Exited{Attempt: a.id, Exit: a.exit, EndedAgo: min(ago, grid.MaxRuntime)}
	if a.lasted > 0 {
		msg.StartedAgo = min(ago+a.lasted, grid.MaxRuntime)
	}
	return msg
}
