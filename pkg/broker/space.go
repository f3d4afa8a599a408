package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// spaceRetry is the pause before outputs are fetched again that had no space here.
const spaceRetry = 10 * time.Second

// onSpace takes it that this machine's disk is full, or has space again: what waits for that
// is fetched now.
func (m *Machine) onSpace(in step.SpaceChanged) {
	m.full = in.Full
	if in.Full {
		return
	}
	for _, id := range m.jobs.ids() {
		j := m.jobs.all[id]
		for i := range j.tasks {
			if t := &j.tasks[i]; t.phase == grid.PhaseCollecting && t.standing == grid.ReasonDiskFull {
				m.stopTimer(timerCollect, j.attempt(uint32(i)).String())
				m.collect(j, uint32(i))
			}
		}
	}
}

// awaitSpace leaves the outputs of an attempt where they are until this machine has space for
// them. Their site keeps what is not acknowledged, and nobody is to blame: the time in which
// they must be had begins when they could be stored.
func (r *run) awaitSpace(j *job, index uint32, problem string) {
	t, id := &j.tasks[index], j.attempt(index)
	if t.standing != grid.ReasonDiskFull {
		r.out.Report(step.LevelWarn, eventSpaceAwaited, step.Report{
			Attempt: id, Site: t.site, Reason: grid.ReasonDiskFull, Text: problem,
		})
	}
	t.standing, t.collectBy = grid.ReasonDiskFull, timeZero
	r.setTimer(timerCollect, id.String(), r.now.Add(spaceRetry))
}
