package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// notice says whether a submitter hears that its attempt was stopped.
type notice uint8

const (
	told   notice = iota // of an end that it does not expect: the task moves elsewhere
	untold               // it wants the end, or has given the attempt up
)

// stop ends a live attempt. Its capacity is free when the driver says that it
// has ended. An end that is only waiting for its acknowledgement
// is dropped if it is not to be told, and left alone otherwise.
func (m *Machine) stop(a *attempt, how notice, why string) {
	switch a.phase {
	case phaseExited:
		if how == told {
			return
		}
		m.drop(a, a.exit.CIDs())
	case phaseStopping:
		a.quiet = a.quiet || how == untold
		return
	case phaseAsked:
		m.decline(a, grid.ReasonStale)
	default:
		a.phase, a.quiet = phaseStopping, how == untold
		m.stopTimers(a, timerWatch)
		m.endSaving(a)
		m.halt(a, why)
	}
	r := about(a.id, a.submitter)
	r.Text = why
	m.out.Report(step.LevelInfo, eventDropped, r)
}

// halt ends what the driver has of an attempt, which says when that is done; of a
// reservation it has nothing.
func (m *Machine) halt(a *attempt, why string) {
	switch {
	case a.fetching:
		m.out.Emit(step.StopAttempt{Attempt: a.id})
	case a.quiet:
		m.vacate(a)
		m.drop(a, nil)
	default:
		m.end(a, grid.Exit{Cause: grid.CauseStopped, Text: why})
	}
}

// onFence stops what a later attempt has overtaken and remembers that, so that
// an award that comes late is stale.
func (m *Machine) onFence(from grid.SiteID, msg protocol.Fence) {
	for _, below := range msg.Below {
		if !m.admitOrder(below.Task.Job, from) {
			continue
		}
		m.raiseToken(below.Task, below.Token-1)
		for _, a := range m.roster.ofTask(below.Task) {
			if a.id.Token < below.Token {
				m.stop(a, untold, "fenced")
			}
		}
	}
}

func (m *Machine) onCancel(from grid.SiteID, msg protocol.Cancel) {
	if m.admitOrder(msg.Job, from) {
		m.stopJob(msg.Job, "cancelled")
	}
}

// stopJob ends all attempts of a job; its submitter wants none of them.
func (m *Machine) stopJob(job grid.JobID, why string) {
	for _, a := range m.roster.ofJob(job) {
		m.stop(a, untold, why)
	}
}

// watch arms the timer that ends an attempt which is without a lease for too
// long. The timer is set once; when it fires early, because a lease moved its
// time, it is set again.
func (m *Machine) watch(a *attempt) {
	if a.asks {
		return // it has no lease to lose
	}
	m.out.SetTimer(timerWatch, a.id.String(), m.patience(a))
}

// patience is when an attempt without a new lease is given up: before it was
// started GiveUp, afterwards FrozenLimit, unless its submitter would not want it any more. What
// was promised a start is kept until then, whether anybody asks for it or not.
func (m *Machine) patience(a *attempt) time.Time {
	switch {
	case a.started && a.unwanted:
		return a.leaseUntil.Add(m.cfg.GiveUp)
	case a.started:
		return a.leaseUntil.Add(m.cfg.FrozenLimit)
	case !a.startBy.IsZero():
		return a.startBy.Add(startGuard)
	}
	since := a.accepted
	if a.leaseUntil.After(since) {
		since = a.leaseUntil
	}
	return since.Add(m.cfg.GiveUp)
}

func (m *Machine) onWatchTimer(a *attempt) {
	switch {
	case !a.wantsLease() || a.reserves():
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
	case m.now.Before(m.patience(a)):
		m.watch(a)
	case a.started:
		m.stop(a, told, "frozen for too long")
	case !a.startBy.IsZero():
		m.missStart(a)
	default:
		// Its submitter may count on it, under a lease that was lost on the way.
		m.stop(a, told, "no lease came")
	}
}
