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

// looks is the queue. It is no fact: Boot looks at every job.
type looks struct {
	jobs  *jobs
	queue []look
	found []look // while a look is taken: what it adds
	under bool   // a look is being taken
}

const (
	lookPredecessorEnded lookReason = iota // one of those that it was to run after
	lookReservationHeld                    // a site holds a place of it, perhaps a new one
	lookReservationOver
)

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
