package apitest

import (
	"context"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// SetConfiguration sets what Configuration and Reload answer.
func (a *Agent) SetConfiguration(c view.Configuration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings = c
}

// Configuration implements api.Settings.
func (a *Agent) Configuration(context.Context) (view.Configuration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings, nil
}

// Reload implements api.Settings.
func (a *Agent) Reload(ctx context.Context) (view.Configuration, error) {
	return a.Configuration(ctx)
}
