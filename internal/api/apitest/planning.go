package apitest

import (
	"context"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Reservations implements api.Reservations.
func (a *Agent) Reservations(context.Context) ([]view.Reservation, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []view.Reservation
	for _, r := range slices.Backward(a.jobs) {
		if r.job.Spec.Kind == grid.KindReservation {
			out = append(out, a.reservation(r))
		}
	}
	return out, nil
}

// reservation needs mu.
func (a *Agent) reservation(r *record) view.Reservation {
	s := r.job.Spec
	v := view.Reservation{
		ID: r.id, Name: s.Name, Project: s.Project, Phase: r.view().Phase,
		Need:  view.FromResources(s.Need),
		Start: view.At(s.Window.At), End: view.At(s.Window.At.Add(s.Runtime)), Hint: r.hint,
		Reasons: r.why,
	}
	for _, t := range r.tasks {
		v.Places = append(v.Places, view.ReservedPlace{
			Index: t.Index, Phase: t.Phase, Site: t.Site, SiteName: t.SiteName, Kept: t.Kept,
		})
	}
	v.Kept = view.KeptTogether(v.Places)
	for _, other := range a.jobs {
		if other.job.Spec.Reservation == r.id {
			v.Jobs = append(v.Jobs, other.id)
		}
	}
	return v
}

// Planning implements api.Planner.
func (a *Agent) Planning(context.Context) (view.Planning, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.planning, nil
}

// SetPlanning implements api.Planner.
func (a *Agent) SetPlanning(_ context.Context, p view.Planning) (view.Planning, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.planning = p
	return p, nil
}
