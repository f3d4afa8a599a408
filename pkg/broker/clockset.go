package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// What happens when the wall clock is set: windows move with it, and what was promised a place
// that is not in its window any more is placed again. Nothing else moves.

// placeSlack is by how much a place may be beside its window, as its site says, before it is
// taken back, and the time that two such words lie apart: a single one may have come late.
const placeSlack = 5 * time.Second

// onClockStepped follows the wall clock.
func (m *Machine) onClockStepped(in step.ClockStepped) {
	m.ahead += in.By
	m.out.Report(step.LevelWarn, eventClockSet, step.Report{
		Site: m.cfg.Here, Value: in.By.Seconds(), Text: "the wall clock was set by " + in.By.String(),
	})
	for _, id := range m.jobs.ids() {
		j := m.jobs.all[id]
		if j.open == 0 || j.spec.Spec.Window == (grid.Window{}) {
			continue
		}
		j.clockSet += in.By
		misplaced := m.moveWindow(j)
		if j.holding() != nil { // of places at another time
			j.how.released(desk{m, j}, windowOver)
		}
		for _, i := range misplaced {
			m.takeBack(j, i, "the clock was set by "+in.By.String())
		}
		m.placeAgain(j)
	}
}

// moveWindow moves a job's window, and lists the tasks that are placed outside of it and have
// not begun. What has begun is judged by the clock of then.
func (r *run) moveWindow(j *job) (outside []uint32) {
	before := j.traits.window
	j.traits.moveWindow(j.spec.Spec.Window, r.ahead)
	r.watchWindow(j)
	for i := range j.tasks {
		t := &j.tasks[i]
		if !t.startedAt.IsZero() && t.startDue.IsZero() {
			t.startDue = before.At
		}
		t.overdue = t.overdue && !r.now.Before(j.traits.window.Deadline)
		at := t.startsAt
		switch {
		case !t.isBooked():
			continue
		case at.IsZero() && t.phase == grid.PhaseAwarded && !before.At.IsZero():
			at = before.At
		case at.IsZero():
			at = r.now
		}
		if j.traits.isOutside(at, t.run, PromiseTolerance) {
			outside = append(outside, uint32(i))
		}
	}
	return outside
}

// watchWindow sets the timer by which what waits is not forgotten when it is too late.
func (r *run) watchWindow(j *job) {
	if last := j.traits.lastStart; !last.IsZero() && j.open > 0 {
		r.setTimer(timerWindow, string(j.id), last)
	}
}

// isBooked reports whether a site has the task and has not begun with it.
func (t *task) isBooked() bool {
	return t.active() && t.phase <= grid.PhaseStaging && t.startedAt.IsZero() && !t.queued()
}

// isBeside reports whether a place is not where the job needs it, as its site has said twice: at
// begins it now, and before is what was known. Sites go by the submitter's clock, but one that was
// restarted may have read a wrong one, or this one was set while it was down.
func (r *run) isBeside(j *job, t *task, at, before time.Time) bool {
	ahead, heard := at.Sub(r.now), t.heardPlan
	t.heardPlan = r.now
	return ahead > r.cfg.StartLease+2*r.cfg.Lease && !before.IsZero() &&
		r.now.Sub(heard) >= placeSlack && at.Sub(before).Abs() <= placeSlack &&
		r.isUseless(j, t, at, max(placeSlack, ahead/10))
}

// isUseless reports whether a place that begins at a time is by more than slack not where it was
// promised, or after the start that was named to the parts of a job.
func (r *run) isUseless(j *job, t *task, at time.Time, slack time.Duration) bool {
	if j.traits.whole {
		named := latest(latest(t.by, r.bootedAt), j.traits.window.Earliest())
		return at.Sub(named) > slack
	}
	return j.traits.promise && j.traits.isOutside(at, t.run, slack)
}

// takeBack takes a useless place back. Its attempt may hold a lease: nothing else of
// the task is started before that has ended, also after a restart. In a reservation nothing
// runs.
func (m *Machine) takeBack(j *job, index uint32, why string) {
	t := &j.tasks[index]
	if !t.isBooked() {
		return // with another part
	}
	id, site, rest := j.attempt(index), t.site, t.rest
	m.out.Report(step.LevelWarn, eventTimeMoved, step.Report{Attempt: id, Site: site, Text: why})
	m.rights.fence(site, []grid.AttemptID{above(id.Task, id.Token)})
	m.stopTimer(timerLease, id.String())
	t.log("taken back: "+why, m.now)
	if !j.traits.whole {
		t.top = max(t.top, t.token) + 1
	}
	delete(j.offers, site)
	m.requeue(j, index)
	if j.traits.passive {
		t.rest = rest
	}
}
