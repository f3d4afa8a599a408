package broker

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// checkTakes refuses a job that takes what nobody leaves. What it takes of is known here, and
// stays until it has that: see isNeeded.
func (l *jobs) checkTakes(asked grid.Job) error {
	for _, take := range asked.Takes {
		first, known := l.all[take.Job]
		if !known {
			return fmt.Errorf("%w: takes: job %s is not kept here any more, and what it has left "+
				"is not known; submit it again", grid.ErrInvalid, take.Job)
		}
		if first.traits.encrypted {
			return fmt.Errorf("%w: takes: job %s is encrypted, and no other job has its key; "+
				"fetch %s and name the file as an input", grid.ErrInvalid, take.Job, take.Output)
		}
		if _, err := first.spec.Taken(take, nil); err != nil {
			return err
		}
		if take.Each && first.spec.Count != asked.Count {
			return fmt.Errorf("%w: takes: job %s has %d tasks and this one %d; each can take that "+
				"of one other only if there are as many", grid.ErrInvalid, take.Job,
				first.spec.Count, asked.Count)
		}
	}
	return nil
}

// stand puts in place of what a job takes contents of the same size, or takes them away again: so
// that what cannot be said is refused when it is submitted, and not when the work before it is
// done.
func (l *jobs) stand(j *job, in bool) {
	for n, take := range j.asked.Takes {
		if j.got[n] = nil; in {
			j.got[n], _ = l.all[take.Job].spec.Taken(take, nil) // checkTakes has found it
		}
	}
	j.spec = j.filled()
}

// gather notes what a job takes of those that are done. It reports whether there is something
// new; the error is for people.
func (l *jobs) gather(j *job) (found []grid.CID, err error) {
	for n, take := range j.asked.Takes {
		first, known := l.all[take.Job]
		switch {
		case j.got[n] != nil:
			continue
		case !known:
			return nil, fmt.Errorf("what it takes of job %s is not known here any more", take.Job)
		case !first.done():
			continue
		}
		if j.got[n], err = first.spec.Taken(take, first.exits()); err != nil {
			return nil, err
		}
		for _, in := range j.got[n] {
			found = append(found, in.CID)
		}
	}
	if len(found) > 0 {
		j.spec = j.filled()
		err = j.spec.Validate()
	}
	return found, err
}

// exits tells how each task has ended, as the copy whose result counts.
func (r *roster) exits() []*grid.Exit {
	exits := make([]*grid.Exit, r.heads())
	for i := range exits {
		exits[i] = r.tasks[r.stands(uint32(i))].exit
	}
	return exits
}

// refill takes up what an earlier run has noted of what the job takes.
func (j *job) refill(taken [][]grid.Input) error {
	if len(taken) == 0 {
		return nil
	}
	if len(taken) != len(j.got) {
		return fmt.Errorf("%w: takes %d and has %d", grid.ErrInvalid, len(j.got), len(taken))
	}
	for n, inputs := range taken {
		if j.asked.Takes[n].Each && inputs != nil && len(inputs) != int(j.asked.Count) {
			return fmt.Errorf("%w: takes %d inputs for %d tasks", grid.ErrInvalid, len(inputs),
				j.asked.Count)
		}
	}
	j.got = taken
	j.spec = j.filled()
	return j.spec.Validate()
}
