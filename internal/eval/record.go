package eval

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/sim"
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
	Offers     []Offer        // of a mesh, in the order of sending, if they were asked for
	OffersCut  bool           // there were more offers than are kept
	InSeconds  bool           // they are in the map of seconds, not in that of the thesis

	ends    []ending // of each job
	numbers []int64  // that a log gives the jobs; nil: 1, 2, ...
}

// Hold is a part of a site that a job, or a copy of it, had for itself: of a queue with its
// transfers; in the mesh while it executed, because before a site may promise what another job has
// still, and not while it was suspended for one that was promised its place.
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

// seeHold notes what an attempt of a job has for itself.
func (r *meshRun) seeHold(s sim.Sight, job int) {
	at, id := s.At-r.zero, s.Report.Attempt
	switch event := s.Report.Event; {
	case s.Broker:
	case event == "started" || event == "resumed":
		r.executing[id] = at
	case event == "exited" || event == "dropped" || event == "suspended":
		from, executed := r.executing[id]
		if !executed {
			return
		}
		delete(r.executing, id)
		nodes := float64(r.jobs[job].Need.MilliCPUs) / 1000 / float64(r.parts(r.jobs[job]))
		r.holds = append(r.holds, Hold{
			Job: job, Site: r.sites[s.Site], Nodes: nodes, From: from, To: at,
		})
	}
}
