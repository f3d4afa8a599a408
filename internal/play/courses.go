package play

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Course tells what became of a job.
type Course struct {
	Name      string
	Submitted time.Duration // since the first agent started
	Took      time.Duration // from then on until it had ended with its results here; -1: it has not
	Ran       time.Duration // the programs of its tasks together, frozen time left out
	Sites     []string      // of each task: where it was started last; empty: nowhere
}

// milestone is a report that says how a job goes.
type milestone struct {
	at      time.Duration
	site    grid.SiteID
	ended   bool // of the job; else an attempt was started
	attempt grid.AttemptID
}

// milestones are those of all jobs, as far as machines report them.
type milestones []milestone

// eventEnded is the report of a submitter's machine that a job has ended.
const eventEnded = "job_ended"

// note takes what a machine reports.
func (all *milestones) note(by grid.SiteID, broker bool, at time.Duration, r step.Report) {
	ended, started := broker && r.Event == eventEnded, !broker && r.Event == "started"
	if ended || started {
		*all = append(*all, milestone{at: at, site: by, ended: ended, attempt: r.Attempt})
	}
}

// courses tells what became of jobs that were submitted under some identities.
func (all *milestones) courses(o *Observed, ids []grid.JobID) []Course {
	names := make(map[grid.SiteID]string)
	for _, s := range o.sites {
		names[s.id] = s.name
	}
	courses, at := make([]Course, len(ids)), make(map[grid.JobID]int)
	for i, j := range o.jobs {
		courses[i] = Course{
			Name: j.in.Job.Spec.Name, Submitted: j.at, Took: -1,
			Sites: make([]string, j.in.Job.Count),
		}
		for index := range courses[i].Sites {
			courses[i].Ran += o.ends[grid.TaskID{Job: j.id, Index: uint32(index)}].ran
		}
		at[ids[i]] = i
	}
	slices.SortStableFunc(*all, func(a, b milestone) int { return cmp.Compare(a.at, b.at) })
	for _, m := range *all {
		i, known := at[m.attempt.Task.Job]
		switch {
		case !known:
		case m.ended:
			courses[i].Took = m.at - courses[i].Submitted
		default:
			courses[i].Sites[m.attempt.Task.Index] = names[m.site]
		}
	}
	return courses
}

// lastEnd is when the last of some jobs had ended.
func lastEnd(courses []Course) (last time.Duration) {
	for _, c := range courses {
		if c.Took >= 0 {
			last = max(last, c.Submitted+c.Took)
		}
	}
	return last
}
