package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// seqBits limits how many announcements of a job a run may make before the numbers
// of the next run follow. Sites ignore numbers that they have answered, so a run
// must not repeat those of an earlier one.
const seqBits = 16

// onBoot takes up what an earlier run left: tasks that were awarded may still
// run, so their leases are presumed to have just been granted.
func (m *Machine) onBoot(in step.Boot) {
	m.incarnation, m.bootedAt, m.clock = in.Incarnation, m.now, in.Clock
	m.nonce = in.Nonce
	m.lines.note(m.cfg.Here, in.Line)
	m.rng = step.NewRand(m.cfg.Seed, "broker/"+string(m.cfg.Owner), in.Incarnation)
	m.peers.forgetLongGone()
	m.peers.resumeFaults()
	m.resumeCovered()
	for _, id := range m.jobs.ids() {
		m.resume(m.jobs.all[id])
	}
	if in.Restored || m.unknown {
		m.doubt(grid.AttemptID{}, m.cfg.Here, "this state was restored, or moved here")
	}
}

// resume takes up a job.
func (m *Machine) resume(j *job) {
	if j.open == 0 {
		return
	}
	j.recount(m.run)
	j.seq = uint32(m.incarnation << seqBits) // it may wrap after 65,536 starts, and sites forget
	for i := range j.tasks {
		m.resumeTask(j, uint32(i))
	}
	m.watchWindow(j)
	j.how.woken(desk{m, j}, wake{why: wakeBooted})
	blocked := m.jobs.isBlocked(j)
	if blocked {
		m.goOn(j)
	}
	if len(j.waiting) > 0 && !m.jobs.isBlocked(j) {
		m.setTimer(timerAgain, string(j.id), m.now.Add(m.cfg.BackoffMin))
	}
}

func (m *Machine) resumeTask(j *job, index uint32) {
	t := &j.tasks[index]
	if back := t.awardedAt.Sub(m.now); back > 0 { // the clock was set back by that at least
		t.awardedAt = timeZero // when it was is not known
		if !t.by.IsZero() {
			t.by = t.by.Add(-back)
		}
	}
	if t.top > t.token && !t.queued() && !t.phase.Ended() {
		// A later attempt was called off, and may have a lease.
		m.presume(j, index)
		if t.rest = t.leaseEnd; t.returnable() && t.accepted { // it left before that was over
			t.leave.early = true
			m.setTimer(timerLease, j.attempt(index).String(), t.leaseEnd)
		}
	}
	switch {
	case t.phase == grid.PhaseCollecting:
		m.collect(j, index)
	case t.queued():
		j.how.woken(desk{m, j}, wake{why: wakeResumed, index: index})
	case t.active():
		m.presume(j, index)
		m.setTimer(timerLease, j.attempt(index).String(), t.leaseEnd)
		m.moves.resume(j, index)
	}
}
