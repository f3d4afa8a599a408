package broker

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// checkAfter refuses a job that waits for what is unknown or has gone wrong. Only
// known jobs can be named, so that no two wait for each other.
func (m *Machine) checkAfter(after []grid.JobID) error {
	for _, id := range after {
		first, known := m.jobs[id]
		switch {
		case !known || first.probe:
			return fmt.Errorf("%w: after: job %s is unknown here; name jobs that were submitted at this site", grid.ErrInvalid, id)
		case first.open == 0 && !first.done():
			return fmt.Errorf("%w: after: job %s has %s; submit it again, or leave it out", grid.ErrInvalid, id, first.outcome())
		}
	}
	return nil
}

// depend notes on which jobs one depends.
func (m *Machine) depend(j *job) {
	for _, id := range j.needs() {
		m.dependants[id] = append(m.dependants[id], j.id)
	}
	if j.job.Spec.Priority != 0 {
		m.ranked++
	}
}

// independ takes that back, when a job is dropped.
func (m *Machine) independ(j *job) {
	for _, id := range j.needs() {
		m.dependants[id] = slices.DeleteFunc(m.dependants[id], func(d grid.JobID) bool { return d == j.id })
		if len(m.dependants[id]) == 0 {
			delete(m.dependants, id)
		}
	}
	if j.job.Spec.Priority != 0 {
		m.ranked--
	}
}

// needs lists the jobs that one names: those before it, and its reservation.
func (j *job) needs() []grid.JobID {
	if j.probe {
		return nil
	}
	needs := slices.Clone(j.job.After)
	if j.bound() {
		needs = append(needs, j.job.Spec.Reservation)
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}

// done reports whether all tasks are.
func (j *job) done() bool {
	return j.open == 0 && !slices.ContainsFunc(j.tasks, func(t task) bool { return t.phase != grid.PhaseDone })
}

// outcome says how a job ended that is not done.
func (j *job) outcome() string {
	for _, t := range j.tasks {
		switch t.phase {
		case grid.PhaseCancelled:
			return "been cancelled"
		case grid.PhaseRefused:
			return "been refused"
		default:
		}
	}
	return "failed"
}

// awaits lists the jobs that have to be done before one is announced. One that is
// forgotten was done: else those who wait for it would have been refused.
func (m *Machine) awaits(j *job) []grid.JobID {
	return slices.DeleteFunc(slices.Clone(j.job.After), func(id grid.JobID) bool {
		first, known := m.jobs[id]
		return !known || first.done()
	})
}

// blocked reports whether a job waits for others.
func (m *Machine) blocked(j *job) bool {
	return len(j.job.After) > 0 && !j.probe && len(m.awaits(j)) > 0
}

// awaitedBy is a job that waits for another one and for which that must be kept.
func (m *Machine) awaitedBy(j *job) (grid.JobID, bool) {
	for _, id := range m.dependants[j.id] {
		if k := m.jobs[id]; k.open > 0 && slices.Contains(k.job.After, j.id) && m.blocked(k) {
			return id, true
		}
	}
	return "", false
}

// follow announces a job when all that it waits for is done, and ends it when that
// cannot be.
func (m *Machine) follow(j *job) {
	if j.open == 0 || j.probe {
		return
	}
	for _, id := range m.awaits(j) {
		first := m.jobs[id]
		if first.open > 0 {
			continue
		}
		phase := grid.PhaseRefused
		if first.outcome() == "been cancelled" {
			phase = grid.PhaseCancelled
		}
		why := fmt.Sprintf("it was to run after job %s, which has %s", id, first.outcome())
		m.refuseBecause(j, phase, why, func(*task) bool { return true })
		return
	}
	if !m.blocked(j) {
		m.announceAgain(j)
	}
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
	m.endTasks(j, phase, why, which)
	if j.open < before {
		m.out.Emit(step.Report{
			Event: "job_" + phase.String(), Level: step.LevelWarn, Attempt: j.attemptOfJob(), Site: m.cfg.Self, Text: why,
		})
	}
	if j.open == 0 {
		m.jobEnded(j, protocol.ClearWithdrawn)
	}
}

// forgetInTime drops an ended job, unless another one still waits for it.
func (m *Machine) forgetInTime(j *job) {
	if _, awaited := m.awaitedBy(j); awaited {
		m.out.SetTimer(timerForget, string(j.id), m.now.Add(m.cfg.KeepEnded))
		return
	}
	m.drop(j)
}
