package api

import (
	"context"
	"fmt"
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
