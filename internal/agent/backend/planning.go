package backend

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Planning says in what order those that wait in the site's plan move up.
func (b *Backend) Planning(ctx context.Context) (view.Planning, error) {
	var p view.Planning
	err := b.agent.AskSite(ctx, func(m *site.Machine) { p = planningOf(m.Status()) })
	return p, err
}

func planningOf(s site.Status) view.Planning {
	return view.Planning{Policy: s.Policy.String(), Backfill: s.Backfill.String()}
}

// SetPlanning changes that order until the agent ends.
func (b *Backend) SetPlanning(ctx context.Context, p view.Planning) (view.Planning, error) {
	if err := p.Validate(); err != nil {
		return p, err
	}
	if err := b.agent.Order(ctx, step.PlanningChanged{
		Policy: p.Policy, Backfill: p.Backfill,
	}); err != nil {
		return p, err
	}
	return b.Planning(ctx)
}

// planView shows the site's plan and its limit on promises.
func planView(s site.Status, n names, promised int) *view.PlanView {
	const percent = 100
	if promised == 0 {
		promised = percent
	}
	v := &view.PlanView{
		Planning: planningOf(s), Promised: view.FromResources(mostPromised(s.Attempts)),
		Limit:   view.FromResources(part(s.Capability.Total, int64(promised), percent)),
		Entries: []view.PlanEntry{},
	}
	for _, at := range s.Attempts {
		if at.Exit != 0 || at.Start.IsZero() {
			continue
		}
		v.Entries = append(v.Entries, view.PlanEntry{
			Task: at.ID.Task.String(), Token: at.ID.Token.Number(), Submitter: at.Submitter,
			SubmitterName: n[at.Submitter],
			Class:         classWord(at), State: stateWord(at), Start: view.At(at.Start),
			End:  view.At(at.End),
			Need: view.FromResources(at.Need), Within: at.Within.Task.Job,
		})
	}
	slices.SortStableFunc(v.Entries, func(x, y view.PlanEntry) int {
		return cmp.Or(x.Start.Compare(y.Start.Time), cmp.Compare(x.Task, y.Task))
	})
	return v
}

func part(r grid.Resources, of, whole int64) grid.Resources {
	return grid.Resources{
		MilliCPUs: r.MilliCPUs * of / whole, MemoryBytes: r.MemoryBytes * of / whole,
		DiskBytes: r.DiskBytes * of / whole,
		MFLOPS:    r.MFLOPS * of / whole, NetBps: r.NetBps * of / whole,
	}
}

// isPromise reports whether an attempt's place is promised. A job inside a reservation
// takes nothing in addition.
func isPromise(at site.AttemptStatus) bool {
	return at.Exit == 0 && !at.Start.IsZero() && at.Within == (grid.AttemptID{}) &&
		(at.Reserves || at.Class != plan.ClassVarTime)
}

// mostPromised is the most of each resource that promises hold together at one time.
func mostPromised(attempts []site.AttemptStatus) grid.Resources {
	type change struct {
		at    time.Time
		holds grid.Resources // from then on in addition; negative at an end
	}
	var changes []change
	for _, at := range attempts {
		if isPromise(at) {
			need := at.Need.Counted()
			changes = append(changes, change{at.Start, need}, change{at.End, grid.Resources{}.Sub(need)})
		}
	}
	slices.SortFunc(changes, func(x, y change) int { // ends first: places are half open
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.holds.MemoryBytes, y.holds.MemoryBytes))
	})
	var most, held grid.Resources
	for _, c := range changes {
		held = held.Add(c.holds)
		most = grid.Resources{
			MilliCPUs:   max(most.MilliCPUs, held.MilliCPUs),
			MemoryBytes: max(most.MemoryBytes, held.MemoryBytes),
			DiskBytes:   max(most.DiskBytes, held.DiskBytes), MFLOPS: max(most.MFLOPS, held.MFLOPS),
			NetBps: max(most.NetBps, held.NetBps),
		}
	}
	return most
}

func classWord(at site.AttemptStatus) string {
	switch {
	case at.Reserves:
		return "reservation"
	case at.Class == plan.ClassFixTime:
		return "fixed"
	case at.Class == plan.ClassDeadline:
		return "deadline"
	default:
		return "best-effort"
	}
}

func stateWord(at site.AttemptStatus) string {
	switch {
	case at.Reserves && at.Planned:
		return "held"
	case at.Reserves:
		return "open"
	case at.Suspended || at.Displaced != grid.ReasonNone:
		return "suspended"
	case at.Planned:
		return "waits"
	default:
		return "runs"
	}
}

// Reservations lists this agent's own, newest first, with the jobs bound to them.
func (b *Backend) Reservations(ctx context.Context) ([]view.Reservation, error) {
	var held []broker.JobState
	var n names
	bound := make(map[grid.JobID][]grid.JobID)
	err := b.agent.AskBroker(ctx, func(m *broker.Machine) {
		n = b.namesNow(m)
		for _, id := range m.Jobs() {
			job, ok := m.Job(id)
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
		ID: job.ID, Name: s.Name, Project: s.Project, Phase: shown.Phase,
		Need:  view.FromResources(s.Need),
		Start: view.At(s.Window.At), End: view.At(s.Window.At.Add(s.Runtime)), Hint: shown.Hint,
		Reasons: shown.Reasons,
		Places:  []view.ReservedPlace{}, Jobs: append([]grid.JobID{}, bound...),
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

// plannedStart is when a task that waits at its site is to start there. One with a
// fixed start is promised no other.
func plannedStart(job broker.JobState, t broker.TaskState) view.Time {
	if at := job.Job.Spec.Window.At; !at.IsZero() && t.Phase == grid.PhaseStaging {
		return view.At(at)
	}
	return view.At(t.PlannedStart)
}

// jobList is "jobs a, b and 3 more are" or "job a is".
func jobList(ids []grid.JobID) string {
	const most = 3
	if len(ids) == 1 {
		return "job " + string(ids[0]) + " is"
	}
	var shown []string
	for _, id := range ids[:min(len(ids), most)] {
		shown = append(shown, string(id))
	}
	text := "jobs " + strings.Join(shown, ", ")
	if more := len(ids) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " are"
}

// promised reports whether sites are asked for a promise rather than for their best.
func promised(s grid.Spec) bool { return s.Kind == grid.KindReservation || s.Window.Promised() }
