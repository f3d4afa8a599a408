package agent

import (
	"context"
	"math"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// Status is this agent's own state.
func (a *Agent) Status(ctx context.Context) (view.AgentStatus, error) {
	s := view.AgentStatus{
		Site: a.mesh.Self(), Name: a.cfg.Name, Domain: a.cfg.P2P.Domain, Version: a.cfg.Version,
		Started: view.At(a.started), Addresses: a.mesh.Addrs(), Running: []view.RunningTask{}, Faults: []view.FaultRow{},
		DataUsedBytes: a.data.UsedBytes(), DataQuotaBytes: a.cfg.Data.QuotaBytes,
		Reach: reachView(a.mesh.Reach()), Counters: a.reports.counters(), Notices: append([]view.Notice{}, a.cfg.Notices...),
	}
	var n names
	err := a.broker.ask(ctx, func() {
		n = a.namesNow()
		for _, m := range a.brokerMachine.Members() {
			if m.Connected {
				s.Peers++
			}
			if m.Fault > 0 {
				s.Faults = append(s.Faults, view.FaultRow{Site: m.Site, Name: m.Name, Index: int(m.Fault)})
			}
		}
	})
	if err != nil {
		return s, err
	}
	if s.Forecast, err = a.forecast(ctx); err != nil {
		return s, err
	}
	a.fillMembers(&s, n)
	err = a.site.ask(ctx, func() { a.fillSite(&s, n) })
	for reason, n := range a.mesh.Refusals() {
		s.Counters["refused_"+reason] = int64(min(n, math.MaxInt64))
	}
	s.Owner, s.Walls, s.Machine = a.ownerView(), a.walls(), a.machineView()
	if s.Peers == 0 {
		s.Notices = append(s.Notices, view.Notice{
			Text: "no other site is connected", Cause: "nobody of the bootstrap list answers, or the list is empty",
			Action: "check the addresses under bootstrap and the list of peers in the configuration",
		})
	}
	return s, err
}

func reachView(r p2p.Reach) view.Reach {
	return view.Reach{
		Reachability: string(r.Reachability), Serving: r.Serving, Relays: append([]grid.SiteID{}, r.Relays...),
		Direct: r.Direct, Relayed: r.Relayed,
	}
}

// fillSite is only called on the site's loop.
func (a *Agent) fillSite(s *view.AgentStatus, n names) {
	st := a.siteMachine.Status()
	s.Kinds, s.Ceilings = kindNames(st.Capability.Kinds), view.FromResources(st.Capability.Total)
	s.InUse = view.FromResources(a.siteMachine.Held())
	rest := view.FromResources(st.Left.Total)
	s.Left, s.Reference = &rest, a.reference(st.Capability)
	s.CoreMFLOPS = st.Capability.CoreMFLOPS
	s.Availability = a.availability(st.Outlook)
	s.Plan = planView(st, n, a.cfg.Planning.Promised)
	s.Paused, s.PausedUntil, s.Stopping = st.Paused, view.At(st.PausedUntil), st.Draining
	for _, at := range st.Attempts {
		if at.Exit != 0 {
			continue
		}
		s.Running = append(s.Running, view.RunningTask{
			Task: at.ID.Task.String(), Token: at.ID.Token, Submitter: at.Submitter, SubmitterName: n[at.Submitter],
			Phase: runningPhase(at), Need: view.FromResources(at.Need), Started: view.At(at.Start),
		})
	}
}

// runningPhase is the phase of an attempt on this site in the words that its
// submitter uses.
func runningPhase(at site.AttemptStatus) view.Phase {
	switch {
	case at.Reserves && at.Planned:
		return view.PhaseHeld
	case at.Reserves:
		return view.PhaseOpen
	case at.Phase == "frozen" && at.Suspended:
		return view.PhaseSuspended
	case at.Phase == "running", at.Phase == "frozen":
		return view.Phase(at.Phase)
	default:
		return view.PhaseStaging
	}
}
