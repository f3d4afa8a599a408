package remapping

import "slices"

// machine knows which of its nodes are reserved.
type machine struct {
	nodes int64
	used  []int64 // nodes, of each slot
	jobs  []*job  // in the order of their requests
}

// peak is the greatest number of nodes used from a slot up to another one, which does not count.
func (m *machine) peak(from, to int64) int64 { return slices.Max(m.used[from:to]) }

// reserve has a job use the machine from a slot on.
func (m *machine) reserve(j *job, from int64) {
	for t := from; t < j.stop; t++ {
		m.used[t] += j.nodes
	}
	at, _ := slices.BinarySearchFunc(m.jobs, j.seq, func(o *job, seq int64) int {
		return int(o.seq - seq)
	})
	m.jobs = slices.Insert(m.jobs, at, j)
}

// release takes a job off the machine from a slot on.
func (m *machine) release(j *job, from int64) {
	for t := from; t < j.stop; t++ {
		m.used[t] -= j.nodes
	}
	m.jobs = slices.DeleteFunc(m.jobs, func(o *job) bool { return o == j })
}

// bestFit is the machine with the fewest free nodes that can take a job from a slot on, the
// first one of equals; none if there is no such machine. One machine is left out.
func (r *run) bestFit(j *job, from int64, without int) int {
	best, least := none, int64(0)
	for i, m := range r.machines {
		if i == without || m.nodes < j.nodes {
			continue
		}
		free := m.nodes - m.peak(from, j.stop)
		if free >= j.nodes && (best == none || free < least) {
			best, least = i, free
		}
	}
	return best
}
