package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
	"github.com/mrsmesh/mrsmesh/internal/lrm/wasm"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// offering holds the kinds of work this machine can run.
type offering struct {
	adapters map[grid.WorkKind]lrm.Adapter
	inMemory bool // what commands write
	notices  []view.Notice
	walls    []agent.Wall
}

// wallsOf says how an adapter enforces the ceilings, and how that is tried.
func wallsOf(adapter lrm.Adapter, kind grid.WorkKind, walls []lrm.Wall) []agent.Wall {
	var all []agent.Wall
	for _, w := range walls {
		wall := agent.Wall{View: view.Wall{Ceiling: w.Ceiling, Kind: kind.String(), How: w.How}}
		if trial := w.Trial; trial != nil {
			wall.View.Fault = "not tested yet"
			wall.Try = func(ctx context.Context, dir string) (string, error) {
				return lrm.Try(ctx, adapter, kind, *trial, dir)
			}
		}
		all = append(all, wall)
	}
	return all
}

// rateWalls say how the ceilings on the links are enforced.
func rateWalls(r config.Rates) []agent.Wall {
	const how = "data waits for its turn, %s after a burst of 2 MiB; gossip, bids and leases are " +
		"small and not counted"
	return []agent.Wall{
		{View: view.Wall{Ceiling: "download", How: fmt.Sprintf(how, rateText(r.DownBps))}},
		{View: view.Wall{Ceiling: "upload", How: fmt.Sprintf(how, rateText(r.UpBps))}},
	}
}

func rateText(bps int64) string { return fmt.Sprintf("%.1f Mbit/s", float64(bps)/1e6) }

// makeAdapters makes an adapter for each kind of work that the owner allows and that
// works on this machine, and notes what the owner should know of them.
// unheld is why nothing can hold what commands write.
func makeAdapters(
	ctx context.Context, c config.Agent, unheld error, log *slog.Logger,
) (offering, error) {
	o := offering{adapters: make(map[grid.WorkKind]lrm.Adapter)}
	if why := offersNothing(runtime.GOOS, c.Owner.Yield); why != "" {
		log.Warn("the site offers nothing", "reason", why)
		o.notices = append(o.notices, view.Notice{Text: why})
		return o, nil
	}
	for _, kind := range c.Kinds {
		adapter, err := makeAdapter(ctx, c, unheld, kind)
		if err != nil {
			return o, err
		}
		support := adapter.Probe(ctx)
		for _, note := range support.Notes {
			log.Warn("a kind of work has limits here", "kind", kind.String(), "reason", note)
			o.notices = append(o.notices, view.Notice{Text: kind.String() + ": " + note})
		}
		for _, works := range support.Kinds {
			o.adapters[works], o.inMemory = adapter, o.inMemory || support.InMemory
			o.walls = append(o.walls, wallsOf(adapter, works, support.Walls)...)
		}
	}
	return o, nil
}

// savingWhole adds to what a site can do whether its commands can be saved without their help.
func savingWhole(
	ctx context.Context, host agent.Host, adapters map[grid.WorkKind]lrm.Adapter,
) agent.Host {
	adapter, runs := adapters[grid.KindCommand]
	saves, bare := runs && adapter.Probe(ctx).Saves, host.Capability
	host.Capability = func(found hostinfo.Measured) grid.Capability {
		capability := bare(found)
		capability.Saves = saves
		return capability
	}
	return host
}

// holdCommands has the agent start itself again where it can give commands file systems of their
// own. It returns where that was done, where it is not wanted, and, with the reason, where it cannot
// be done.
func holdCommands(ctx context.Context, c config.Agent) error {
	if !slices.Contains(c.Kinds, grid.KindCommand) || c.Commands != config.CommandsBounded {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own executable: %w", err)
	}
	return scratch.Enter(ctx, c.StateDir, []string{self, scratch.Arg})
}

func makeAdapter(
	ctx context.Context, c config.Agent, unheld error, kind grid.WorkKind,
) (lrm.Adapter, error) {
	record := filepath.Join(c.StateDir, agent.RecordFile)
	if kind == grid.KindCommand {
		settings, err := native.DefaultConfig(c.StateDir)
		if err != nil {
			return nil, err
		}
		settings.RecordPath, settings.Sandbox = record, c.Sandbox
		settings.Idle = c.Owner.Priority == config.PriorityIdle
		settings.Unbounded, settings.Unheld = c.Commands != config.CommandsBounded, unheld
		return native.New(ctx, settings)
	}
	settings, err := wasm.DefaultConfig(filepath.Join(c.StateDir, "wasm"))
	if err != nil {
		return nil, err
	}
	settings.RecordPath, settings.Idle = record, c.Owner.Priority == config.PriorityIdle
	return wasm.New(settings)
}
