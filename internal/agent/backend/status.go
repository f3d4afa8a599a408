package backend

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// Status is this agent's own state.
func (b *Backend) Status(ctx context.Context) (view.AgentStatus, error) {
	s := view.AgentStatus{
		Site: b.mesh.Self(), Name: b.cfg.Name, Domain: b.cfg.P2P.Domain, Version: b.cfg.Version,
		Addresses: b.mesh.Addrs(), Running: []view.RunningTask{}, Faults: []view.FaultRow{},
		DataUsedBytes: b.data.UsedBytes(), DataQuotaBytes: b.cfg.Data.QuotaBytes,
		Reach: reachView(b.mesh.Reach()), Notices: append([]view.Notice{}, b.cfg.Notices...),
	}
	var n names
	err := b.agent.AskBroker(ctx, func(m *broker.Machine) {
		n = b.namesNow(m)
		for _, m := range m.Members() {
			if m.Connected {
				s.Peers++
			}
			if row := faultRow(m); !row.IsEmpty() {
				s.Faults = append(s.Faults, row)
			}
		}
	})
	if err != nil {
		return s, err
	}
	if s.Forecast, err = b.agent.Forecast(ctx); err != nil {
		return s, err
	}
	b.fillMembers(&s, n)
	if err = b.fillStandbys(ctx, &s, n); err != nil {
		return s, err
	}
	if err = b.fillController(ctx, &s, n); err != nil {
		return s, err
	}
	s.Gateway = b.gateway(n)
	var outlook []site.Outlook
	err = b.agent.AskSite(ctx, func(m *site.Machine) { outlook = b.fillSite(&s, n, m) })
	known := b.agent.Known()
	s.Started, s.Counters = view.At(known.Started), known.Counters
	s.Availability = availability(known.Past, outlook)
	s.Week = b.givenWeek(known.Given, time.Now())
	for reason, n := range b.mesh.Refusals() {
		s.Counters["refused_"+reason] = int64(min(n, math.MaxInt64))
	}
	if room, wrong := hostinfo.ProbeRoom(ctx, b.cfg.StateDir); wrong == nil {
		known.Room = room // the answer must be current
	}
	s.Owner, s.Walls = ownerView(b.agent.Terms().Owner, known.Owner), known.Walls
	s.Signers = len(b.agent.Terms().Signers)
	s.Machine = machineView(b.cfg.Host.Machine, known)
	if s.Machine != nil {
		s.Machine.KeptDiskBytes = b.agent.Terms().Owner.FreeDisk
	}
	s.Notices = append(s.Notices, askedNotices(b.agent.Terms().Owner, known.Owner.State)...)
	s.Notices = append(s.Notices, b.diskNotices(s.Machine)...)
	s.Notices = append(s.Notices, keptOutNotices(b.mesh.KeptOut())...)
	if s.Peers == 0 {
		s.Notices = append(s.Notices, b.lonely(s.Members))
	}
	return s, err
}

// askedNotices say what keeps from asking whether the machine is shared, and what helps.
func askedNotices(o agent.Owner, s owner.State) (notices []view.Notice) {
	if s.Hook != "" && len(o.Hook) > 0 {
		notices = append(notices, view.Notice{
			Text:  "your program owner.hook does not work, and the site pauses for that",
			Cause: s.Hook,
			Action: "run " + o.Hook[0] + " by hand: it must end within 5 s, with code 0 to " +
				"share, or with 1 and a line of output to pause; to ask nothing: " +
				"siteagent config unset owner.hook",
		})
	}
	if s.Heat != "" {
		notices = append(notices, view.Notice{
			Text:  "owner.heat: no thermometer is found, and the site pauses for that",
			Cause: s.Heat,
			Action: "load the driver of your processors' sensors; to look at none: " +
				"siteagent config unset owner.heat",
		})
	}
	if s.Input == "" {
		return notices
	}
	setting, then, unset := "in-use", "and the site keeps to these limits for that",
		"in-use.cpus, and the others that begin with in-use"
	if o.Input {
		setting, then, unset = "owner.input", "and the site pauses for that", "owner.input"
	}
	return append(notices, view.Notice{
		Text:  setting + ": nobody tells whether you are there, " + then,
		Cause: s.Input,
		Action: "see whether loginctl works here, and, if the cause is an X server, xset q; " +
			"to ask nothing: siteagent config unset " + unset,
	})
}

// diskNotices say what is wrong with the disk, and what helps.
func (b *Backend) diskNotices(m *view.MachineView) []view.Notice {
	switch {
	case m.DiskFull():
		return []view.Notice{{
			Text:  "the disk is full",
			Cause: grid.FormatBytes(*m.FreeDiskBytes) + " are free where " + b.cfg.StateDir + " is",
			Action: "free some space there; until then jobs are refused, those that run here are " +
				"frozen, and results stay where they are; then all goes on by itself",
		}}
	case m.DiskLow():
		return []view.Notice{{
			Text: "less of the disk is free than you keep",
			Cause: grid.FormatBytes(*m.FreeDiskBytes) + " are free where " + b.cfg.StateDir +
				" is, and owner.free-disk is " + grid.FormatBytes(m.KeptDiskBytes),
			Action: "free some space there, or keep less: " +
				"siteagent config set owner.free-disk SIZE; until then no jobs are taken and " +
				"those that run here are frozen; after owner.patience they go on elsewhere",
		}}
	default:
		return nil
	}
}

// keptOutNotices name the members that made this site too much work.
func keptOutNotices(sites []grid.SiteID) (notices []view.Notice) {
	for _, member := range sites {
		notices = append(notices, view.Notice{
			Text:  "a member is kept out for some minutes",
			Cause: string(member) + " made this site too much work",
			Action: "none: it may come again by itself; if it goes on, tell its owner, " +
				"or siteagent ban " + string(member),
		})
	}
	return notices
}

// lonely says why no other site is connected, and what to do.
func (b *Backend) lonely(members int) view.Notice {
	switch {
	case members <= 1 && len(b.cfg.P2P.Bootstrap) == 0:
		return view.Notice{
			Text: "no other site is in the domain yet",
			Action: "siteagent invite prints a token for another machine; " +
				"with one from another site: siteagent stop, then siteagent join TOKEN",
		}
	case len(b.cfg.P2P.Bootstrap) == 0:
		return view.Notice{
			Text:   "no other site is connected",
			Cause:  "none of the members has come, and bootstrap names none to dial",
			Action: "see that they run; or give the address of one under bootstrap in the configuration",
		}
	default:
		return view.Notice{
			Text: "no other site is connected", Cause: "no site under bootstrap answers",
			Action: "see that one of them runs and that this machine reaches it: " +
				strings.Join(b.cfg.P2P.Bootstrap, " or "),
		}
	}
}

func reachView(r p2p.Reach) view.Reach {
	return view.Reach{
		Reachability: string(r.Reachability), Serving: r.Serving,
		Relays: append([]grid.SiteID{}, r.Relays...),
		Direct: r.Direct, Relayed: r.Relayed,
	}
}

// fillSite adds what the site's machine knows, and returns how it sees its future. It is
// only called within a question to that machine.
func (b *Backend) fillSite(s *view.AgentStatus, n names, m *site.Machine) []site.Outlook {
	st := m.Status()
	s.Kinds, s.Ceilings = kindNames(st.Capability.Kinds), view.FromResources(st.Capability.Total)
	s.InUse = view.FromResources(m.Held())
	rest := view.FromResources(st.Left.Total)
	s.Left, s.Reference = &rest, reference(m, st.Capability)
	s.CoreMFLOPS = st.Capability.CoreMFLOPS
	s.Plan = planView(st, n, b.cfg.Planning.Promised)
	s.Paused, s.PausedUntil, s.Stopping = st.Paused, view.At(st.PausedUntil), st.Draining
	s.PausedBy = cmp.Or(n[st.PausedBy], string(st.PausedBy))
	s.Leaving, s.StopAt = st.Leaving, view.At(st.StopAt)
	for _, at := range st.Attempts {
		if at.Exit != 0 {
			continue
		}
		s.Running = append(s.Running, view.RunningTask{
			Task: at.ID.Task.String(), Token: at.ID.Token.Number(), Submitter: at.Submitter,
			SubmitterName: n[at.Submitter],
			Phase:         runningPhase(at), Need: view.FromResources(at.Need), Started: view.At(at.Start),
			Leaves: leaves(at),
		})
	}
	return st.Outlook
}

// leaves is why an attempt leaves for another site, empty if it stays.
func leaves(at site.AttemptStatus) string {
	if at.Leaves == grid.ReasonNone {
		return ""
	}
	return at.Leaves.String()
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
