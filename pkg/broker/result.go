package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// onExited takes the end of an attempt. An end of the job's own doing is final,
// and its outputs are fetched before the site may forget them; any other sends
// the task elsewhere.
func (m *Machine) onExited(from grid.SiteID, msg protocol.Exited) {
	index := msg.Attempt.Task.Index
	if m.strategyKnows(from, msg.Attempt, msg) {
		return
	}
	m.endsUnknown(from, msg.Attempt, msg.Exit)
	j, t := m.jobs.current(from, msg.Attempt)
	if t == nil || t.phase.Ended() || t.phase == grid.PhaseWaiting && !t.silent {
		// Not awaited, or heard before: a site repeats an end until it is
		// acknowledged, and a failure is to be counted once.
		m.rights.acknowledge(from, msg.Attempt)
		return
	}
	if t.phase == grid.PhaseCollecting {
		return // repeated; the acknowledgement follows when the outputs are here
	}
	m.stopTimer(timerLease, msg.Attempt.String())
	m.unwait(j, index)
	t.leaseEnd, t.silent = timeZero, false
	if msg.Exit.Cause.Final() {
		exit := msg.Exit
		t.exit = &exit
		m.judge(j, t, msg)
		t.move(grid.PhaseCollecting)
		m.saveTask(j, index)
		m.collect(j, index)
		return
	}
	m.failedAt(j, index, msg.Exit)
}

// collect fetches what an attempt has left.
func (m *Machine) collect(j *job, index uint32) {
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

// onCollected: the outputs are here, or could not be fetched. When they cannot be
// had for long enough the task is computed again elsewhere.
func (m *Machine) onCollected(in step.Collected) {
	j, t := m.jobs.collecting(in.Attempt)
	if t == nil {
		return
	}
	index := in.Attempt.Task.Index
	if in.Local && in.Problem != "" {
		m.awaitSpace(j, index, in.Problem)
		return
	}
	t.standing = grid.ReasonNone
	if in.Problem == "" {
		m.finish(j, index)
		return
	}
	if m.now.Before(t.collectBy) {
		m.out.Report(step.LevelWarn, eventCollectFailed, step.Report{
			Attempt: in.Attempt, Site: t.site, Text: in.Problem,
		})
		m.setTimer(timerCollect, in.Attempt.String(), m.now.Add(m.cfg.CollectRetry))
		return
	}
	m.giveUpOutputs(j, index, in.Problem)
}

// onCollectTimer tries again to fetch outputs.
func (m *Machine) onCollectTimer(id grid.AttemptID) {
	j, t := m.jobs.collecting(id)
	if t == nil {
		return
	}
	if m.peers.refuses(t.site) && !m.now.Before(t.collectBy) {
		m.giveUpOutputs(j, id.Task.Index, "its site refuses connections")
		return
	}
	m.collect(j, id.Task.Index)
}

// giveUpOutputs computes a task again elsewhere.
func (m *Machine) giveUpOutputs(j *job, index uint32, problem string) {
	j.tasks[index].result = result{}
	why := "its outputs could not be fetched: " + problem
	m.failedAt(j, index, grid.Exit{Cause: grid.CauseData, Text: why})
}

// hurryCollect shortens the time in which the outputs of an attempt must be had whose
// site has died. What is being fetched from it may only notice much later.
func (r *run) hurryCollect(j *job, index uint32) {
	t := &j.tasks[index]
	if by := r.now.Add(r.cfg.CollectDead); by.Before(t.collectBy) {
		t.collectBy = by
		r.setTimer(timerCollect, j.attempt(index).String(), by)
	}
}

// collecting finds the job and task of an attempt whose outputs are being fetched.
func (l *jobs) collecting(id grid.AttemptID) (*job, *task) {
	j, t := l.task(id.Task)
	if t == nil || t.token != id.Token || t.phase != grid.PhaseCollecting {
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
	m.peers.praise(t.site)
	m.endTask(j, index, phase)
	m.out.Report(step.LevelInfo, "task_"+phase.String(), step.Report{
		Attempt: id, Site: t.site, Value: float64(t.exit.Status()),
	})
	m.rights.acknowledge(t.site, id)
	m.endIfDone(j)
}
