package broker

import (
	"cmp"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// before orders this submitter's jobs: the higher priority first, then the one that
// was submitted first.
func before(a, b *job) int {
	return cmp.Or(cmp.Compare(b.job.Spec.Priority, a.job.Spec.Priority), a.submitted.Compare(b.submitted), cmp.Compare(a.id, b.id))
}

// inOrder sorts jobs in the order in which they are served. When none has a priority
// they stay as they are.
func (m *Machine) inOrder(ids []grid.JobID) []grid.JobID {
	ids = slices.Clone(ids)
	if m.ranked > 0 {
		slices.SortFunc(ids, func(a, b grid.JobID) int { return before(m.jobs[a], m.jobs[b]) })
	}
	return ids
}

// served lists all jobs in the order in which they are served.
func (m *Machine) served() []grid.JobID { return m.inOrder(m.jobIDs()) }

// asking reports whether a job has tasks that look for a site and can be asked for
// now.
func (m *Machine) asking(j *job) bool {
	return len(j.waiting) > 0 && !j.probe && !m.blocked(j)
}

// vacancy: a site has room for jobs that it remembers. It does not know which matter
// most: jobs that wait here and come before those it names are asked for first.
func (m *Machine) vacancy(from grid.SiteID, msg protocol.Vacancy) {
	named := slices.DeleteFunc(slices.Clone(msg.Jobs), func(id grid.JobID) bool {
		j, known := m.jobs[id]
		return !known || !m.asking(j)
	})
	for _, id := range m.inOrder(append(named, m.higher(named)...)) {
		m.ask(m.jobs[id], from)
	}
}

// higher lists jobs that wait and have a higher priority than one of those named, at
// most as many.
func (m *Machine) higher(named []grid.JobID) []grid.JobID {
	if m.ranked == 0 || len(named) == 0 {
		return nil
	}
	lowest := m.jobs[m.inOrder(named)[len(named)-1]].job.Spec.Priority
	var more []grid.JobID
	for _, id := range m.served() {
		j := m.jobs[id]
		if j.job.Spec.Priority <= lowest || len(more) == len(named) {
			break
		}
		if m.asking(j) && !slices.Contains(named, id) {
			more = append(more, id)
		}
	}
	return more
}

// announceInTurn announces a waiting job again, after the one that matters most of
// those that wait, too.
func (m *Machine) announceInTurn(j *job) {
	if m.ranked > 0 {
		for _, id := range m.served() {
			first := m.jobs[id]
			if first.job.Spec.Priority <= j.job.Spec.Priority {
				break
			}
			if m.asking(first) {
				m.announceAgain(first)
				break
			}
		}
	}
	m.announceAgain(j)
}
