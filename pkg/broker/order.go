package broker

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// jobs is the table of this owner's jobs, and the order among them: which are served
// first, which have to be done before others, which run inside which reservation.
type jobs struct {
	all        map[grid.JobID]*job
	dependants map[grid.JobID][]grid.JobID // by the job that they name: a predecessor or a reservation
	byKey      map[string]grid.JobID       // by the key of the request that made them
	ranked     int                         // jobs with a priority
	tail       tail                        // those that have ended
}

func newJobs() *jobs {
	return &jobs{
		all: make(map[grid.JobID]*job), dependants: make(map[grid.JobID][]grid.JobID),
		byKey: make(map[string]grid.JobID),
	}
}

// open counts the jobs that have not ended.
func (l *jobs) open() int { return len(l.all) - len(l.tail.ids) }

func (l *jobs) ids() []grid.JobID { return slices.Sorted(maps.Keys(l.all)) }

// task finds a task, if it is one.
func (l *jobs) task(id grid.TaskID) (*job, *task) {
	j, known := l.all[id.Job]
	if !known || id.Index >= uint32(len(j.tasks)) {
		return nil, nil
	}
	return j, &j.tasks[id.Index]
}

// current finds the job and task of an attempt if it is the task's latest and
// its site is the one that speaks; otherwise, and while several sites queue the task,
// both are nil.
func (l *jobs) current(from grid.SiteID, id grid.AttemptID) (*job, *task) {
	j, t := l.task(id.Task)
	if t == nil || t.token != id.Token || t.site != from || t.queued() {
		return nil, nil
	}
	return j, t
}

// depend notes on which jobs one depends.
func (l *jobs) depend(j *job) {
	for _, id := range j.needs() {
		l.dependants[id] = append(l.dependants[id], j.id)
	}
	if j.spec.Spec.Priority != 0 {
		l.ranked++
	}
}

// independ takes that back, when a job is dropped.
func (l *jobs) independ(j *job) {
	for _, id := range j.needs() {
		same := func(d grid.JobID) bool { return d == j.id }
		l.dependants[id] = slices.DeleteFunc(l.dependants[id], same)
		if len(l.dependants[id]) == 0 {
			delete(l.dependants, id)
		}
	}
	if j.spec.Spec.Priority != 0 {
		l.ranked--
	}
}

// needs lists the jobs that one names: those before it, and its reservation.
func (e *enquiry) needs() []grid.JobID {
	needs := slices.Clone(e.spec.After)
	if e.traits.bound() {
		needs = append(needs, e.traits.within)
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}

// awaits lists the jobs that have to be done before one is announced. One that is
// forgotten, or in the history, was done: else jobs that wait for it would have been refused.
func (l *jobs) awaits(j *job) []grid.JobID {
	return slices.DeleteFunc(slices.Clone(j.spec.After), func(id grid.JobID) bool {
		first, known := l.all[id]
		return !known || first.done()
	})
}

// isBlocked reports whether a job waits for others, for what they leave, or to be released.
func (l *jobs) isBlocked(j *job) bool { return j.held || l.isBehind(j) }

// isBehind reports whether a job waits for others, or for what they leave.
func (l *jobs) isBehind(j *job) bool {
	return len(j.spec.After) > 0 && (j.lacks() || len(l.awaits(j)) > 0)
}

// isAsking reports whether a job has tasks that look for a site and can be asked for now.
func (l *jobs) isAsking(j *job) bool { return len(j.waiting) > 0 && !l.isBlocked(j) }

// awaitedBy is a job that waits for another one and for which that must be kept.
func (l *jobs) awaitedBy(j *job) (grid.JobID, bool) {
	for _, id := range l.dependants[j.id] {
		if k := l.all[id]; k.open > 0 && slices.Contains(k.spec.After, j.id) && l.isBehind(k) {
			return id, true
		}
	}
	return "", false
}

// before orders this owner's jobs: the higher priority first, then the one that
// was submitted first.
func before(a, b *job) int {
	return cmp.Or(
		cmp.Compare(b.spec.Spec.Priority, a.spec.Spec.Priority),
		a.submitted.Compare(b.submitted), cmp.Compare(a.id, b.id),
	)
}

// inOrder sorts jobs in the order in which they are served. When none has a priority
// they stay as they are.
func (l *jobs) inOrder(ids []grid.JobID) []grid.JobID {
	ids = slices.Clone(ids)
	if l.ranked > 0 {
		slices.SortFunc(ids, func(a, b grid.JobID) int { return before(l.all[a], l.all[b]) })
	}
	return ids
}

// served lists all jobs in the order in which they are served.
func (l *jobs) served() []grid.JobID { return l.inOrder(l.ids()) }

// submitted lists all jobs, oldest first, then by ID.
func (l *jobs) submitted() []grid.JobID {
	ids := l.ids()
	slices.SortStableFunc(ids, func(a, b grid.JobID) int {
		return l.all[a].submitted.Compare(l.all[b].submitted)
	})
	return ids
}

// higher lists jobs that wait and have a higher priority than one of those named, at
// most as many.
func (l *jobs) higher(named []grid.JobID) []grid.JobID {
	if l.ranked == 0 || len(named) == 0 {
		return nil
	}
	lowest := l.all[l.inOrder(named)[len(named)-1]].spec.Spec.Priority
	var more []grid.JobID
	for _, id := range l.served() {
		j := l.all[id]
		if j.spec.Spec.Priority <= lowest || len(more) == len(named) {
			break
		}
		if l.isAsking(j) && !slices.Contains(named, id) {
			more = append(more, id)
		}
	}
	return more
}

// firstBefore is the job that matters most of those that wait and come before one.
func (l *jobs) firstBefore(j *job) (*job, bool) {
	if l.ranked == 0 {
		return nil, false
	}
	for _, id := range l.served() {
		first := l.all[id]
		if first.spec.Spec.Priority <= j.spec.Spec.Priority {
			break
		}
		if l.isAsking(first) {
			return first, true
		}
	}
	return nil, false
}

// boundTo lists the jobs that were submitted to run inside a reservation, in the order
// of their submission.
func (l *jobs) boundTo(reservation grid.JobID) []grid.JobID {
	return slices.DeleteFunc(slices.Clone(l.dependants[reservation]), func(id grid.JobID) bool {
		return l.all[id].traits.within != reservation
	})
}

// reservationOver says why a bound job cannot be placed any more; empty if it can.
func (l *jobs) reservationOver(j *job) string {
	res, known := l.all[j.traits.within]
	switch {
	case !j.traits.bound() || known && res.open > 0:
		return ""
	case l.isReleased(j.traits.within):
		return fmt.Sprintf("its reservation %s was released", res.id)
	default:
		return fmt.Sprintf("its reservation %s is over", j.traits.within)
	}
}

// isReleased reports whether a reservation was given back before its time.
func (l *jobs) isReleased(id grid.JobID) bool {
	res, known := l.all[id]
	return known && res.released()
}

// released reports whether a job was called off: of a reservation, before its time.
func (r *roster) released() bool {
	return r.any(func(t *task) bool { return t.phase == grid.PhaseCancelled })
}

// checkAfter refuses a job that waits for what is unknown or has gone wrong. Only
// known jobs can be named, so that no two wait for each other. done are those that the
// history has as done.
func (l *jobs) checkAfter(after, done []grid.JobID) error {
	for _, id := range after {
		first, known := l.all[id]
		switch {
		case !known && slices.Contains(done, id):
		case !known:
			return fmt.Errorf("%w: after: job %s is unknown here; "+
				"name jobs that were submitted at this site", grid.ErrInvalid, id)
		case first.open == 0 && !first.done():
			return fmt.Errorf("%w: after: job %s has %s; submit it again, or leave it out",
				grid.ErrInvalid, id, first.outcome().phrase())
		}
	}
	return nil
}

// checkBinding refuses a job whose reservation cannot serve it.
func (l *jobs) checkBinding(spec grid.Spec) error {
	id := spec.Reservation
	if id == "" {
		return nil
	}
	res, known := l.all[id]
	if !known || !res.traits.passive {
		return fmt.Errorf(
			"%w: reservation: %s is none that was made here; name one of the reservations of this site",
			grid.ErrInvalid, id)
	}
	if res.open == 0 {
		return fmt.Errorf("%w: reservation: %s is over; make another one, or submit the job without",
			grid.ErrInvalid, id)
	}
	holds := res.spec.Spec.Need
	holds.MFLOPS = math.MaxInt64 // soft: less of it only takes longer
	if !holds.Fits(spec.Need) {
		return fmt.Errorf("%w: reservation: a place of %s holds less than a task needs (%+v of %+v); "+
			"ask for less, or reserve more", grid.ErrInvalid, id, res.spec.Spec.Need, spec.Need)
	}
	return nil
}

// with does something with the job that a timer names, if it is still there.
func (l *jobs) with(id string, do func(*job)) {
	if j, known := l.all[grid.JobID(id)]; known {
		do(j)
	}
}

// silentOnes lists the jobs that wait with an attempt that may come back.
func (l *jobs) silentOnes() []grid.JobID {
	return slices.DeleteFunc(l.ids(), func(id grid.JobID) bool {
		j := l.all[id]
		return !slices.ContainsFunc(j.waiting, func(i uint32) bool { return j.tasks[i].silent })
	})
}
