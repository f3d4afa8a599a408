package remapping

import (
	"errors"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/remap"
)

// run is a run at a time.
type run struct {
	model    Model
	policy   remap.Policy
	table    *remap.Table
	machines []machine
	out      Outcome

	now    int64
	failed int // the machine, or remap.None
	number int // of the failure
	outage remap.Outage
	limit  int64 // reservations that start before leave the failed machine
}

// Play plays a model with a policy. Errors are argument.ErrInvalid.
func Play(m Model, p remap.Policy, seed uint64) (Outcome, error) {
	if err := errors.Join(m.Validate(), p.Validate()); err != nil {
		return Outcome{}, err
	}
	jobs, hit := m.draw(seed)
	r := newRun(m, p, jobs)
	r.play(jobs, hit, nil)
	for _, j := range jobs {
		if j.Machine != remap.None && j.Stop <= m.Slots {
			r.out.Completed++
		}
	}
	return r.out, nil
}

// Lengths plays a model up to the end of its first failure and returns how many slots ahead
// reservations leave the failed machine in each slot of it: VRM, figure 10. Errors are
// argument.ErrInvalid.
func Lengths(m Model, p remap.Policy, seed uint64) ([]int64, error) {
	if err := errors.Join(m.Validate(), p.Validate()); err != nil {
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
		if r.failed != remap.None {
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

func newRun(m Model, p remap.Policy, jobs []job) *run {
	slots := m.Slots
	for _, j := range jobs {
		slots = max(slots, j.Stop)
	}
	nodes := make([]remap.Amount, len(m.Nodes))
	for i, n := range m.Nodes {
		nodes[i] = remap.Amount{n}
	}
	return &run{
		model: m, policy: p, table: remap.NewTable(nodes, slots+1), failed: remap.None,
		machines: make([]machine, len(nodes)),
	}
}

// fail begins and ends failures.
func (r *run) fail(hit []int) {
	if r.failed != remap.None && r.now == r.outage.Ends {
		r.failed = remap.None
		r.table.Fail()
	}
	if r.now == 0 || r.now%r.model.Every != 0 {
		return
	}
	r.number = int(r.now/r.model.Every) - 1
	r.failed, r.outage = hit[r.number], remap.Outage{Began: r.now, Ends: r.now + r.model.Down}
	r.table.Fail(r.failed)
	for _, j := range slices.Clone(r.machines[r.failed].jobs) {
		if j.Stop <= r.now || j.Start >= r.now {
			continue
		}
		if r.policy.Migrate && r.move(j, r.now) {
			r.out.Saved++
			continue
		}
		if r.policy.Ended {
			r.table.End(j.Need, r.now, j.Stop)
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
		if j.Leaves(r.now, r.limit) && j.stays != r.number {
			if r.move(j, j.Start) {
				if j.Start < r.outage.Ends {
					r.out.Saved++
				} else {
					r.out.Overhead++
				}
				continue
			}
			j.stays = r.number
		}
		if j.Start == r.now {
			r.drop(j, r.now)
			r.out.Missed++
		}
	}
}

// before is the slot from which on reservations stay on the failed machine.
func (r *run) before() int64 {
	r.table.Booking.Elapsed = r.now
	return r.policy.Before(r.table, r.now, r.outage)
}

// move gives a job another machine than the failed one, from a slot on.
func (r *run) move(j *job, from int64) bool {
	at := j.Machine
	if !r.table.Move(&j.Reservation, from, nil) {
		return false
	}
	r.machines[at].forget(j)
	r.machines[j.Machine].note(j)
	return true
}

// drop ends a job.
func (r *run) drop(j *job, from int64) {
	r.table.Release(j.Machine, j.Need, from, j.Stop)
	r.machines[j.Machine].forget(j)
	j.Machine = remap.None
}

// request reserves for a job, or blocks it. The failed machine takes none that would have to leave.
func (r *run) request(j *job) {
	r.out.Requests++
	behind := r.failed == remap.None || j.Start >= r.limit
	at := r.table.BestFit(&j.Reservation, j.Start, behind, nil)
	if at == remap.None {
		r.out.Blocked++
		return
	}
	j.Machine = at
	r.table.Reserve(at, j.Need, j.Start, j.Stop)
	r.machines[at].note(j)
	if r.policy.Booking {
		r.table.Booking.Note(j.Need, j.Start-r.now, j.Stop-r.now)
	}
}
