package backend

import (
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/history"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// machineView shows the facts about the machine; nil if nobody looked.
func machineView(m hostinfo.Machine, k agent.Known) *view.MachineView {
	if m.Cores == 0 {
		return nil
	}
	mean := k.Owner.Mean
	return &view.MachineView{
		OS: m.OS, Arch: m.Arch, CPUModel: m.CPUModel, Cores: m.Cores,
		MemoryBytes: above(k.Room.MemoryBytes, 0), FreeMemoryBytes: above(k.Room.FreeMemory, -1),
		DiskBytes: above(k.Room.DiskBytes, 0), FreeDiskBytes: above(k.Room.FreeDiskBytes, -1),
		CoreMFLOPS: above(k.Nominal.CoreMFLOPS, 0), CoreMFLOPSNow: above(k.Left.CoreMFLOPS, 0),
		DiskBps:    above(k.Nominal.DiskBps, 0),
		OtherCores: reading(mean.Others), StolenCores: reading(mean.Stolen),
		CPUPressure: reading(mean.CPU), MemoryPressure: reading(mean.Memory),
		IOPressure: reading(mean.IO),
		Pending:    k.Pending,
	}
}

// ownerView shows the state of the watcher of the owner's work.
func ownerView(terms agent.Owner, r owner.Report) *view.OwnerView {
	const percent = 100
	v := &view.OwnerView{
		How: r.How, Hours: terms.Hours.String(), Busy: r.State.Reason != grid.ReasonNone,
		Why: r.State.Why, CostPercent: percent * r.Cost,
	}
	if g := r.State.Given; g.Cores < percent || g.ByUse {
		v.Share, v.Memory, v.InUse = g.Cores, g.Memory%percent, g.ByUse
	}
	v.Input = terms.Input
	if len(terms.Hook) > 0 {
		v.Hook = terms.Hook[0]
	}
	if r.Sample.Others.Known {
		v.OtherCores, v.JobCores = &r.Sample.Others.Value, &r.Sample.Jobs
	}
	return v
}

// availability shows the owner the site's past and its chances of staying up.
func availability(known history.Known, outlooks []site.Outlook) *view.Availability {
	v := &view.Availability{
		Outlook: []view.Outlook{}, Runs: known.Counts.Runs, Suspends: known.Counts.Suspends,
		ClockJumps:  known.Counts.Jumps,
		WrongClocks: known.Counts.WrongClocks, Damaged: known.Counts.Damaged + known.Counts.Disordered,
		Unwritten: known.Counts.Unwritten, OwnerBusy: known.Busy,
	}
	for _, s := range known.History.Spans {
		v.Days += s.Seconds / (24 * time.Hour).Seconds()
		switch s.End {
		case avail.EndCrash:
			v.Crashes++
		case avail.EndLeft:
			v.Departures++
		case avail.EndOpen:
		}
	}
	for _, o := range outlooks {
		v.Outlook = append(v.Outlook, view.Outlook{
			Hours: o.For.Hours(), Z: 1 - o.Up, Low: 1 - o.Sureness.High, High: 1 - o.Sureness.Low,
			Sure: o.Sureness.Words(),
		})
	}
	return v
}

// above is the value, or nothing where it says that nobody knows.
func above(value, unknown int64) *int64 {
	if value <= unknown {
		return nil
	}
	return &value
}

func reading(r yield.Reading) *float64 {
	if !r.Known {
		return nil
	}
	return &r.Value
}

// referenceJob describes the job for which each site's standing is shown, so that
// owners can compare.
const referenceJob = "1 core, 2 GFLOPS, 256 MiB memory, 64 MiB disk, 64 MiB to fetch, 1 h"

func referenceRequirement(c grid.Capability) grid.Requirement {
	kind := grid.KindWasm
	if len(c.Kinds) > 0 {
		kind = c.Kinds[0]
	}
	return grid.Requirement{
		Kind: kind,
		Need: grid.Resources{
			MilliCPUs: 1000, MemoryBytes: 256 << 20, DiskBytes: 64 << 20, MFLOPS: 2000,
		},
		Runtime: time.Hour, Weights: grid.DefaultWeights(),
		Sources: []grid.DataSource{{Bytes: 64 << 20}},
	}
}

// reference returns the standing of a site of that capability for the reference job.
func reference(m *site.Machine, c grid.Capability) *view.Standing {
	s := &view.Standing{Job: referenceJob}
	parts, refusal, ok := m.Quote(referenceRequirement(c))
	if !ok {
		s.Refusal = refusal.Explain()
		return s
	}
	wait, stageIn, run := parts.Wait.Seconds(), parts.StageIn.Seconds(), parts.Run.Seconds()
	s.X, s.Y, s.Z, s.Distance = &parts.X, &parts.Y, &parts.Z, &parts.Distance
	s.WaitSeconds, s.StageInSeconds, s.RunSeconds = &wait, &stageIn, &run
	return s
}
