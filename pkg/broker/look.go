package broker

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// drainLooks takes the looks that wait. The job of a look may be gone by then.
func (m *Machine) drainLooks() {
	for {
		l, some := m.looks.next()
		if !some && !compareNext(m) {
			return
		}
		if !some {
			continue
		}
		j, known := m.jobs.all[l.job]
		switch {
		case !known:
		case l.why == lookPredecessorEnded:
			m.goOn(j)
		case l.why == lookReservationHeld:
			m.announceAgain(j)
		case l.why == lookReservationOver && m.jobs.isReleased(j.traits.within):
			open := func(t *task) bool { return t.isWaiting() || t.active() }
			m.refuseBecause(j, grid.PhaseRefused, m.jobs.reservationOver(j), open)
		case l.why == lookReservationOver: // what its sites still run they stop themselves, and say so
			m.hopeless(j)
		}
	}
}

// goOn announces a job when all that it waits for is done, and ends it when that
// cannot be.
func (m *Machine) goOn(j *job) {
	if j.open == 0 {
		return
	}
	for _, id := range m.jobs.awaits(j) {
		first := m.jobs.all[id]
		if first.open > 0 {
			continue
		}
		phase := grid.PhaseRefused
		if first.outcome() == outcomeCancelled {
			phase = grid.PhaseCancelled
		}
		why := fmt.Sprintf("it was to run after job %s, which has %s", id, first.outcome().phrase())
		m.refuseBecause(j, phase, why, func(*task) bool { return true })
		return
	}
	if err := m.herald.supply(j); err != nil {
		m.refuseBecause(j, grid.PhaseRefused, err.Error(), func(*task) bool { return true })
		return
	}
	if !m.jobs.isBlocked(j) {
		m.announceAgain(j)
	}
}

// supply gives a job what it takes of those that are done. That is a fact like all others: it
// outlives the site of its submitter.
func (h herald) supply(j *job) error {
	found, err := h.jobs.gather(j)
	if len(found) == 0 || err != nil {
		return err
	}
	h.describe(j)
	if err := j.measure(&h.cfg); err != nil {
		return err
	}
	h.saveJob(j)
	h.out.Emit(step.Hold{Job: j.id, CIDs: found})
	return nil
}

// onHold keeps a job that has not begun from being placed, or lets it go on. What it has been
// offered is given back; sites remember what it needs.
func onHold(m *Machine, in step.HoldJob) {
	reply := step.Reply{Command: in.Command, Job: in.Job}
	j, known := m.jobs.all[in.Job]
	switch {
	case !known:
		reply.Err = step.ErrNoSuchJob
	case j.open == 0:
		reply.Err = step.ErrEnded
	case in.Release != j.held:
	case in.Release:
		j.held = false
		m.saveJob(j)
		m.report(step.LevelInfo, eventJobReleased, j.about(), m.cfg.Here)
		m.goOn(j)
	case j.traits.passive:
		reply.Err = step.ErrKept
	case j.any((*task).hasBegun):
		reply.Err = step.ErrBegun
	default:
		j.held = true
		m.saveJob(j)
		m.report(step.LevelInfo, eventJobHeld, j.about(), m.cfg.Here)
		layAside(m, j)
	}
	m.out.Emit(reply)
}

// layAside ends all that is under way to place a job.
func layAside(m *Machine, j *job) {
	j.how.released(desk{m, j}, windowOver)
	j.enter(nil)
	j.placed = false
	j.offers = make(map[grid.SiteID]*candidate)
	clear(j.vacant)
	for _, name := range []string{timerRound, timerExplain, timerAgain} {
		m.stopTimer(name, string(j.id))
	}
	m.herald.clear(j, protocol.ClearPlaced)
}
