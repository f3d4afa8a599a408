package grid

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Take is an output of another own job that becomes an input once that job is done.
type Take struct {
	// Path is that of the input. Of an array it is a directory, in which each task's output has the
	// task's index as name, with zeros in front so that all are equally long.
	Path   string
	Job    JobID  // that leaves it; one of Job.After
	Output string // as in that job's Output.Path
	// Each: task i gets the output of that job's task i alone; both have as many tasks.
	Each bool `json:",omitempty"`
}

// validateTakes is about what is taken of other jobs.
func (j Job) validateTakes() error {
	if len(j.Takes) > maxArgs {
		return invalidf("takes: more than %d", maxArgs)
	}
	if len(j.Takes) > 0 && j.Spec.Kind == KindReservation {
		return invalidf("takes: a reservation has no inputs")
	}
	for _, t := range j.Takes {
		err := firstError(validatePath("input", t.Path), validatePath("output", t.Output))
		if err != nil {
			return err
		}
		if !slices.Contains(j.After, t.Job) {
			return invalidf("takes: %s comes from job %s, which is not among those it runs after",
				t.Path, t.Job)
		}
	}
	return nil
}

// Taken are the inputs that a Take of a job becomes, in the order of that job's tasks; exits tells
// how each has ended. With an empty exits nothing has: what they will be called is given, with
// contents of the right size and no meaning. The error says what is not there.
func (j Job) Taken(t Take, exits []*Exit) ([]Input, error) {
	at := slices.IndexFunc(j.Spec.Outputs, func(o Output) bool { return o.Path == t.Output })
	if at < 0 {
		return nil, invalidf("takes: job %s leaves no %s; %s", t.Job, t.Output, j.leaves())
	}
	if !t.Each && j.Count > maxArgs {
		return nil, invalidf("takes: job %s has %d tasks, and a task has at most %d inputs; "+
			"let a job between them pack them together", t.Job, j.Count, maxArgs)
	}
	taken := make([]Input, j.Count)
	for i := range taken {
		in := Input{Path: t.Path, CID: unknownCID, Bytes: maxBytes >> 12}
		if !t.Each && j.Count > 1 {
			in.Path += "/" + padded(i, len(taken))
		}
		if len(exits) > 0 {
			item := Item{}
			if len(j.Items) > 0 {
				item = j.Items[i]
			}
			path := j.Spec.Expand(t.Job, uint32(i), item).Outputs[at].Path
			left, found := leftAt(exits[i], path)
			if !found {
				return nil, invalidf("task %d of job %s has not left %s", i, t.Job, path)
			}
			in.CID, in.Bytes, in.Dir = left.CID, left.Bytes, left.Dir
		}
		taken[i] = in
	}
	return taken, nil
}

// unknownCID is as long as what a data room gives.
const unknownCID = "bafybeiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// leaves says what a job leaves, for people.
func (j Job) leaves() string {
	if len(j.Spec.Outputs) == 0 {
		return "it has no outputs"
	}
	var paths []string
	for _, o := range j.Spec.Outputs {
		paths = append(paths, o.Path)
	}
	return "it leaves " + strings.Join(paths, ", ")
}

// leftAt finds an output of an attempt that has ended; e may be nil.
func leftAt(e *Exit, path string) (Produced, bool) {
	if e == nil {
		return Produced{}, false
	}
	at := slices.IndexFunc(e.Outputs, func(p Produced) bool { return p.Path == path })
	if at < 0 {
		return Produced{}, false
	}
	return e.Outputs[at], true
}

// padded is a number below n with zeros in front, so that names sort as numbers do.
func padded(i, n int) string {
	return fmt.Sprintf("%0*d", len(strconv.Itoa(n-1)), i)
}
