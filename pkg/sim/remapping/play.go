package remapping

import (
	"errors"
	"slices"
)

// run is a run at a time.
type run struct {
	model    Model
	policy   Policy
	machines []*machine
	total    int64   // nodes of all machines
	used     []int64 // nodes of all machines, of each slot
	booked   []int64 // nodes that requests reserved so many slots ahead; nil: nobody asks
	last     int64   // no reservation so far reaches beyond it
	out      Outcome

	now         int64
	failed      int   // the machine, or none
	number      int   // of the failure
	began, ends int64 // of the failure
	ended       []int64
	busy        int64 // see busyUntil
	changed     bool
	limit       int64 // reservations that start before leave the failed machine
}

// Play plays a model with a policy. Errors are argument.ErrInvalid.
func Play(m Model, p Policy, seed uint64) (Outcome, error) {
	if err := errors.Join(m.Validate(), p.validate()); err != nil {
		return Outcome{}, err
	}
	jobs, hit := m.draw(seed)
	r := newRun(m, p, jobs)
	r.play(jobs, hit, nil)
	for _, j := range jobs {
		if j.machine != none && j.stop <= m.Slots {
			r.out.Completed++
		}
	}
	return r.out, nil
}

// Lengths plays a model up to the end of its first failure and returns how many slots ahead
// reservations leave the failed machine in each slot of it: VRM, figure 10. Errors are
// argument.ErrInvalid.
func Lengths(m Model, p Policy, seed uint64) ([]int64, error) {
	if err := errors.Join(m.Validate(), p.validate()); err != nil {
		return nil, err
	}
	m.Slots = min(m.Slots, m.Every+m.Down)
	jobs, hit := m.draw(seed)
	r := newRun(m, p, jobs)
	var lengths []int64
	r.play(jobs, hit, func() { lengths = append(lengths, r.limit-r.now) })
	return lengths, nil
}

// play plays all slots. It says when a slot of a failure has been looked at, if somebody watches.
func (r *run) play(jobs []job, hit []int, watch func()) {
	for next := 0; r.now < r.model.Slots; r.now++ {
		r.fail(hit)
		if r.failed != none {
			r.remap()
			if watch != nil {
				watch()
			}
		}
		for ; next < len(jobs) && jobs[next].comes == r.now; next++ {
			r.request(&jobs[next])
		}
	}
}

func newRun(m Model, p Policy, jobs []job) *run {
	r := &run{model: m, policy: p, total: m.total(), failed: none}
	slots := m.Slots
	for _, j := range jobs {
		slots = max(slots, j.stop)
	}
	r.used = make([]int64, slots+1)
	for _, nodes := range m.Nodes {
		r.machines = append(r.machines, &machine{nodes: nodes, used: make([]int64, slots+1)})
	}
	if p.Ended {
		r.ended = make([]int64, slots+1)
	}
	if p.Booking {
		r.booked = make([]int64, slots+1)
	}
	return r
}

// fail begins and ends failures.
func (r *run) fail(hit []int) {
	if r.failed != none && r.now == r.ends {
		r.failed = none
		clear(r.ended)
	}
	if r.now == 0 || r.now%r.model.Every != 0 {
		return
	}
	r.number = int(r.now/r.model.Every) - 1
	r.failed, r.began, r.ends, r.changed = hit[r.number], r.now, r.now+r.model.Down, true
	for _, j := range slices.Clone(r.machines[r.failed].jobs) {
		if j.stop <= r.now || j.start >= r.now {
			continue
		}
		if r.policy.Migrate && r.move(j, r.now) {
			r.out.Saved++
			continue
		}
		for t := r.now; r.ended != nil && t < j.stop; t++ {
			r.ended[t] += j.nodes
		}
		r.drop(j, r.now)
		r.out.Ended++
	}
}

// remap moves what the rule says, and ends what should have started now. Who finds no other
// machine finds none later: during a failure none of their nodes become free.
func (r *run) remap() {
	r.limit = r.before()
	for _, j := range slices.Clone(r.machines[r.failed].jobs) {
		if j.start < r.now {
			continue
		}
		if j.start < r.limit && j.stays != r.number {
			if r.move(j, j.start) {
				if j.start < r.ends {
					r.out.Saved++
				} else {
					r.out.Overhead++
				}
				continue
			}
			j.stays = r.number
		}
		if j.start == r.now {
			r.drop(j, r.now)
			r.out.Missed++
		}
	}
}

// move gives a job another machine than the failed one, from a slot on.
func (r *run) move(j *job, from int64) bool {
	to := r.bestFit(j, from, r.failed)
	if to == none {
		return false
	}
	r.machines[j.machine].release(j, from)
	r.machines[to].reserve(j, from)
	j.machine, r.changed = to, true
	return true
}

// drop ends a job.
func (r *run) drop(j *job, from int64) {
	r.machines[j.machine].release(j, from)
	for t := from; t < j.stop; t++ {
		r.used[t] -= j.nodes
	}
	j.machine, r.changed = none, true
}

// request reserves for a job, or blocks it. The failed machine takes none that would have to leave.
func (r *run) request(j *job) {
	r.out.Requests++
	without := none
	if r.failed != none && j.start < r.limit {
		without = r.failed
	}
	at := r.bestFit(j, j.start, without)
	if at == none {
		r.out.Blocked++
		return
	}
	r.machines[at].reserve(j, j.start)
	for t := j.start; t < j.stop; t++ {
		r.used[t] += j.nodes
		if r.booked != nil {
			r.booked[t-r.now] += j.nodes
		}
	}
	j.machine, r.changed, r.last = at, true, max(r.last, j.stop)
}
