package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Whether promises are kept. Starts and ends are moments on this site's clock: a site says how
// long ago they were, so that neither its own clock nor a word that comes late counts.

// ago is the moment that a site says lies so long back. It is not before the award: what
// could not have been is not believed.
func (r *run) ago(t *task, d time.Duration) time.Time {
	at := r.now.Add(-d)
	if at.Before(t.awardedAt) {
		return t.awardedAt
	}
	return at
}

// begun notes when an attempt began, as is first heard, and says if that was late.
func (r *run) begun(j *job, index uint32, ago time.Duration) {
	t := &j.tasks[index]
	t.startedAt = r.ago(t, ago)
	if late := t.beganLate(&j.traits); t.promise == grid.PromiseOpen && late != 0 {
		r.out.Report(step.LevelWarn, eventStartLate, step.Report{
			Attempt: j.attempt(index), Site: t.site, Value: late.Seconds(), Text: beganLate(late),
		})
	}
}

// beganLate is by how much a task began later than its fixed start, below 0: earlier; 0 if it
// began on time, by the wall clock of then.
func (t *task) beganLate(of *traits) time.Duration {
	due := of.window.At
	if !t.startDue.IsZero() {
		due = t.startDue
	}
	return lateBy(t.startedAt, due) - lateBy(due, t.startedAt)
}

// judge measures an end of a task's own doing against what was promised to it.
func (r *run) judge(j *job, t *task, msg protocol.Exited) {
	if t.promise != grid.PromiseOpen {
		return
	}
	ended := r.ago(t, msg.EndedAgo)
	began, told := ended.Add(-msg.Exit.Wall), msg.StartedAgo > msg.EndedAgo
	if told {
		began = r.ago(t, msg.StartedAgo)
	}
	// A word can come late, as where this site slept meanwhile, and never early: the earliest of
	// what was told of a start is the nearest to it. A restarted site does not tell it.
	told = told || !t.doubt.until.IsZero()
	if t.startedAt.IsZero() || told && began.Before(t.startedAt) {
		t.startedAt = began
	}
	if least := t.startedAt.Add(msg.Exit.Wall); ended.Before(least) && !least.After(r.now) {
		ended = least
	}
	if t.doubt.ended.IsZero() || ended.Before(t.doubt.ended) {
		t.doubt.ended, t.doubt.heard = ended, r.now
	}
	t.startLate = t.beganLate(&j.traits)
	t.endLate = lateBy(t.doubt.ended, j.traits.window.Deadline)
	t.promise = grid.PromiseKept
	if t.startLate != 0 || t.endLate != 0 {
		t.promise, t.note = grid.PromiseLate, t.lateness(msg.Exit.Wall, j.spec.Spec.Runtime)
		if t.doubt.until.IsZero() && r.pause.explains(max(t.startLate, t.endLate), r.now) {
			t.doubt.until = r.now.Add(resultWait)
		}
	}
}

// settle says what became of the promise of a task that has ended. One that it did not bring
// to its own end is broken, unless its user called it off.
func (r *run) settle(j *job, index uint32) {
	t := &j.tasks[index]
	switch {
	case t.promise == grid.PromiseNone:
		return
	case t.promise == grid.PromiseOpen && t.phase == grid.PhaseCancelled:
		t.promise = grid.PromiseNone
		return
	case t.promise == grid.PromiseOpen:
		t.promise, t.note = grid.PromiseBroken, "no site could keep it"
		if t.exit != nil && t.exit.Text != "" {
			t.note = t.exit.Text
		}
	}
	level := step.LevelWarn
	if t.promise == grid.PromiseKept {
		level = step.LevelInfo
	}
	r.out.Report(level, "task_"+t.promise.String(), step.Report{
		Attempt: j.attempt(index), Site: t.site, Text: t.note,
		Value: max(t.startLate, t.endLate).Seconds(),
	})
}

// missDeadline says which tasks have not ended by their deadline, when it passes.
func (r *run) missDeadline(j *job) {
	deadline := j.traits.window.Deadline
	if r.now.Before(deadline) || j.open == 0 {
		if deadline.After(r.now) {
			r.setTimer(timerWindow, string(j.id), deadline)
		}
		return
	}
	for i := range j.tasks {
		if j.tasks[i].active() {
			r.noteOverdue(j, uint32(i), "it goes on")
		}
	}
}

// noteOverdue says that a task whose deadline has passed has not ended, once.
func (r *run) noteOverdue(j *job, index uint32, how string) {
	t, deadline := &j.tasks[index], j.traits.window.Deadline
	if t.promise != grid.PromiseOpen || t.overdue || deadline.IsZero() || r.now.Before(deadline) {
		return
	}
	t.overdue = true
	named := grid.Window{Deadline: j.spec.Spec.Window.Deadline}
	r.out.Report(step.LevelWarn, eventDeadlineMissed, step.Report{
		Attempt: j.attempt(index), Site: t.site, Text: tooLateFor(named) + " has passed, and " + how,
	})
}
