package site

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/cache"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// Status is the state that a site shows of itself. Its times are those of the wall clock.
type Status struct {
	Capability  grid.Capability // the owner's ceilings, and what was measured
	Left        grid.Capability // what others leave of that now
	Free        grid.Resources  // of what is left, now
	Potential   int64           // P of the site, bit/s
	Paused      bool
	PausedUntil time.Time   // zero: until Resume
	PausedBy    grid.SiteID // that ordered it from afar; empty: the owner
	Leaving     bool        // while paused, attempts that can go on elsewhere leave
	StopAt      time.Time   // those that cannot are stopped then; zero: they are not
	Draining    bool
	Owned       grid.Reason     // why the owner has the machine alone, ReasonNone = it is shared
	Attempts    []AttemptStatus // ascending by ID
	Peers       []grid.SiteID   // ascending
	Offers      int             // open offers
	Cached      int             // requirements in the cache
	Cache       cache.Stats
	HeldData    int       // CIDs that are here
	Outlook     []Outlook // how likely it stays available, for times of an hour and of eight

	Policy   grid.Policy   // in what order those that wait in the plan move up
	Backfill grid.Backfill // which of them may overtake which
	Held     int           // offers that hold capacity
}

// Held is the part of this site that its attempts and firm offers hold at the time of its
// last Step.
func (m *Machine) Held() grid.Resources {
	return m.left.Total.Sub(m.plan.Free(m.now, m.now.Add(1)))
}

// AttemptStatus is the state that a site shows of one attempt.
type AttemptStatus struct {
	ID         grid.AttemptID
	Submitter  grid.SiteID
	Phase      string         // staging, ready, starting, running, frozen, stopping or exited
	Suspended  bool           // frozen for the owner's sake
	Leaves     grid.Reason    // why it leaves when another site is found; ReasonNone: it stays
	Distance   float64        // from the job when it was accepted
	Accepted   time.Time      // zero for one of an earlier run
	Start      time.Time      // its place in the plan; zero when it has ended
	End        time.Time      // expected end; zero when it has ended
	LeaseUntil time.Time      // zero without a lease
	Need       grid.Resources // what it holds of the site
	Exit       grid.ExitCause // 0 while it lives
	Kept       []grid.CID     // what an ended attempt left here

	Planned   bool           // its place in the plan has not come
	Class     plan.Class     // how free it is to move while it waits
	Reserves  bool           // it only holds capacity for jobs that are bound to it
	Within    grid.AttemptID // the reservation that it is bound to; zero = none
	Displaced grid.Reason    // why the plan has it suspended, ReasonNone = it does not
}

// Status shows the site at the time of its last Step. The result is a copy.
func (m *Machine) Status() Status {
	s := Status{
		Capability: m.capability, Left: m.left, Free: m.plan.Free(m.now, m.now.Add(1)),
		Paused: m.owner.paused.on, PausedUntil: m.owner.paused.shown,
		PausedBy: m.owner.paused.by,
		Leaving:  m.owner.paused.leave, StopAt: m.owner.paused.stopShown,
		Draining: m.owner.draining, Owned: m.owner.needs(), Potential: m.potential(),
		Peers: slices.Sorted(maps.Keys(m.links.peers)), Offers: len(m.plan.Offers()),
		Cached: m.cache.Len(), Cache: m.cache.Stats(), HeldData: len(m.held),
		Policy: m.cfg.Planning.Policy, Backfill: m.cfg.Planning.Backfill,
	}
	for _, o := range m.plan.Offers() {
		if o.Holds > 0 {
			s.Held++
		}
	}
	s.Capability.Kinds = slices.Clone(s.Capability.Kinds)
	for _, span := range outlookSpans() {
		s.Outlook = append(s.Outlook, m.outlook(span))
	}
	for _, a := range m.roster.sorted() {
		view := AttemptStatus{
			ID: a.id, Submitter: a.submitter, Phase: a.phase.String(), Suspended: a.suspended,
			Distance: a.parts.Distance, Need: a.task.Need, Leaves: m.shownLeave(a),
			Accepted: m.shownTime(a.accepted), LeaseUntil: m.shownTime(a.leaseUntil),
			Exit: a.exit.Cause, Kept: a.exit.CIDs(), Reserves: a.reserves(), Displaced: a.displaced,
		}
		if c, ok := m.plan.Commitment(a.id); ok {
			view.Start, view.End, view.Planned = m.shownTime(c.Start), m.shownTime(c.End), !c.Running
			view.Class, view.Within = c.Class, c.Within
		}
		s.Attempts = append(s.Attempts, view)
	}
	return s
}

// Submitter is whose an attempt is, false if this site does not have it.
func (m *Machine) Submitter(id grid.AttemptID) (grid.SiteID, bool) {
	a := m.roster.all[id]
	if a == nil {
		return "", false
	}
	return a.submitter, true
}

// Quote says where this site would stand for one task at the time of its last
// Step, or why it would refuse; the flag says which. It answers as to the
// submitter that holds the task's data. Nothing is promised and nothing changes.
func (m *Machine) Quote(req grid.Requirement) (grid.Parts, grid.Refusal, bool) {
	in := inquiry{submitter: m.cfg.Self, count: 1}
	for _, src := range req.Sources {
		if len(src.Holders) > 0 {
			in.submitter = src.Holders[0]
			break
		}
	}
	req.Window = req.Window.Shift(-m.clocks.ahead)
	q, refusal, ok := m.quote(req, in)
	return q.parts, refusal, ok
}
