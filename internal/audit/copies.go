package audit

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// mostCopies is a bound of the copies that a task can have, see grid.Redundancy.Most.
const mostCopies = 3 * grid.MaxReplicas

// copies lists the names under which a task may have run: its own, and those of its copies.
func (s Submission) copies(index uint32) []grid.TaskID {
	all := []grid.TaskID{{Job: s.Job, Index: index}}
	for n := uint32(1); s.Copied && n < mostCopies; n++ {
		all = append(all, grid.TaskID{Job: s.Job, Index: n*s.Count + index})
	}
	return all
}

// ofCopies makes one task of its copies: it has ended as the one whose result counts, or without a
// result. While nothing is decided it goes on, unless a copy was called off with the job. The runs
// are those of the copy that counts, or of all while none does.
func ofCopies(
	s Submission, index uint32, tasks map[grid.TaskID]Task, runs map[grid.TaskID][]Run,
) (Task, []Run) {
	names := s.copies(index)
	first := tasks[names[0]]
	if first.Chosen > 0 && first.Chosen <= mostCopies {
		chosen := names[first.Chosen-1]
		return tasks[chosen], runs[chosen]
	}
	open, failed := Task{ID: names[0]}, first.NoResult
	var all []Run
	for _, id := range names {
		all = append(all, runs[id]...)
		switch t := tasks[id]; {
		case t.Phase == grid.PhaseFailed && s.Closed: // stopped with the job
			failed = true
		case t.Phase == grid.PhaseCancelled, t.Phase == grid.PhaseRefused:
			open.Phase = t.Phase
		case t.Awarded.After(open.Awarded):
			open.Awarded = t.Awarded
		}
	}
	if failed && !open.Phase.Ended() {
		open.Phase = grid.PhaseFailed
	}
	return open, all
}
