package agent

import (
	"context"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Planning is what the owner decides about the site's plan. Zero spans and words are
// the machine's defaults.
type Planning struct {
	Policy, Backfill string        // as plan.ParsePolicy and plan.ParseBackfill read them
	Horizon          time.Duration // what is planned beyond it is not displaced by an outage
	Promised         int           // percent of the capacity that promises hold together at most
	Strangers        int           // percent that other submitters' promises hold, where anyone may submit; 0 = no such limit
	Submitter        int           // percent that one other submitter holds; 0 = no limit
	Project          int           // percent that one project holds; 0 = no limit
	Ahead, Longest   time.Duration // how far ahead, and for how long at once, others may reserve
	Fairshare        bool          // promises begin behind all that waits (Migol 4)
	Overestimate     float64       // known over-estimation of running times, 0 to 0.9
}

// now is the order in which those that wait move up.
func (p Planning) now() view.Planning {
	v := view.Planning{Policy: p.Policy, Backfill: p.Backfill}
	if v.Policy == "" {
		v.Policy = view.Policies()[0]
	}
	if v.Backfill == "" {
		v.Backfill = view.Backfills()[0]
	}
	return v
}

// Planning says in what order those that wait in the site's plan move up.
func (a *Agent) Planning(ctx context.Context) (view.Planning, error) {
	var p view.Planning
	err := a.site.ask(ctx, func() { p = a.cfg.Planning.now() })
	return p, err
}

// SetPlanning changes that order until the agent ends.
func (a *Agent) SetPlanning(ctx context.Context, p view.Planning) (view.Planning, error) {
	if err := p.Validate(); err != nil {
		return p, err
	}
	a.site.tell(step.PlanningChanged{Policy: p.Policy, Backfill: p.Backfill})
	err := a.site.ask(ctx, func() { a.cfg.Planning.Policy, a.cfg.Planning.Backfill = p.Policy, p.Backfill })
	return p, err
}

// Reservations lists this agent's own, newest first, with the jobs bound to them.
func (a *Agent) Reservations(ctx context.Context) ([]view.Reservation, error) {
	var held []broker.JobState
	var n names
	bound := make(map[grid.JobID][]grid.JobID)
	err := a.broker.ask(ctx, func() {
		n = a.namesNow()
		for _, id := range a.brokerMachine.Jobs() {
			job, ok := a.brokerMachine.Job(id)
			if !ok {
				continue
			}
			if job.Job.Spec.Kind == grid.KindReservation {
				held = append(held, job)
			}
			if in := job.Job.Spec.Reservation; in != "" {
				bound[in] = append(bound[in], id)
			}
		}
	})
	all := []view.Reservation{}
	for _, job := range slices.Backward(held) {
		all = append(all, reservationView(job, bound[job.ID], n))
	}
	return all, err
}

func reservationView(job broker.JobState, bound []grid.JobID, n names) view.Reservation {
	s, shown := job.Job.Spec, jobView(job)
	v := view.Reservation{
		ID: job.ID, Name: s.Name, Project: s.Project, Phase: shown.Phase, Need: view.FromResources(s.Need),
		Start: view.At(s.Window.At), End: view.At(s.Window.At.Add(s.Runtime)), Hint: shown.Hint, Reasons: shown.Reasons,
		Places: []view.ReservedPlace{}, Jobs: append([]grid.JobID{}, bound...),
	}
	for _, t := range job.Tasks {
		task := taskView(job, t, n)
		v.Places = append(v.Places, view.ReservedPlace{
			Index: task.Index, Phase: task.Phase, Site: task.Site, SiteName: task.SiteName, Kept: task.Kept,
		})
	}
	v.Kept = view.KeptTogether(v.Places)
	return v
}

// shownPhase is the phase in the words of the kind of work.
func shownPhase(job broker.JobState, t broker.TaskState) view.Phase {
	phase := phaseOf(t)
	if job.Job.Spec.Kind == grid.KindReservation {
		return phase.OfReservation()
	}
	return phase
}

// promised reports whether sites are asked for a promise rather than for their best.
func promised(s grid.Spec) bool { return s.Kind == grid.KindReservation || s.Window.Promised() }
