package api

import (
	"context"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// GetOffers answers GET /jobs/{id}/offers.
func (h *handlers) GetOffers(
	ctx context.Context, r GetOffersRequestObject,
) (GetOffersResponseObject, error) {
	id, err := jobID(r.Id)
	if err != nil {
		return nil, err
	}
	table, err := h.backend.Offers(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("show offers of %s: %w", id, err)
	}
	if visitOf(ctx).session.Guest {
		table = guestTable(table)
	}
	return GetOffers200JSONResponse(fillTable(table)), nil
}

// ListRounds answers GET /jobs/{id}/rounds.
func (h *handlers) ListRounds(
	ctx context.Context, r ListRoundsRequestObject,
) (ListRoundsResponseObject, error) {
	id, err := jobID(r.Id)
	if err != nil {
		return nil, err
	}
	rounds, err := h.backend.Rounds(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("list rounds of %s: %w", id, err)
	}
	rounds, err = view.Page(rounds, pageQuery(r.Params.Limit, r.Params.After), view.OfferTable.ID)
	if err != nil {
		return nil, fmt.Errorf("list rounds of %s: %w", id, err)
	}
	guest := visitOf(ctx).session.Guest
	for i := range rounds {
		if guest {
			rounds[i] = guestTable(rounds[i])
		}
		rounds[i] = fillTable(rounds[i])
	}
	return ListRounds200JSONResponse(orEmpty(rounds)), nil
}

func fillTable(table view.OfferTable) view.OfferTable {
	table.Rows, table.Counterfactuals = orEmpty(table.Rows), orEmpty(table.Counterfactuals)
	return table
}

// PlanJob answers POST /plan.
func (h *handlers) PlanJob(
	ctx context.Context, r PlanJobRequestObject,
) (PlanJobResponseObject, error) {
	job, err := r.Body.Job()
	if err != nil {
		return nil, fmt.Errorf("plan job: %w", err)
	}
	table, err := h.backend.Plan(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("plan job: %w", err)
	}
	return PlanJob200JSONResponse(fillTable(table)), nil
}
