package site

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The timers of an attempt; their ID is the attempt's as text.
const (
	timerWatch  = "watch"  // it has been without a lease for too long
	timerExited = "exited" // its end is told again
)

// parseAttempt reads what AttemptID.String wrote.
func parseAttempt(text string) (grid.AttemptID, bool) {
	task, token, found := strings.Cut(text, "#")
	id, err := grid.ParseTaskID(task)
	n, errToken := strconv.ParseUint(token, 10, 64)
	return grid.AttemptID{Task: id, Token: grid.Token(n)}, found && err == nil && errToken == nil
}

// attemptTimer finds the attempt that a timer is about.
func (m *Machine) attemptTimer(key step.TimerKey, then func(*attempt)) {
	id, ok := parseAttempt(key.ID)
	if a := m.roster.all[id]; ok && a != nil {
		then(a)
		return
	}
	m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + key.Name})
}

// find finds the attempt that an input is about and wants it in one of the
// phases from first to last; anything else is reported and gives nil.
func (m *Machine) find(id grid.AttemptID, first, last phase) *attempt {
	a := m.roster.all[id]
	switch {
	case a == nil:
		m.out.Report(step.LevelDebug, eventUnknownAttempt, about(id, ""))
	case a.phase < first || a.phase > last:
		r := about(id, a.submitter)
		r.Text = "phase " + a.phase.String()
		m.out.Report(step.LevelDebug, eventStale, r)
	default:
		return a
	}
	return nil
}

func (m *Machine) onStageProgress(in step.StageProgress) {
	a := m.find(in.Attempt, phaseStaging, phaseStaging)
	if a == nil {
		return
	}
	if !a.reported.IsZero() && m.now.Sub(a.reported) < progressInterval && in.Done < in.Total {
		return
	}
	a.reported = m.now
	m.sendProgress(a, grid.PhaseStaging, in.Done, in.Total)
}

// sendProgress tells the submitter how an attempt goes.
func (m *Machine) sendProgress(a *attempt, p grid.Phase, done, total int64) {
	msg := m.progressOf(a, p)
	msg.Done, msg.Total = max(done, 0), max(total, 0)
	if p == grid.PhaseStaging {
		msg.StartsIn, msg.Reason = m.startsIn(a), m.frozenFor(a)
	}
	m.out.Send(a.submitter, msg)
}

func (m *Machine) progressOf(a *attempt, p grid.Phase) protocol.Progress {
	msg := protocol.Progress{Attempt: a.id, Phase: p}
	if p > grid.PhaseStaging {
		msg.StartedAgo = m.startedAgo(a)
	}
	return msg
}

func (m *Machine) onStaged(in step.Staged) {
	a := m.find(in.Attempt, phaseStaging, phaseStaging)
	if a == nil {
		return
	}
	if in.Problem != "" {
		r := about(a.id, a.submitter)
		r.Text = in.Problem
		m.out.Report(step.LevelWarn, eventStagingFailed, r)
		exit := grid.Exit{Cause: grid.CauseData, Text: in.Problem}
		if in.Local {
			exit.Cause = grid.CauseStopped // no fault of the task, nor a try of its job
		}
		m.end(a, exit)
		return
	}
	m.onStagedSaved(a, in)
	a.phase = phaseReady
	m.plan.Ready(m.now, a.id)
	m.tryStart(a) // one whose place has come before; the others with what the plan says
}

// tryStart starts an attempt if its inputs are here, its lease runs, its planned
// start has come and the owner does not need the machine. There is no other way
// to start one.
func (m *Machine) tryStart(a *attempt) {
	m.askInTurn(a)
	ready := a.phase == phaseReady && !a.asks && !a.reserves()
	if !ready || m.frozenFor(a) != grid.ReasonNone || !a.leaseUntil.After(m.now) || !m.isDue(a) {
		return
	}
	if m.isTooLate(a) {
		m.missStart(a)
		return
	}
	if m.isUnvouched(a) { // the list is another one than when it was awarded
		m.stopUnvouched(a)
		return
	}
	a.phase, a.started, a.vouched = phaseStarting, true, m.vouching.keys.Any()
	m.save(a)
	m.out.Emit(step.StartAttempt{
		Attempt: a.id, Task: a.task, LeaseUntil: a.leaseUntil, Vouched: a.vouched,
	})
	m.out.Report(step.LevelInfo, eventStarted, about(a.id, a.submitter))
}

func (m *Machine) onStarted(in step.AttemptStarted) {
	a := m.find(in.Attempt, phaseStarting, phaseRunning)
	if a == nil {
		return
	}
	if a.phase == phaseRunning && a.preparing == in.Preparing {
		m.out.Report(step.LevelDebug, eventStale, about(a.id, a.submitter))
		return
	}
	a.phase, a.preparing = phaseRunning, in.Preparing
	if !a.suspended { // else it does nothing before it is resumed
		m.noteBegin(a)
		if !a.preparing {
			a.saving.runs(m.now)
		}
		m.sendRunning(a)
	}
}

func (m *Machine) onFrozen(in step.AttemptFrozen) {
	if a := m.find(in.Attempt, phaseStarting, phaseRunning); a != nil {
		a.phase = phaseFrozen
		a.saving.rests(m.now)
		r, level, event := about(a.id, a.submitter), step.LevelWarn, eventFrozen
		if a.suspended {
			r.Reason, level, event = m.frozenFor(a), step.LevelInfo, eventSuspended
		}
		m.out.Report(level, event, r)
		m.sendFrozen(a) // likely lost where the submitter was silent
	}
}

func (m *Machine) onResumed(in step.AttemptResumed) {
	if a := m.find(in.Attempt, phaseFrozen, phaseFrozen); a != nil {
		a.phase = phaseRunning
		m.noteBegin(a)
		a.saving.runs(m.now)
		m.out.Report(step.LevelInfo, eventResumed, about(a.id, a.submitter))
		m.sendProgress(a, grid.PhaseRunning, 0, 0)
	}
}

func (m *Machine) onExited(in step.AttemptExited) {
	a := m.find(in.Attempt, phaseStaging, phaseStopping)
	if a == nil {
		return
	}
	if a.phase == phaseStopping && a.quiet {
		m.vacate(a)
		m.drop(a, in.Exit.CIDs())
		return
	}
	if a.overran && in.Exit.Cause == grid.CauseStopped {
		in.Exit.Cause, in.Exit.Text = grid.CauseTimeLimit, grid.ReasonOverrun.String()
	}
	m.end(a, in.Exit)
}

// end turns an attempt into an end that is told to its submitter until that
// acknowledges it, and gives its capacity back.
func (m *Machine) end(a *attempt, exit grid.Exit) {
	m.vacate(a)
	m.stopTimers(a, timerWatch)
	m.endSaving(a)
	a.phase, a.exit, a.repeat = phaseExited, presentable(exit), firstExitRepeat
	a.lasted, a.heldFrom = m.startedAgo(a), m.now
	a.ended = time.UnixMilli(m.now.UnixMilli()).UTC()
	a.shown = m.newEndedFact(a.ended)
	m.save(a)
	r := about(a.id, a.submitter)
	r.Text = a.exit.Cause.String()
	m.out.Report(step.LevelInfo, eventExited, r)
	m.sendExited(a)
}

func (m *Machine) onExitAck(from grid.SiteID, msg protocol.ExitAck) {
	for _, id := range msg.Attempts {
		a := m.roster.all[id]
		switch {
		case a == nil:
			m.out.Report(step.LevelDebug, eventUnknownAttempt, about(id, from))
		case a.submitter != from:
			m.out.Report(step.LevelWarn, eventNotSubmitter, about(id, from))
		case a.isLive():
			m.out.Report(step.LevelWarn, eventPrematureAck, about(id, from))
		default:
			m.out.Report(step.LevelDebug, eventResultAcked, about(id, from))
			m.drop(a, a.exit.CIDs())
		}
	}
}

// drop removes an attempt that holds no capacity, and all it left here.
func (m *Machine) drop(a *attempt, left []grid.CID) {
	m.stopTimers(a, timerWatch, timerExited)
	m.endSaving(a)
	m.forget(a)
	m.out.Emit(step.Discard{Attempt: a.id, Outputs: left})
	m.noteShare()
}

func (m *Machine) stopTimers(a *attempt, names ...string) {
	for _, name := range names {
		m.out.StopTimer(name, a.id.String())
	}
}

// presentable makes an exit that can be sent of whatever the driver reports.
func presentable(exit grid.Exit) grid.Exit {
	exit.Text = strings.ToValidUTF8(exit.Text, "?")
	if len(exit.Text) > maxExitText {
		cut := maxExitText
		for !utf8.RuneStart(exit.Text[cut]) {
			cut--
		}
		exit.Text = exit.Text[:cut]
	}
	if err := exit.Validate(); err != nil {
		return grid.Exit{
			Cause: grid.CauseSandbox, Text: fmt.Sprintf("the sandbox reported nonsense: %.200s", err),
		}
	}
	return exit
}
