package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// stop ends a live attempt. Its capacity is free when the driver says that it
// has ended. A quiet stop is one that the submitter wants or has given up on:
// it hears no more of it. An end that is only waiting for its acknowledgement
// is dropped by a quiet stop and left alone by another.
func (m *Machine) stop(a *attempt, quiet bool, why string) {
	switch a.phase {
	case phaseExited:
		if !quiet {
			return
		}
		m.drop(a, a.exit.CIDs())
	case phaseStopping:
		a.quiet = a.quiet || quiet
		return
	case phaseAsked:
		m.decline(a, grid.ReasonStale)
	default:
		a.phase, a.quiet = phaseStopping, quiet
		m.stopTimers(a, timerWatch)
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
		if !m.authorised(below.Task.Job, from) {
			continue
		}
		m.raiseToken(below.Task, below.Token-1)
		for _, a := range m.roster.ofTask(below.Task) {
			if a.id.Token < below.Token {
				m.stop(a, true, "fenced")
			}
		}
	}
}

func (m *Machine) onCancel(from grid.SiteID, msg protocol.Cancel) {
	if m.authorised(msg.Job, from) {
		m.stopJob(msg.Job, "cancelled")
	}
}

// stopJob ends all attempts of a job; its submitter wants none of them.
func (m *Machine) stopJob(job grid.JobID, why string) {
	for _, a := range m.roster.ofJob(job) {
		m.stop(a, true, why)
	}
}

// raiseToken remembers the highest token of a task that this site knows to have
// been given out.
func (m *Machine) raiseToken(task grid.TaskID, token grid.Token) {
	if token > m.highestToken(task) {
		m.tokens.put(task, token)
	}
}

// highestToken is the highest token known of a task, 0 if none.
func (m *Machine) highestToken(task grid.TaskID) grid.Token {
	token, _ := m.tokens.get(task)
	if list := m.roster.byTask[task]; len(list) > 0 {
		token = max(token, list[len(list)-1].id.Token)
	}
	return token
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
// started GiveUp, afterwards FrozenLimit.
func (m *Machine) patience(a *attempt) time.Time {
	if a.started {
		return a.leaseUntil.Add(m.cfg.FrozenLimit)
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
		m.stop(a, false, "frozen for too long")
	default:
		m.stop(a, true, "no lease came")
	}
}
