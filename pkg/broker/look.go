package broker

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// look asks for another look at a job, because of what happened to another one. It is
// put into a queue, which Step drains when the input is dealt with: what ends a job, or
// places one, never calls what ends or places the next.
type look struct {
	job grid.JobID
	why lookReason
}

type lookReason uint8

const (
	lookPredecessorEnded lookReason = iota // one of those that it was to run after
	lookReservationHeld                    // a site holds a place of its reservation, perhaps another one than before
	lookReservationOver
)

// looks is the queue. It is no fact: Boot looks at every job.
type looks struct {
	jobs  *jobs
	queue []look
	found []look // while a look is taken: what it adds
	under bool   // a look is being taken
}

// add queues a look: at the end while an input is dealt with; while a look is taken, at
// the head, so that what follows from one job comes before the next.
func (l *looks) add(job grid.JobID, why lookReason) {
	if l.under {
		l.found = append(l.found, look{job, why})
		return
	}
	l.queue = append(l.queue, look{job, why})
}

// has reports whether a look waits already.
func (l *looks) has(job grid.JobID, why lookReason) bool {
	same := look{job, why}
	return slices.Contains(l.queue, same) || slices.Contains(l.found, same)
}

func (l *looks) next() (look, bool) {
	if len(l.found) > 0 {
		l.queue, l.found = slices.Concat(l.found, l.queue), nil
	}
	if l.under = len(l.queue) > 0; !l.under {
		return look{}, false
	}
	first := l.queue[0]
	l.queue = l.queue[1:]
	return first, true
}

// drainLooks takes the looks that wait. The job of a look may be gone by then.
func (m *Machine) drainLooks() {
	for {
		l, some := m.looks.next()
		if !some {
			return
		}
		j, known := m.jobs.all[l.job]
		switch {
		case !known:
		case l.why == lookPredecessorEnded:
			m.goOn(j)
		case l.why == lookReservationHeld:
			m.announceAgain(j)
		case l.why == lookReservationOver:
			m.endBound(j)
		}
	}
}

// after queues the jobs that waited for one that has ended now, and those that were
// bound to it.
func (l *looks) after(ended *job) {
	if ended.traits.passive {
		for _, id := range l.jobs.boundTo(ended.id) {
			l.add(id, lookReservationOver)
		}
	}
	for _, id := range l.jobs.inOrder(l.jobs.dependants[ended.id]) {
		if slices.Contains(l.jobs.all[id].spec.After, ended.id) {
			l.add(id, lookPredecessorEnded)
		}
	}
}

// atBound queues the jobs that wait for a place of a reservation: it is held now,
// perhaps at another site than before, or its time has come.
func (l *looks) atBound(res *job) {
	if !res.traits.passive {
		return
	}
	for _, id := range l.jobs.inOrder(l.jobs.boundTo(res.id)) {
		if !l.has(id, lookReservationHeld) {
			l.add(id, lookReservationHeld)
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
	if !m.jobs.isBlocked(j) {
		m.announceAgain(j)
	}
}

// endBound ends a job whose reservation is over. What its sites still run they stop
// themselves, and say so; what was released early is stopped from here.
func (m *Machine) endBound(j *job) {
	res, known := m.jobs.all[j.traits.within]
	released := known && res.released()
	m.refuseBecause(j, grid.PhaseRefused, m.jobs.reservationOver(j), func(t *task) bool {
		return t.phase == grid.PhaseWaiting || released && t.active()
	})
}
