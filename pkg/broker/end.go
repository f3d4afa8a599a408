package broker

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// endTask moves a task to a phase that it stays in.
func (r *run) endTask(j *job, index uint32, phase grid.Phase) {
	j.end(index, phase)
	r.endMove(j, index)
	r.dropSaved(j, index)
	r.settle(j, index)
	r.saveTask(j, index)
	if j.of > 0 {
		r.compare = append(r.compare, j.id)
	}
}

// endIfDone ends a job whose tasks all have, or of which too many have failed.
func (m *Machine) endIfDone(j *job) {
	if why := j.stopping(); why != "" {
		j.exitAll(grid.CauseStopped, why)
		m.report(step.LevelWarn, eventJobStopped, j.about(), m.cfg.Here)
		m.withdraw(j, grid.PhaseFailed, why)
	}
	if j.open == 0 && j.ended.IsZero() && len(j.pending) == 0 {
		m.endJob(j, protocol.ClearEnded)
	}
}

// endJob tells the sites that were asked, and keeps the record until the history has it. Jobs
// that waited for this one are looked at later in the Step.
func (m *Machine) endJob(j *job, kind protocol.ClearKind) {
	j.ended = m.now
	if j.round() != nil {
		j.enter(nil)
	}
	j.offers = make(map[grid.SiteID]*candidate)
	m.saveJob(j)
	for _, name := range []string{timerRound, timerExplain, timerAgain} {
		m.stopTimer(name, string(j.id))
	}
	m.rights.trust(j)
	j.how.released(desk{m, j}, jobEnded)
	m.herald.clear(j, kind)
	m.report(step.LevelInfo, eventJobEnded, j.about(), m.cfg.Here)
	m.looks.after(j)
	m.jobs.tail.add(j)
}

// onCancel cancels a job: waiting tasks end now, running ones are told to stop.
func (m *Machine) onCancel(in step.CancelJob) {
	j, ok := m.jobs.all[in.Job]
	if !ok {
		m.out.Emit(step.Reply{Command: in.Command, Job: in.Job, Err: step.ErrNoSuchJob})
		return
	}
	if j.open > 0 {
		m.withdraw(j, grid.PhaseCancelled, "cancelled by its submitter")
		m.report(step.LevelInfo, eventJobCancelled, j.about(), m.cfg.Here)
	}
	m.out.Emit(step.Reply{Command: in.Command, Job: in.Job})
}

// withdraw ends all open tasks of a job in one phase.
func (m *Machine) withdraw(j *job, phase grid.Phase, outcome string) {
	m.rights.endTasks(j, phase, outcome, func(*task) bool { return true })
	m.endJob(j, protocol.ClearWithdrawn)
}

// endTasks ends some open tasks of a job in one phase; their sites are told.
func (r rights) endTasks(j *job, phase grid.Phase, outcome string, which func(*task) bool) {
	told := make(map[grid.SiteID]bool)
	keep := j.any(func(t *task) bool { return t.phase == grid.PhaseCollecting && !which(t) })
	for i := range j.tasks {
		t := &j.tasks[i]
		if t.phase.Ended() || !which(t) {
			continue
		}
		if t.active() || t.phase == grid.PhaseCollecting {
			r.callOffQueued(j, uint32(i), told)
			r.stopTimer(timerLease, j.attempt(uint32(i)).String())
			t.log(outcome, r.now)
			switch {
			case keep: // the site still has outputs of others
				r.fence(t.site, []grid.AttemptID{r.fenceOf(j.attempt(uint32(i)))})
			case !told[t.site]:
				told[t.site] = true
				r.out.Send(t.site, protocol.Cancel{Job: j.id})
			}
		}
		r.endTask(j, uint32(i), phase)
	}
}

// callOffQueued calls a task off at all sites that queue it.
func (r *run) callOffQueued(j *job, index uint32, told map[grid.SiteID]bool) {
	t := &j.tasks[index]
	for _, queued := range t.rivals {
		if !told[queued.site] {
			told[queued.site] = true
			r.out.Send(queued.site, protocol.Cancel{Job: j.id})
		}
	}
	if t.queued() {
		r.stopTimer(timerRivals, j.taskID(index).String())
	}
	t.rivals = nil
}

// refuseJob ends what waits, save what was promised a place once. The reason is a part of the
// end: the sites' answers are known to this run alone.
func (m *Machine) refuseJob(j *job) {
	why := &grid.Exit{Cause: grid.CauseStopped, Text: j.refusal()}
	for _, i := range slices.Clone(j.waiting) {
		t := &j.tasks[i]
		if t.accepted {
			continue
		}
		if t.exit == nil {
			t.exit = why
		}
		m.endTask(j, i, grid.PhaseRefused)
	}
	m.report(step.LevelWarn, eventJobRefused, j.about(), m.cfg.Here)
	if j.open == 0 && len(j.pending) == 0 {
		m.endJob(j, protocol.ClearWithdrawn)
	}
}

// refusal tells in words why a job is refused: that it asks for too much together, if that was
// found, else the first of the most frequent reasons that sites gave.
func (j *job) refusal() string {
	given := map[grid.Reason]int{grid.ReasonAvailability: len(j.answers)}
	sites := sortedSites(j.answers)
	for _, site := range sites {
		given[j.answers[site].Refusal.Reason]++ // none is that of an offer
	}
	text, most := "no site could hold what it had offered", 0
	for _, site := range sites {
		a := j.answers[site]
		if n := given[a.Refusal.Reason]; a.Offer == nil && n > most {
			text, most = a.Refusal.Explain(), n
		}
	}
	return text
}

// refuseBecause ends some open tasks of a job, with the reason for people.
func (m *Machine) refuseBecause(j *job, phase grid.Phase, why string, which func(*task) bool) {
	if j.open == 0 {
		return
	}
	before := j.open
	for i := range j.tasks {
		if t := &j.tasks[i]; !t.phase.Ended() && which(t) {
			t.exit = &grid.Exit{Cause: grid.CauseStopped, Text: why}
		}
	}
	m.rights.endTasks(j, phase, why, which)
	if j.open < before {
		m.out.Report(step.LevelWarn, "job_"+phase.String(), step.Report{
			Attempt: j.about(), Site: m.cfg.Here, Text: why,
		})
	}
	if j.open == 0 {
		m.endJob(j, protocol.ClearWithdrawn)
	}
}

// hopeless ends tasks that can no longer be placed: their window or their reservation is
// over. Those whose result may still come are looked at again. It reports whether no task is to
// be placed any more.
func (m *Machine) hopeless(j *job) bool {
	if len(j.waiting) == 0 {
		return false
	}
	why := m.jobs.reservationOver(j)
	if why != "" {
		m.refuseBecause(j, grid.PhaseRefused, why, func(t *task) bool {
			return t.isWaiting() && !m.peers.mayStillEnd(j, t)
		})
	}
	m.expire(j)
	if why == "" && !j.traits.over(m.now) {
		return len(j.waiting) == 0
	}
	if len(j.waiting) > 0 {
		m.setTimer(timerAgain, string(j.id), m.now.Add(m.cfg.Reunion))
	}
	return true
}

// expire ends waiting tasks when the window is over, and reports whether none waits
// any more. Nothing is started late: a task that was never promised a place is refused,
// one that has lost it has failed, unless its result may still come.
func (m *Machine) expire(j *job) bool {
	if !j.traits.over(m.now) || len(j.waiting) == 0 {
		return false
	}
	j.how.released(desk{m, j}, windowOver)
	what := tooLateFor(j.spec.Spec.Window)
	before := len(j.waiting)
	for _, i := range slices.Clone(j.waiting) {
		t := &j.tasks[i]
		if m.peers.mayStillEnd(j, t) {
			m.noteOverdue(j, i, "its site is silent")
			continue
		}
		phase, text := grid.PhaseRefused, what+" has passed and no site could promise it"
		if first := m.jobs.awaits(j); len(first) > 0 {
			text = what + " has passed while it waited for job " + string(first[0])
		}
		if t.accepted {
			phase = grid.PhaseFailed
			text = what + " has passed, the site that had promised it was lost, and no other could"
		}
		if j.clockSet != 0 {
			text += "; the clock was set by " + j.clockSet.String() + " meanwhile"
		}
		t.exit = &grid.Exit{Cause: grid.CauseStopped, Text: text}
		m.endTask(j, i, phase)
	}
	if len(j.waiting) < before {
		m.out.Report(step.LevelWarn, eventWindowOver, step.Report{
			Attempt: j.about(), Site: m.cfg.Here, Text: what,
		})
	}
	m.endIfDone(j)
	return len(j.waiting) == 0
}

// tooLateFor says what has passed when the job is over: its start or its deadline.
func tooLateFor(named grid.Window) string {
	what, at := "its deadline", named.Deadline
	if !named.At.IsZero() {
		what, at = "its start", named.At
	}
	return what + " at " + at.UTC().Format(time.RFC3339)
}

// onForget drops a job that has ended, or a probe. A job is kept while another one waits for
// it.
func (m *Machine) onForget(in step.ForgetJob) {
	reply := step.Reply{Command: in.Command, Job: in.Job}
	j, known := m.enquiry(in.Job)
	_, probed := m.probes[in.Job]
	switch {
	case !known:
		reply.Err = step.ErrNoSuchJob
	case j.open > 0:
		reply.Err = step.ErrNotEnded
	case probed:
		m.probes.drop(m.run, j.id)
	default:
		if by, awaited := m.jobs.awaitedBy(j); awaited {
			reply.Err = fmt.Errorf("%w: job %s", step.ErrAwaited, by)
			break
		}
		m.archive.drop(j)
	}
	m.out.Emit(reply)
}
