package eval

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
)

// RunRecord is one run of an experiment, as it happened.
type RunRecord struct {
	Experiment string
	Strategy   string
	Seed       uint64
	Grid       baseline.Grid
	Jobs       []baseline.Job // in the order of submission
	Holds      []Hold         // in the order in which they began, or ended

	ends    []ending // of each job
	numbers []int64  // that a log gives the jobs; nil: 1, 2, ...
}

// Hold is a part of a site that a job, or a copy of it, had for itself.
type Hold struct {
	Job, Copy int // places from 0
	Site      int
	Nodes     float64
	From, To  time.Duration
}

// queueHolds tells them of a schedule.
func queueHolds(runs []baseline.Run) []Hold {
	holds := make([]Hold, len(runs))
	for i, r := range runs {
		holds[i] = Hold{
			Job: r.Job, Copy: r.Copy, Site: r.Site, Nodes: float64(r.Took.MilliCPUs) / 1000,
			From: r.Begin, To: r.End,
		}
	}
	return holds
}
