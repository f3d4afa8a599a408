package apitest

import (
	"context"
	"net/http"
	"slices"

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

// ChangeSettings implements api.Settings. It knows the settings that SetConfiguration has set.
func (a *Agent) ChangeSettings(
	_ context.Context, values map[string]string,
) (view.Configuration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	after := a.settings
	after.Settings, after.Changed = slices.Clone(after.Settings), nil
	for name, value := range values {
		at := slices.IndexFunc(after.Settings, func(s view.Setting) bool { return s.Name == name })
		if at < 0 {
			return view.Configuration{}, &view.Problem{
				Status: http.StatusUnprocessableEntity, Detail: "no such setting", Field: name,
				Remedy: "siteagent config show lists them",
			}
		}
		after.Settings[at].Value = value
		after.Changed = append(after.Changed, name)
	}
	slices.Sort(after.Changed)
	a.settings = after
	return after, nil
}
