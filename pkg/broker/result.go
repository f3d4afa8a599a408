package broker

import (
	"slices"

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
		if try, is := m.jobs.lostTry(from, msg); is {
			m.recall(try, msg)
			return
		}
		m.bringsNothing(m.jobs, from, msg.Attempt)
		// Not awaited, or heard before: a site repeats an end until it is
		// acknowledged, and a failure is to be counted once.
		m.rights.acknowledge(from, msg.Attempt)
		return
	}
	if t.phase == grid.PhaseCollecting {
		if m.hearAgain(j, t, msg); t.doubt.fetched && !m.doubtful(t) {
			m.finish(j, index)
		}
		return // repeated; the acknowledgement follows when the outputs are here
	}
	m.stopTimer(timerLease, msg.Attempt.String())
	desk{m, j}.unwait(index)
	t.leaseEnd, t.silent = timeZero, false
	if missing := j.missing(index, msg.Exit); missing != "" {
		text := "it is said to have ended well, and " + missing + " is not there"
		m.peers.breach(from, t.awardedAt, text)
		m.failedAt(j, index, grid.Exit{Cause: grid.CauseSandbox, Text: text}, suspectSite)
		return
	}
	if t.isMoved(msg.Exit) {
		m.moved(j, index)
		m.rights.acknowledge(from, msg.Attempt)
		m.placeAgain(j)
		return
	}
	if !msg.Exit.Cause.Final() {
		m.failedAt(j, index, msg.Exit, suspectTask)
		return
	}
	if j.runsAgain(t, msg.Exit) {
		m.failedAt(j, index, msg.Exit, suspectNobody)
		return
	}
	m.judge(j, t, msg)
	m.keep(j, index, msg.Exit)
	m.collect(j, index)
}

// keep takes an end for good. What the attempt has left is to be fetched then.
func (r *run) keep(j *job, index uint32, exit grid.Exit) {
	t := &j.tasks[index]
	t.exit = &exit
	r.endMove(j, index)
	t.move(grid.PhaseCollecting)
	r.saveTask(j, index)
}

// missing names an output that the task declares and an attempt should have left, as its
// site says that it has ended well: one that has not written it ends for that cause.
func (e *enquiry) missing(index uint32, exit grid.Exit) string {
	if exit.Cause != grid.CauseExited || exit.Code != 0 || len(e.spec.Spec.Outputs) == 0 {
		return ""
	}
	for _, out := range e.work(index).Outputs {
		has := func(p grid.Produced) bool { return p.Path == out.Path }
		if !slices.ContainsFunc(exit.Outputs, has) {
			return out.Path
		}
	}
	return ""
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
	m.out.Emit(step.Collect{
		Attempt: j.attempt(index), Outputs: outputs, From: t.site,
		MostBytes: j.mostLeft(), Key: j.spec.Encryption.Key,
	})
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
	if m.now.Before(t.collectBy) && !in.Forged {
		m.out.Report(step.LevelWarn, eventCollectFailed, step.Report{
			Attempt: in.Attempt, Site: t.site, Text: in.Problem,
		})
		m.setTimer(timerCollect, in.Attempt.String(), m.now.Add(m.cfg.CollectRetry))
		return
	}
	lost := t.outputsLost(in.Problem)
	if in.Forged || m.peers.reachable(t.site) {
		m.peers.breach(t.site, t.awardedAt, lost.Text)
	}
	m.failedAt(j, index, lost, suspectSite)
}

// onCollectTimer tries again to fetch outputs.
func (m *Machine) onCollectTimer(id grid.AttemptID) {
	j, t := m.jobs.collecting(id)
	if t == nil {
		return
	}
	if t.doubt.fetched { // whatever has become of its site
		m.finish(j, id.Task.Index)
		return
	}
	if m.peers.refuses(t.site) && !m.now.Before(t.collectBy) {
		lost := t.outputsLost("its site refuses connections")
		m.failedAt(j, id.Task.Index, lost, suspectSite)
		return
	}
	m.collect(j, id.Task.Index)
}

// outputsLost forgets how a task has ended, and is the failure for which it is computed again
// elsewhere.
func (t *task) outputsLost(problem string) grid.Exit {
	t.result = result{}
	why := "its outputs could not be fetched: " + problem
	return grid.Exit{Cause: grid.CauseData, Text: why}
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

// reportEnd says how a task has ended by its own doing.
func (r *run) reportEnd(id grid.AttemptID, t *task) {
	r.out.Report(step.LevelInfo, "task_"+t.phase.String(), step.Report{
		Attempt: id, Site: t.site, Value: float64(t.exit.Status()),
	})
}

// finish ends a task with the result that is now here, once it is known how late that was.
func (m *Machine) finish(j *job, index uint32) {
	t := &j.tasks[index]
	id := j.attempt(index)
	if m.doubtful(t) {
		t.doubt.fetched = true
		m.setTimer(timerCollect, id.String(), t.doubt.until)
		return
	}
	phase := grid.PhaseDone
	if t.exit.Status() != 0 {
		phase = grid.PhaseFailed
	}
	t.log(t.exit.Cause.String(), m.now)
	m.endTask(j, index, phase)
	if j.of > 0 { // whether it counts is decided when all that ended in this Step is known
		t.vote()
		m.out.Report(step.LevelDebug, eventCopyEnded, step.Report{
			Attempt: id, Site: t.site, Text: t.digest,
		})
	} else {
		m.peers.praise(t)
		m.reportEnd(id, t)
	}
	m.rights.acknowledge(t.site, id)
	m.endIfDone(j)
}
