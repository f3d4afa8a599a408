package broker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// regroup takes back all parts of a job when one of them has lost its place: they are
// one job, and what is left of it waits for a part that is gone. Those that may run
// are fenced off, those that have ended are to run again. They are placed together
// when no lease of theirs can run any more.
func (m *Machine) regroup(j *job) {
	if !j.split() || len(j.waiting) == 0 || len(j.waiting) == len(j.tasks) {
		return
	}
	lost := func(t task) bool { return t.phase.Ended() && t.phase != grid.PhaseDone }
	if slices.ContainsFunc(j.tasks, lost) {
		m.withdraw(j, grid.PhaseFailed, "another part has failed")
		return
	}
	accepted := slices.ContainsFunc(j.tasks, func(t task) bool { return t.accepted })
	fences := make(map[grid.SiteID][]grid.AttemptID)
	for i := range j.tasks {
		t := &j.tasks[i]
		if t.active() {
			fences[t.site] = append(fences[t.site], grid.AttemptID{Task: j.taskID(uint32(i)), Token: max(t.token, t.token+1)})
		}
		m.takeBack(j, uint32(i))
		t.accepted, t.roundsFailed = accepted, 0
		m.saveTask(j, uint32(i))
	}
	j.cleared, j.asked = false, nil
	for _, site := range sortedSites(fences) {
		for below := range slices.Chunk(fences[site], protocol.MaxAttempts) {
			m.out.Send(site, protocol.Fence{Below: below})
		}
	}
	m.report(step.LevelWarn, "regrouped", j.attemptOfJob(), m.cfg.Self)
}

// takeBack makes one part wait.
func (m *Machine) takeBack(j *job, index uint32) {
	const why = "stopped: another part was lost"
	t := &j.tasks[index]
	id := j.attempt(index)
	switch {
	case t.active():
		m.out.StopTimer(timerLease, id.String())
		t.log(why, m.now)
		if t.leaseEnd.After(j.together) {
			j.together = t.leaseEnd
		}
	case t.phase == grid.PhaseCollecting:
		m.out.StopTimer(timerCollect, id.String())
		t.log(why, m.now)
		m.out.Send(t.site, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	case t.phase == grid.PhaseDone:
		j.open++
		m.out.Emit(step.Hold{Job: j.id, CIDs: t.exit.CIDs(), Release: true})
	}
	j.wait(index)
	t.exit, t.collectBy, t.startsAt = nil, timeZero, timeZero
	t.silent, t.away = false, timeZero
}

// partGivenUp ends a job of which a part was tried too often.
func (m *Machine) partGivenUp(j *job) {
	if j.split() && j.open > 0 {
		m.withdraw(j, grid.PhaseFailed, "another part was given up")
	}
}

// apart reports whether parts of an earlier start may still run. The job is announced
// when that is over.
func (m *Machine) apart(j *job) bool {
	if !j.split() || !j.together.After(m.now) {
		return false
	}
	m.out.SetTimer(timerAgain, string(j.id), j.together)
	return true
}

// resumeParts: an earlier run may have taken parts back, and granted leases before.
func (m *Machine) resumeParts(j *job) {
	placed := slices.ContainsFunc(j.tasks, func(t task) bool { return t.token > 0 })
	if !j.split() || !placed || len(j.waiting) == 0 {
		return
	}
	j.together = m.now.Add(m.cfg.Lease + m.cfg.LeaseMargin)
	for i := range j.tasks {
		if end := j.tasks[i].leaseEnd; end.After(j.together) {
			j.together = end
		}
	}
}

// checkParts verifies that parts wait all or not at all, and were awarded as often.
func (j *job) checkParts() error {
	if j.split() && slices.ContainsFunc(j.tasks, func(t task) bool { return t.token != j.tasks[0].token }) {
		return errors.New("parts are of different starts")
	}
	if j.split() && !j.probe && len(j.waiting) > 0 && len(j.waiting) < j.open {
		return fmt.Errorf("%d of %d parts wait", len(j.waiting), j.open)
	}
	if j.hold != nil && j.hold.parts != nil && len(j.waiting) != len(j.tasks) {
		return fmt.Errorf("a common start is looked for, and %d of %d parts wait", len(j.waiting), len(j.tasks))
	}
	return nil
}
