package broker

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// checkWindow refuses a job whose window is over already.
func (m *Machine) checkWindow(w grid.Window) error {
	for _, f := range []struct {
		field string
		at    time.Time
	}{{"start", w.At}, {"deadline", w.Deadline}} {
		if !f.at.IsZero() && !f.at.After(m.now) {
			return fmt.Errorf("%w: %s: %s is over, it is %s; name a later time",
				grid.ErrInvalid, f.field, f.at.Format(time.RFC3339), m.now.Format(time.RFC3339))
		}
	}
	return nil
}

// lastStart is from when on it makes no sense to look for a site; false if there is
// no such time.
func (j *job) lastStart() (time.Time, bool) {
	w := j.job.Spec.Window
	if !w.At.IsZero() {
		return w.At, true
	}
	return w.Deadline, !w.Deadline.IsZero()
}

// over reports whether it makes no sense to look for a site any more.
func (j *job) over(now time.Time) bool {
	last, bounded := j.lastStart()
	return bounded && !now.Before(last)
}

// watchWindow sees to it that what waits is not forgotten when its window is over.
func (m *Machine) watchWindow(j *job) {
	if last, bounded := j.lastStart(); bounded && j.open > 0 {
		m.out.SetTimer(timerWindow, string(j.id), last)
	}
}

// maxAway is how long past its window a task waits for a site that cannot be reached,
// because it is this one that is cut off.
const maxAway = 10 * time.Minute

// mayReturn reports whether an attempt whose site is silent may still come back: it
// is frozen there, or runs, and it is this site that is, or was just now, cut off.
func (m *Machine) mayReturn(t *task) bool {
	if !t.silent || t.away.IsZero() {
		return false
	}
	return m.now.Before(t.away.Add(m.cfg.Reunion)) || m.now.Before(m.reunion) ||
		m.cutOff && m.now.Before(t.away.Add(maxAway))
}

// expire ends what waits when the window is over, and reports whether nothing waits
// any more. Nothing is started late: who was never promised a place is refused, who
// has lost it has failed.
func (m *Machine) expire(j *job) bool {
	if !j.over(m.now) || len(j.waiting) == 0 || j.probe {
		return false
	}
	last, _ := j.lastStart()
	m.releaseHolds(j)
	what := "its deadline"
	if !j.job.Spec.Window.At.IsZero() {
		what = "its start"
	}
	what += " at " + last.UTC().Format(time.RFC3339)
	before := len(j.waiting)
	for _, i := range slices.Clone(j.waiting) {
		if m.mayReturn(&j.tasks[i]) {
			continue
		}
		t, phase, text := &j.tasks[i], grid.PhaseRefused, what+" has passed and no site could promise it"
		if first := m.awaits(j); len(first) > 0 {
			text = what + " has passed while it waited for job " + string(first[0])
		}
		if t.accepted {
			phase, text = grid.PhaseFailed, what+" has passed, the site that had promised it was lost, and no other could"
		}
		t.exit = &grid.Exit{Cause: grid.CauseStopped, Text: text}
		m.endTask(j, i, phase)
	}
	if len(j.waiting) < before {
		m.out.Emit(step.Report{
			Event: "window_over", Level: step.LevelWarn, Attempt: j.attemptOfJob(), Site: m.cfg.Self, Text: what,
		})
	}
	m.jobEndedIfDone(j)
	return len(j.waiting) == 0
}
