package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// exited takes the end of an attempt. An end of the job's own doing is final,
// and its outputs are fetched before the site may forget them; any other sends
// the task elsewhere.
func (m *Machine) exited(from grid.SiteID, msg protocol.Exited) {
	if m.rivalExited(from, msg) {
		return
	}
	j, t := m.current(from, msg.Attempt)
	if t == nil || t.phase.Ended() || t.phase == grid.PhaseWaiting && !t.silent {
		// Not awaited, or heard before: a site repeats an end until it is
		// acknowledged, and a failure is to be counted once.
		m.out.Send(from, protocol.ExitAck{Attempts: []grid.AttemptID{msg.Attempt}})
		return
	}
	if t.phase == grid.PhaseCollecting {
		return // repeated; the acknowledgement follows when the outputs are here
	}
	index := msg.Attempt.Task.Index
	m.out.StopTimer(timerLease, msg.Attempt.String())
	m.notWaiting(j, index)
	t.leaseEnd, t.silent = timeZero, false
	if msg.Exit.Cause.Final() {
		exit := msg.Exit
		t.exit, t.phase = &exit, grid.PhaseCollecting
		m.saveTask(j, index)
		m.startCollect(j, index)
		return
	}
	m.failedAt(j, index, msg.Exit)
}

// failedAt moves a task whose site could not bring it to an end.
func (m *Machine) failedAt(j *job, index uint32, exit grid.Exit) {
	t := &j.tasks[index]
	id := j.attempt(index)
	t.log(exit.Cause.String()+": "+exit.Text, m.now)
	t.remember(t.site)
	m.out.Emit(step.Report{Event: "attempt_failed", Level: step.LevelWarn, Attempt: id, Site: t.site, Text: exit.Cause.String()})
	if exit.Cause != grid.CauseStopped { // an owner who wants the machine back is no fault
		t.failures++
		m.blame(t.site)
	}
	site := t.site
	m.requeue(j, index)
	m.out.Send(site, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	m.placeWaiting(j)
}

func (m *Machine) startCollect(j *job, index uint32) {
	t := &j.tasks[index]
	outputs := t.exit.CIDs()
	if len(outputs) == 0 {
		m.finish(j, index)
		return
	}
	if t.collectBy.IsZero() {
		t.collectBy = m.now.Add(m.cfg.CollectGiveUp)
	}
	m.out.Emit(step.Collect{Attempt: j.attempt(index), Outputs: outputs, From: t.site})
}

// collected: the outputs are here, or could not be fetched. When they cannot be
// had for long enough the task is computed again elsewhere.
func (m *Machine) collected(in step.Collected) {
	j, t := m.collecting(in.Attempt)
	if t == nil {
		return
	}
	index := in.Attempt.Task.Index
	if in.Problem == "" {
		m.finish(j, index)
		return
	}
	if m.now.Before(t.collectBy) {
		m.out.Emit(step.Report{
			Event: "collect_failed", Level: step.LevelWarn, Attempt: in.Attempt, Site: t.site, Text: in.Problem,
		})
		m.out.SetTimer(timerCollect, in.Attempt.String(), m.now.Add(m.cfg.CollectRetry))
		return
	}
	m.giveUpOutputs(j, index, in.Problem)
}

// giveUpOutputs computes a task again elsewhere.
func (m *Machine) giveUpOutputs(j *job, index uint32, problem string) {
	t := &j.tasks[index]
	t.exit, t.collectBy = nil, timeZero
	m.failedAt(j, index, grid.Exit{Cause: grid.CauseData, Text: "its outputs could not be fetched: " + problem})
}

// hurryCollect shortens the time in which the outputs of an attempt must be had whose
// site has died. What is being fetched from it may only notice much later.
func (m *Machine) hurryCollect(j *job, index uint32) {
	t := &j.tasks[index]
	if by := m.now.Add(m.cfg.CollectDead); by.Before(t.collectBy) {
		t.collectBy = by
		m.out.SetTimer(timerCollect, j.attempt(index).String(), by)
	}
}

func (m *Machine) collectAgain(id grid.AttemptID) {
	j, t := m.collecting(id)
	if t == nil {
		return
	}
	if p, known := m.members[t.site]; known && p.dead && !m.now.Before(t.collectBy) {
		m.giveUpOutputs(j, id.Task.Index, "its site has died")
		return
	}
	m.startCollect(j, id.Task.Index)
}

func (m *Machine) collecting(id grid.AttemptID) (*job, *task) {
	j, ok := m.jobs[id.Task.Job]
	if !ok || id.Task.Index >= uint32(len(j.tasks)) {
		return nil, nil
	}
	t := &j.tasks[id.Task.Index]
	if t.token != id.Token || t.phase != grid.PhaseCollecting {
		return nil, nil
	}
	return j, t
}

// finish ends a task with the result that is now here.
func (m *Machine) finish(j *job, index uint32) {
	t := &j.tasks[index]
	id := j.attempt(index)
	phase := grid.PhaseDone
	if t.exit.Status() != 0 {
		phase = grid.PhaseFailed
	}
	t.log(t.exit.Cause.String(), m.now)
	m.faults.Succeeded(t.site)
	m.saveFault(t.site)
	m.endTask(j, index, phase)
	m.out.Emit(step.Report{
		Event: "task_" + phase.String(), Level: step.LevelInfo, Attempt: id, Site: t.site, Value: float64(t.exit.Status()),
	})
	m.out.Send(t.site, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	m.jobEndedIfDone(j)
}

// endTask moves a task to a phase that it stays in.
func (m *Machine) endTask(j *job, index uint32, phase grid.Phase) {
	t := &j.tasks[index]
	j.place(index)
	t.phase = phase
	t.leaseEnd = timeZero
	j.open--
	m.saveTask(j, index)
}

func (m *Machine) jobEndedIfDone(j *job) {
	if j.open == 0 && j.ended.IsZero() {
		m.jobEnded(j, protocol.ClearEnded)
	}
}

// jobEnded tells those who were asked, and keeps the record for a while.
func (m *Machine) jobEnded(j *job, kind protocol.ClearKind) {
	j.ended, j.round = m.now, nil
	j.offers = make(map[grid.SiteID]*candidate)
	m.saveJob(j)
	for _, name := range []string{timerRound, timerExplain, timerAgain} {
		m.out.StopTimer(name, string(j.id))
	}
	if j.firm() {
		m.endHold(j)
		m.out.StopTimer(timerWindow, string(j.id))
	}
	m.clear(j, kind)
	m.report(step.LevelInfo, "job_ended", j.attemptOfJob(), m.cfg.Self)
	m.out.SetTimer(timerForget, string(j.id), m.now.Add(m.cfg.KeepEnded))
	m.lookAfter(j)
}
