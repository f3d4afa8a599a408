package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/internal/lrm/wasm"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// makeAdapters makes what runs the kinds of work that the owner allows and that
// work on this machine, and says what the owner should know of them.
func makeAdapters(ctx context.Context, c config.Agent, log *slog.Logger) (map[grid.WorkKind]lrm.Adapter, []view.Notice, error) {
	adapters := make(map[grid.WorkKind]lrm.Adapter)
	var notices []view.Notice
	for _, kind := range c.Kinds {
		adapter, err := makeAdapter(ctx, c, kind)
		if err != nil {
			return nil, nil, err
		}
		support := adapter.Probe(ctx)
		for _, note := range support.Notes {
			log.Warn("a kind of work has limits here", "kind", kind.String(), "reason", note)
			notices = append(notices, view.Notice{Text: kind.String() + ": " + note})
		}
		for _, works := range support.Kinds {
			adapters[works] = adapter
		}
	}
	return adapters, notices, nil
}

func makeAdapter(ctx context.Context, c config.Agent, kind grid.WorkKind) (lrm.Adapter, error) {
	record := filepath.Join(c.StateDir, agent.RecordFile)
	if kind == grid.KindCommand {
		settings, err := native.DefaultConfig(c.StateDir)
		if err != nil {
			return nil, err
		}
		settings.RecordPath, settings.Sandbox = record, c.Sandbox
		return native.New(ctx, settings)
	}
	settings, err := wasm.DefaultConfig(filepath.Join(c.StateDir, "wasm"))
	if err != nil {
		return nil, err
	}
	settings.RecordPath = record
	return wasm.New(settings)
}
