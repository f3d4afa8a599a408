package api

import (
	"context"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// GetConfiguration answers GET /configuration.
func (h *handlers) GetConfiguration(
	ctx context.Context, _ GetConfigurationRequestObject,
) (GetConfigurationResponseObject, error) {
	c, err := h.backend.Configuration(ctx)
	if err != nil {
		return nil, fmt.Errorf("show configuration: %w", err)
	}
	return GetConfiguration200JSONResponse(c), nil
}

// ReloadConfiguration answers POST /configuration/reload.
func (h *handlers) ReloadConfiguration(
	ctx context.Context, _ ReloadConfigurationRequestObject,
) (ReloadConfigurationResponseObject, error) {
	c, err := h.backend.Reload(ctx)
	if err != nil {
		return nil, fmt.Errorf("reload configuration: %w", err)
	}
	return ReloadConfiguration200JSONResponse(c), nil
}

// ChangeConfiguration answers PATCH /configuration.
func (h *handlers) ChangeConfiguration(
	ctx context.Context, r ChangeConfigurationRequestObject,
) (ChangeConfigurationResponseObject, error) {
	if len(r.Body.Settings) == 0 {
		return nil, fmt.Errorf("change configuration: %w: settings: want one or more",
			grid.ErrInvalid)
	}
	c, err := h.backend.ChangeSettings(ctx, r.Body.Settings)
	if err != nil {
		return nil, fmt.Errorf("change configuration: %w", err)
	}
	return ChangeConfiguration200JSONResponse(c), nil
}
