package remapping

import "slices"

// machine knows who has reserved it.
type machine struct {
	jobs []*job // in the order of their requests
}

func (m *machine) note(j *job) {
	at, _ := slices.BinarySearchFunc(m.jobs, j, func(o, j *job) int {
		return o.Earlier(&j.Reservation)
	})
	m.jobs = slices.Insert(m.jobs, at, j)
}

func (m *machine) forget(j *job) {
	m.jobs = slices.DeleteFunc(m.jobs, func(o *job) bool { return o == j })
}
