package broker

import (
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
		if j, known := m.jobs[l.job]; known {
			m.takeLook(j, l.why)
		}
	}
}

func (m *Machine) takeLook(j *job, why lookReason) {
	switch why {
	case lookPredecessorEnded:
		m.follow(j)
	case lookReservationHeld:
		m.announceAgain(j)
	case lookReservationOver:
		m.endBound(j)
	}
}

// lookAfter queues the jobs that waited for one that has ended now, and those that were
// bound to it.
func (m *Machine) lookAfter(ended *job) {
	if ended.isReservation() {
		for _, id := range m.Bound(ended.id) {
			m.looks.add(id, lookReservationOver)
		}
	}
	for _, id := range m.inOrder(m.dependants[ended.id]) {
		if slices.Contains(m.jobs[id].job.After, ended.id) {
			m.looks.add(id, lookPredecessorEnded)
		}
	}
}

// lookAtBound queues the jobs that wait for a place of a reservation: it is held now,
// perhaps at another site than before, or its time has come.
func (m *Machine) lookAtBound(res *job) {
	if !res.isReservation() {
		return
	}
	for _, id := range m.inOrder(m.Bound(res.id)) {
		m.looks.add(id, lookReservationHeld)
	}
}
