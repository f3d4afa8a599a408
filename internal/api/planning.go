package api

import (
	"context"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ListReservations answers GET /reservations.
func (h *handlers) ListReservations(
	ctx context.Context, r ListReservationsRequestObject,
) (ListReservationsResponseObject, error) {
	all, err := h.backend.Reservations(ctx)
	if err != nil {
		return nil, fmt.Errorf("list reservations: %w", err)
	}
	q := pageQuery(r.Params.Limit, r.Params.After)
	all, err = view.Page(all, q, func(row view.Reservation) grid.JobID { return row.ID })
	if err != nil {
		return nil, fmt.Errorf("list reservations: %w", err)
	}
	for i := range all {
		all[i].Places, all[i].Jobs = orEmpty(all[i].Places), orEmpty(all[i].Jobs)
	}
	return ListReservations200JSONResponse(orEmpty(all)), nil
}

// GetPlanning answers GET /planning.
func (h *handlers) GetPlanning(
	ctx context.Context, _ GetPlanningRequestObject,
) (GetPlanningResponseObject, error) {
	p, err := h.backend.Planning(ctx)
	if err != nil {
		return nil, fmt.Errorf("show planning: %w", err)
	}
	return GetPlanning200JSONResponse(p), nil
}

// SetPlanning answers PUT /planning.
func (h *handlers) SetPlanning(
	ctx context.Context, r SetPlanningRequestObject,
) (SetPlanningResponseObject, error) {
	if err := r.Body.Validate(); err != nil {
		return nil, fmt.Errorf("change planning: %w", err)
	}
	p, err := h.backend.SetPlanning(ctx, *r.Body)
	if err != nil {
		return nil, fmt.Errorf("change planning: %w", err)
	}
	return SetPlanning200JSONResponse(p), nil
}
