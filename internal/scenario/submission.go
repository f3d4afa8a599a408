package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Submission is one or more jobs of the same shape. Its times count from the
// scenario's beginning; 0 leaves one open.
type Submission struct {
	Name       string
	By         string          // name of the site whose agent gets it
	Jobs       int             // how many jobs, at least 1
	Count      uint32          // tasks of each job
	Need       grid.Resources  // of one task
	Run        time.Duration   // of one task on a site that gives it just what it needs
	Data       int64           // bytes that each task needs besides its module; 0 = none
	TTL        time.Duration   // how long answers are awaited
	Unattended grid.Unattended // what an attempt does when the submitter is gone
	NoWait     bool            // refuse rather than wait
	Takes      time.Duration   // how long a task really runs, if that is not Run; 0 = as long as Run

	Limit  time.Duration // after which a task is stopped; 0 = none
	Output bool          // it declares the output that a task leaves

	Start     time.Duration // the only time at which it may start
	NotBefore time.Duration // the earliest time at which it may start
	Deadline  time.Duration // the latest time at which it may end
	Reserve   bool          // it holds capacity from Start on for Run, and runs nothing

	Reservation string       // the submission in whose reservation it runs; empty: none
	After       []string     // the submissions that must be done before, in the order written
	Split       grid.Split   // whether its tasks are parts that run together
	Flood       bool         // several sites queue it
	Map         grid.MapKind // how distance is measured
}

// moduleBytes is the size of every submission's module.
const moduleBytes = 1 << 20

// Job is the submission as a job of a scenario that began at a time on the
// submitter's clock. The jobs it names have those identifiers; see Ready. The
// content identifiers are made up of its name; a driver with real data puts real
// ones in their place.
func (s Submission) Job(begin time.Time, ids map[string]grid.JobID) grid.Job {
	j := grid.Job{
		Spec: grid.Spec{
			Name: s.Name, Kind: grid.KindWasm, Need: s.Need, Runtime: s.Run, Weights: grid.DefaultWeights(),
			Module:    grid.Input{Path: "/module.wasm", CID: "bmodule", Bytes: moduleBytes},
			TimeLimit: s.Limit, Unattended: s.Unattended, Map: s.Map, Reservation: ids[s.Reservation],
			Window: grid.Window{
				At: moment(begin, s.Start), NotBefore: moment(begin, s.NotBefore),
				Deadline: moment(begin, s.Deadline),
			},
		},
		Count: s.Count, TTL: s.TTL, Split: s.Split, Flood: s.Flood,
	}
	for _, name := range s.After {
		j.After = append(j.After, ids[name])
	}
	if s.Data > 0 {
		cid := grid.CID("bdata" + strings.ToLower(s.Name))
		j.Spec.Inputs = []grid.Input{{Path: "/in/data", CID: cid, Bytes: s.Data}}
	}
	if s.Output {
		j.Spec.Outputs = []grid.Output{{Path: "/out/result"}}
	}
	if s.Reserve {
		j.Spec.Kind, j.Spec.Module = grid.KindReservation, grid.Input{}
	}
	return j
}

// Lasts returns the actual run time of a task.
func (s Submission) Lasts() time.Duration { return cmp.Or(s.Takes, s.Run) }

// moment is a time of the scenario, the zero time for one that is open.
func moment(begin time.Time, at time.Duration) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return begin.Add(at)
}

// Needs lists the submissions that this one names.
func (s Submission) Needs() []string {
	if s.Reservation == "" {
		return s.After
	}
	return append(slices.Clone(s.After), s.Reservation)
}

// Ready reports whether every job that this one names is known. One that is not
// was submitted to an agent that was dead; its user submits nothing that needs it.
func (s Submission) Ready(ids map[string]grid.JobID) bool {
	return !slices.ContainsFunc(s.Needs(), func(name string) bool { return ids[name] == "" })
}

// Names lists the names of a submission's jobs: its own if there is one job,
// else with a number behind it, from 1.
func (s Submission) Names() []string {
	if s.Jobs <= 1 {
		return []string{s.Name}
	}
	names := make([]string, s.Jobs)
	for i := range names {
		names[i] = fmt.Sprintf("%s#%d", s.Name, i+1)
	}
	return names
}
