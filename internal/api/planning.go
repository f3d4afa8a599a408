package api

import (
	"context"
	"fmt"
)

// ListReservations answers GET /reservations.
func (h *handlers) ListReservations(
	ctx context.Context, _ ListReservationsRequestObject,
) (ListReservationsResponseObject, error) {
	all, err := h.backend.Reservations(ctx)
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
