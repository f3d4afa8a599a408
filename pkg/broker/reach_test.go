package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// enquiryIDs lists the jobs and the probes, ascending.
func (m *Machine) enquiryIDs() []grid.JobID {
	ids := append(m.jobs.ids(), m.probes.ids()...)
	slices.Sort(ids)
	return ids
}

// asked finds a job or a probe; nil: there is none.
func (m *Machine) asked(id grid.JobID) *job {
	j, _ := m.enquiry(id)
	return j
}

func (m *Machine) isProbe(id grid.JobID) bool {
	_, is := m.probes[id]
	return is
}
