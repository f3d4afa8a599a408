package jobfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// find is the place of a job in the flow, -1 if there is none of that name.
func (f *Flow) find(name string) int {
	return slices.IndexFunc(f.Jobs, func(j FlowJob) bool { return j.Name == name })
}

// link checks what is between the jobs, and notes what each needs.
func (r *flowReader) link() {
	for i := range r.flow.Jobs {
		r.linkJob(&r.flow.Jobs[i])
	}
	if len(r.errs) > 0 {
		return
	}
	if circle := r.flow.circle(); len(circle) > 0 {
		at := r.flow.find(circle[0])
		r.fail(r.lines[at], "jobs."+circle[0], "remove one of these needs", "needs itself: %s",
			strings.Join(circle, " -> "))
		return
	}
	r.checkTargets()
}

// linkJob checks what one job says of others.
func (r *flowReader) linkJob(j *FlowJob) {
	file := j.Plan.File
	needs := map[string]bool{}
	refs := slices.Clone(file.After)
	for _, in := range file.Inputs {
		if in.isTaken() {
			refs = append(refs, in.Take.Job)
			r.checkTaken(j, in)
		}
	}
	for _, ref := range refs {
		if needs[ref.Text] = true; r.flow.find(ref.Text) < 0 {
			r.failUnknown(j, ref)
		}
	}
	if ref := file.Reservation; ref.Field != "" {
		r.failIn(j, ref.Field, "submit its jobs one by one, after the reservation",
			"the jobs of a flow cannot name a reservation")
	}
	for _, other := range r.flow.Jobs {
		if needs[other.Name] {
			j.Needs = append(j.Needs, other.Name)
		}
	}
}

// failIn notes a mistake of one job.
func (r *flowReader) failIn(j *FlowJob, field, remedy, format string, args ...any) {
	r.fail(j.Plan.File.lines[field], "jobs."+j.Name+"."+field, remedy, format, args...)
}

func (r *flowReader) failUnknown(j *FlowJob, ref Ref) {
	var names []string
	for _, other := range r.flow.Jobs {
		names = append(names, other.Name)
	}
	remedy := "name one of " + strings.Join(names[:min(len(names), 10)], ", ")
	if near := grid.NearestWord(ref.Text, names); near != "" {
		remedy = "did you mean " + near + "?"
	}
	r.failIn(j, ref.Field, remedy, "no job of this flow is called %q", ref.Text)
}

// checkTaken looks at an output that a job takes of another one.
func (r *flowReader) checkTaken(j *FlowJob, in InputRef) {
	at := r.flow.find(in.Take.Job.Text)
	if at < 0 {
		return // said already
	}
	r.checkEncrypted(j, in, &r.flow.Jobs[at])
	from := r.flow.Jobs[at].Plan
	field := strings.TrimSuffix(in.Take.Job.Field, ".job")
	var leaves []string
	for _, out := range from.File.Spec.Outputs {
		leaves = append(leaves, out.Path)
	}
	tasks := from.Tasks()
	switch {
	case len(leaves) == 0:
		r.failIn(j, field+".output", "add outputs to that job", "job %s has no outputs",
			in.Take.Job.Text)
	case !slices.Contains(leaves, in.Take.Output):
		r.failIn(j, field+".output", "name it as that job does: "+strings.Join(leaves, ", "),
			"job %s has no output %s", in.Take.Job.Text, in.Take.Output)
	case in.Take.Each && j.Plan.Tasks() != tasks:
		r.failIn(j, field+".each", "give both the same count, or take all of them",
			"job %s has %d tasks and this one %d", in.Take.Job.Text, tasks, j.Plan.Tasks())
	case !in.Take.Each && tasks > grid.MaxInputs:
		r.failIn(j, field+".job", "let a job between them take them with each: true, and pack them",
			"job %s has %d tasks, and a task has at most %d inputs", in.Take.Job.Text, tasks,
			grid.MaxInputs)
	}
}

// circle is a way from a job back to itself, empty if there is none.
func (f *Flow) circle() []string {
	const under, done = 1, 2
	state := map[string]int{}
	var way []string
	var visit func(name string) []string
	visit = func(name string) []string {
		way = append(way, name)
		if state[name] == under {
			return way[slices.Index(way, name):]
		}
		if state[name] != done {
			state[name] = under
			for _, need := range f.Jobs[f.find(name)].Needs {
				if circle := visit(need); circle != nil {
					return circle
				}
			}
			state[name] = done
		}
		way = way[:len(way)-1]
		return nil
	}
	for _, j := range f.Jobs {
		if circle := visit(j.Name); circle != nil {
			return circle
		}
	}
	return nil
}

// Order lists the jobs so that each comes after those that it needs, and else as in the file:
// their places in Jobs.
func (f *Flow) Order() []int {
	var order []int
	placed := map[string]bool{}
	for len(order) < len(f.Jobs) {
		before := len(order)
		for i, j := range f.Jobs {
			waits := slices.ContainsFunc(j.Needs, func(n string) bool { return !placed[n] })
			if !placed[j.Name] && !waits {
				order, placed[j.Name] = append(order, i), true
			}
		}
		if len(order) == before { // LoadFlow has refused that
			return nil
		}
	}
	return order
}

// checkTargets refuses two jobs that would write the same file.
func (r *flowReader) checkTargets() {
	wrote := map[string]string{}
	for i := range r.flow.Jobs {
		j := &r.flow.Jobs[i]
		for k, out := range j.Plan.File.Spec.Outputs {
			for task := range j.Plan.Tasks() {
				to := filepath.Clean(fill(out.To, task, j.Plan.itemOf(task)))
				if first, double := wrote[to]; double && first != j.Name {
					r.failIn(j, fmt.Sprintf("outputs[%d].to", k), "choose another one",
						"job %s writes %s, too", first, to)
					break
				}
				wrote[to] = j.Name
			}
		}
	}
}

// itemOf is the item of a task, empty if it has none.
func (p *Plan) itemOf(task int) string {
	if task < len(p.items) {
		return p.items[task].value
	}
	return ""
}
