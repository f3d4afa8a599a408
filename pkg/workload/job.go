package workload

import (
	"cmp"
	"slices"
)

// Job is a rigid job: it runs on a fixed number of processors from its start to its
// end without a break.
type Job struct {
	ID       int64
	Submit   Seconds // nobody knows of it before
	Run      Seconds // at least 1; nobody knows it before it ends
	Estimate Seconds // what the user says, at least Run
	Procs    int     // at least 1
}

// Job returns what a scheduler of a machine with procs processors sees of the record.
//
// It wants what was asked for, or else what it got, but at most the machine. Its
// estimate is the time asked for, and a run that was longer is cut there; then what it
// ran in the log stays its estimate. Without an estimate the scheduler knows the run
// time. What never ran or has no size lasts one second.
func (r Record) Job(procs int) Job {
	want := r.RequestedProcs
	if want <= 0 {
		want = r.UsedProcs
	}
	j := Job{ID: r.ID, Submit: r.Submit, Procs: int(min(max(want, 1), int64(procs)))}
	if r.Run <= 0 || want <= 0 {
		j.Run, j.Estimate = 1, 1
		return j
	}
	j.Run, j.Estimate = r.Run, r.Run
	if r.RequestedTime > 0 {
		j.Run, j.Estimate = min(r.Run, r.RequestedTime), max(r.Run, r.RequestedTime)
	}
	return j
}

// Jobs returns what a scheduler sees of the log, in the order in which it sees it: by
// submission, and those of one second in the order of the lines.
func (l Log) Jobs(procs int) []Job {
	jobs := make([]Job, len(l.Records))
	for i, r := range l.Records {
		jobs[i] = r.Job(procs)
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	return jobs
}
