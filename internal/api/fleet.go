package api

import (
	"context"
	"fmt"
)

// ListFleet answers GET /fleet.
func (h *handlers) ListFleet(
	ctx context.Context, r ListFleetRequestObject,
) (ListFleetResponseObject, error) {
	rows, err := h.backend.Fleet(ctx, pageQuery(r.Params.Limit, r.Params.After))
	if err != nil {
		return nil, fmt.Errorf("list fleet: %w", err)
	}
	for _, row := range rows {
		if row.Status != nil {
			*row.Status = wholeStatus(*row.Status)
		}
	}
	return ListFleet200JSONResponse(orEmpty(rows)), nil
}

// GetStatusAt answers GET /members/{site}/status.
func (h *handlers) GetStatusAt(
	ctx context.Context, r GetStatusAtRequestObject,
) (GetStatusAtResponseObject, error) {
	status, err := h.backend.StatusAt(ctx, r.Site)
	if err != nil {
		return nil, fmt.Errorf("show status from afar: %w", err)
	}
	return GetStatusAt200JSONResponse(wholeStatus(status)), nil
}

// PauseSiteAt answers POST /members/{site}/pause.
func (h *handlers) PauseSiteAt(
	ctx context.Context, r PauseSiteAtRequestObject,
) (PauseSiteAtResponseObject, error) {
	order, err := pauseOrder(r.Body)
	if err != nil {
		return nil, err
	}
	status, err := h.backend.PauseAt(ctx, r.Site, order)
	if err != nil {
		return nil, fmt.Errorf("pause site from afar: %w", err)
	}
	return PauseSiteAt200JSONResponse(wholeStatus(status)), nil
}

// ResumeSiteAt answers POST /members/{site}/resume.
func (h *handlers) ResumeSiteAt(
	ctx context.Context, r ResumeSiteAtRequestObject,
) (ResumeSiteAtResponseObject, error) {
	status, err := h.backend.ResumeAt(ctx, r.Site)
	if err != nil {
		return nil, fmt.Errorf("resume site from afar: %w", err)
	}
	return ResumeSiteAt200JSONResponse(wholeStatus(status)), nil
}
