package backend

import (
	"context"

	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// gauges are what rises and falls at this site.
type gauges struct {
	attempts, cores, memory, disk obs.GaugeVec // by phase; by what they are
	paused, busy, freeDisk        obs.GaugeVec
}

// Observe shows what rises and falls here as metrics: each scrape asks the site's machine. The
// broker is not asked, for where another agent acts its answer costs a read of the whole table.
func (b *Backend) Observe(metrics *obs.Registry) {
	const of = "of" // offered: what the owner gives; used: of that
	g := gauges{
		attempts: metrics.GaugeVec("attempts", "Attempts that are here, by phase.", "phase"),
		cores:    metrics.GaugeVec("cores", "Cores that the owner gives, and of these in use.", of),
		memory:   metrics.GaugeVec("memory_bytes", "Memory, likewise.", of),
		disk:     metrics.GaugeVec("scratch_bytes", "Scratch space of jobs, likewise.", of),
		paused:   metrics.GaugeVec("paused", "1 while the owner has paused the site."),
		busy:     metrics.GaugeVec("owner_busy", "1 while the owner needs the machine."),
		freeDisk: metrics.GaugeVec("disk_free_bytes", "Free space where the agent's state is."),
	}
	metrics.BeforeScrape(func(ctx context.Context) { b.look(ctx, g) })
}

// look sets the gauges. What cannot be asked keeps its value.
func (b *Backend) look(ctx context.Context, g gauges) {
	_ = b.agent.AskSite(ctx, func(m *site.Machine) { g.lookAt(m) })
	if room, err := hostinfo.ProbeRoom(ctx, b.cfg.StateDir); err == nil && room.FreeDiskBytes >= 0 {
		g.freeDisk.Set(float64(room.FreeDiskBytes))
	}
	g.busy.Set(truth(b.agent.Known().Owner.State.Reason != grid.ReasonNone))
}

// lookAt sets what the site's machine knows; it is only called within a question to that.
func (g gauges) lookAt(m *site.Machine) {
	st, held := m.Status(), m.Held()
	now := make(map[view.Phase]int)
	for _, at := range st.Attempts {
		if at.Exit == 0 {
			now[runningPhase(at)]++
		}
	}
	for _, phase := range []view.Phase{
		view.PhaseHeld, view.PhaseOpen, view.PhaseStaging, view.PhaseRunning, view.PhaseFrozen,
		view.PhaseSuspended,
	} {
		g.attempts.Set(float64(now[phase]), string(phase))
	}
	const offered, used = "offered", "used"
	total := st.Capability.Total
	g.cores.Set(float64(total.MilliCPUs)/1000, offered)
	g.cores.Set(float64(held.MilliCPUs)/1000, used)
	g.memory.Set(float64(total.MemoryBytes), offered)
	g.memory.Set(float64(held.MemoryBytes), used)
	g.disk.Set(float64(total.DiskBytes), offered)
	g.disk.Set(float64(held.DiskBytes), used)
	g.paused.Set(truth(st.Paused))
}

func truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
