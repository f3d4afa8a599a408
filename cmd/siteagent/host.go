package main

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// waitingForQuiet begins the text about a machine that is to be measured.
const waitingForQuiet = "waiting for a quiet machine: "

// glance is the time the machine is observed before its first measurement.
const glance = 200 * time.Millisecond

// probeHost says what the machine has and can do. What was never measured is
// measured now, unless that would be in the owner's way: then it stays unknown
// until the agent finds the machine quiet.
func probeHost(
	ctx context.Context, c config.Agent, kinds []grid.WorkKind, log *slog.Logger,
) agent.Host {
	machine, err := hostinfo.Probe(ctx, c.StateDir)
	if err != nil {
		log.Warn("the machine does not tell everything", "error", err)
	}
	h := agent.Host{
		Machine: machine, Measured: hostinfo.Recall(machine, c.StateDir), Every: c.Owner.Look,
		Want: hostinfo.Want{Core: true, Disk: c.Rates.DiskBps == 0},
		Capability: func(found hostinfo.Measured) grid.Capability {
			return capabilityOf(c, machine, kinds, found)
		},
	}
	// A speed from a busy machine will do for the start.
	missing := h.Want.Missing(h.Measured)
	missing.Core = missing.Core && h.Measured.CoreMFLOPS == 0
	if missing == (hostinfo.Want{}) {
		return h
	}
	if c.Owner.Yield {
		if busy, why := owner.Glance(ctx, c.Owner.Root, ownerOf(c.Owner).Rules, glance); busy {
			h.Pending = waitingForQuiet + why
			log.Info("the machine is measured later, its owner needs it", "why", why)
			return h
		}
	}
	if h.Measured, err = hostinfo.Measure(ctx, machine, c.StateDir, h.Measured, missing); err != nil {
		h.Pending = err.Error()
		log.Warn("the machine could not be measured", "error", err)
	}
	return h
}

// capabilityOf gives the site's capability: the owner's ceilings, and where none is set
// a part of what the machine has.
func capabilityOf(
	c config.Agent, m hostinfo.Machine, kinds []grid.WorkKind, found hostinfo.Measured,
) grid.Capability {
	disk := c.Rates.DiskBps
	if disk == 0 {
		disk = found.DiskBps
	}
	total := hostinfo.Ceilings(m, c.Ceilings.Resources(), found.CoreMFLOPS)
	// inputs come in and outputs go out: what both ways have
	total.NetBps = min(c.Rates.DownBps, c.Rates.UpBps)
	return grid.Capability{
		Total: total, CoreMFLOPS: found.CoreMFLOPS,
		DownBps: c.Rates.DownBps, UpBps: c.Rates.UpBps, DiskBps: disk,
		OS: runtime.GOOS, Arch: runtime.GOARCH, Kinds: kinds,
	}
}
