package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// intake holds what a job takes of other jobs: outputs of theirs that become its inputs.
type intake struct {
	asked grid.Job // as it was submitted
	// got holds, of each of its Takes, the inputs that it has become; nil: it is not there yet.
	got [][]grid.Input
}

func newIntake(asked grid.Job) intake {
	return intake{asked: asked, got: make([][]grid.Input, len(asked.Takes))}
}

// lacks reports whether something has not come.
func (in *intake) lacks() bool {
	return slices.ContainsFunc(in.got, func(inputs []grid.Input) bool { return inputs == nil })
}

// filled is the job with all that has come among its inputs. It takes only the rest.
func (in *intake) filled() grid.Job {
	job := in.asked
	job.Takes, job.Spec.Inputs = nil, slices.Clone(job.Spec.Inputs)
	for n, take := range in.asked.Takes {
		switch got := in.got[n]; {
		case got == nil:
			job.Takes = append(job.Takes, take)
		case take.Each:
			job.Items = withOwn(job.Items, got)
		default:
			job.Spec.Inputs = append(job.Spec.Inputs, got...)
		}
	}
	return job
}

// withOwn gives each item one more input. Without items each task gets one.
func withOwn(items []grid.Item, more []grid.Input) []grid.Item {
	all := make([]grid.Item, len(more))
	copy(all, items)
	for i := range all {
		all[i].Inputs = append(slices.Clone(all[i].Inputs), more[i])
	}
	return all
}
