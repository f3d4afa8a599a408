package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// quote is this site's position for one requirement, and the place in the plan
// that this follows from.
type quote struct {
	parts grid.Parts
	ask   plan.Ask
	place plan.Quote

	decrypts bool // the job is encrypted, and this site opens it
}

// startGuard is added to the run time in each place of the plan: it is the time between
// the begin of the place and of the program, when a lease is asked for and a sandbox made.
// Without it a task that runs as long as estimated would overrun, and be suspended for
// the next promise of its place.
const startGuard = time.Second

// finish is the time until the expected end of a task with this quote.
func (q quote) finish(now time.Time) time.Duration {
	return max(q.place.End.Sub(now)-startGuard, 0)
}

// inquiry asks for a quote.
type inquiry struct {
	job       grid.JobID
	submitter grid.SiteID
	count     uint32 // tasks that want a place
	offer     uint64 // an open offer of this site whose hold the asker may use; 0 = none
}

// quote answers a requirement with the distance from the job (thesis 3.1, 4.1),
// or tells why this site makes no offer. What can never fit is told before what
// does not fit now, so that "never" is said whenever it is true: first what the
// owner's ceilings and rules exclude, then whether the site is open, then what the
// plan has capacity for.
func (m *Machine) quote(req grid.Requirement, in inquiry) (quote, grid.Refusal, bool) {
	req.Need = m.needHere(req)
	site := m.bare(req, in.submitter)
	bare, refusal, ok := index.Measure(req, site)
	if !ok && refusal.Never {
		return quote{}, refusal, false
	}
	if excluded, is := m.excluded(req, in.submitter); is {
		return quote{}, excluded, false
	}
	if closed, is := m.owner.closedFor(req.Window, m.now); is {
		return quote{}, closed, false
	}
	if !ok {
		return quote{}, refusal, false
	}
	room := m.attemptRoom(in.submitter)
	if room == 0 {
		return quote{}, grid.Refusal{Reason: grid.ReasonQuota}, false
	}
	in.count = max(min(in.count, room), 1)
	q, refusal, ok := m.place(req, m.ask(req, in, bare.StageIn))
	if !ok {
		return quote{}, refusal, false
	}
	if m.closesBefore(q.place.End) {
		return quote{}, grid.Refusal{Reason: grid.ReasonOwnerHours}, false
	}
	return m.measured(req, site, bare.StageIn, q)
}

// shortNow tells the usual reason for which a job that waits at its submitter gets no offer,
// without asking for a place: what it needs is not free. Else it is ReasonNone.
func (m *Machine) shortNow(req grid.Requirement, submitter grid.SiteID) grid.Reason {
	if req.Map != grid.MapThesis || req.Window.Promised() || req.Reservation != "" ||
		m.attemptRoom(submitter) == 0 {
		return grid.ReasonNone
	}
	return m.plan.Short(m.now, m.needHere(req).Counted())
}

// needHere says how much of this machine a task needs. Where commands write into memory, what they
// may write is memory, too: of commands, and of reservations in which they may run.
func (m *Machine) needHere(req grid.Requirement) grid.Resources {
	if !m.cfg.InMemory || req.Kind == grid.KindWasm {
		return req.Need
	}
	need, counted := req.Need, req.Need.Counted()
	need.MemoryBytes = counted.MemoryBytes + counted.DiskBytes
	return need
}

// bare is this site without anything on it.
func (m *Machine) bare(req grid.Requirement, submitter grid.SiteID) index.Site {
	return index.Site{
		Capability: m.capability, Free: m.capability.Total, PotentialBps: m.potential(),
		Sources: m.access(req, submitter), Up: 1, Priced: m.cfg.Priced, Price: m.cfg.Price,
	}
}

// measured fills in where the site stands with the place that a quote has.
func (m *Machine) measured(
	req grid.Requirement, site index.Site, stageIn time.Duration, q quote,
) (quote, grid.Refusal, bool) {
	site.Capability.CoreMFLOPS = m.left.CoreMFLOPS
	site.Free, site.Wait = q.place.Free, max(q.place.Start.Sub(m.now), 0)
	if !q.ask.NowOnly { // the run begins then; its inputs are fetched before
		site.Wait = max(site.Wait-stageIn, 0)
	}
	site.Up = m.up(q.finish(m.now))
	parts, refusal, ok := index.Measure(req, site)
	q.parts, q.decrypts = parts, req.Encrypted
	return q, refusal, ok
}

// place finds the requirement's place in the plan: for a job that is bound to a
// reservation in one that this site holds, the one in which it would end first.
func (m *Machine) place(req grid.Requirement, ask plan.Ask) (quote, grid.Refusal, bool) {
	if req.Reservation == "" {
		return m.placeIn(req, ask)
	}
	var best quote
	refusal, found := grid.Refusal{Reason: grid.ReasonReservation}, false
	for _, a := range m.roster.ofJob(req.Reservation) {
		if a.submitter != ask.Submitter || !a.reserves() || !a.wantsLease() {
			continue
		}
		ask.Within = a.id
		q, why, ok := m.placeIn(req, ask)
		switch {
		case ok && (!found || q.place.End.Before(best.place.End)):
			best, found = q, true
		case !ok:
			refusal = why
		}
	}
	return best, refusal, found
}

func (m *Machine) placeIn(req grid.Requirement, ask plan.Ask) (quote, grid.Refusal, bool) {
	place, reason := m.plan.Quote(m.now, ask)
	switch reason {
	case grid.ReasonNone:
		return quote{ask: ask, place: place}, grid.Refusal{}, true
	case grid.ReasonWindow:
		return quote{}, m.refuseWindow(req, ask), false
	default:
		return quote{}, shortfall(reason, ask.Need, place.Free), false
	}
}

// refuseWindow refuses a window, and says what could be promised instead.
func (m *Machine) refuseWindow(req grid.Requirement, ask plan.Ask) grid.Refusal {
	refusal := grid.Refusal{Reason: grid.ReasonWindow}
	if ask.NowOnly {
		return refusal
	}
	if at := req.Window.At; !at.IsZero() { // the next one is of use, not one that was free before
		ask.Window.NotBefore = at
	}
	earliest, reason := m.plan.EarliestStart(m.now, ask)
	if reason != grid.ReasonNone {
		return refusal
	}
	want, have := req.Window.Deadline, earliest.End
	if !req.Window.At.IsZero() {
		want, have = req.Window.At, earliest.Start
	}
	if want.IsZero() {
		return refusal
	}
	refusal.Want, refusal.Have = max(seconds(want.Sub(m.now)), 0), max(seconds(have.Sub(m.now)), 1)
	return refusal
}

// ask is the requirement as a question to the plan. In the thesis map a job waits
// at its submitter, so only what starts now is of use; in the seconds map, or with
// a promised time, or in a reservation, it waits in the plan.
func (m *Machine) ask(req grid.Requirement, in inquiry, stageIn time.Duration) plan.Ask {
	core := m.left.CoreMFLOPS
	promised := req.Window.Promised()
	ask := plan.Ask{
		Submitter: in.submitter, Job: in.job, Need: req.Need.Counted(), StageIn: stageIn,
		Window: req.Window, NowOnly: req.Map == grid.MapThesis && !promised && req.Reservation == "",
		Count: in.count, Offer: in.offer, Class: plan.ClassVarTime, At: req.Window.At,
		Project: req.Project,
		Rate: func(free grid.Resources) (int64, time.Duration) {
			mflops := index.TaskMFLOPS(req.Need, free, core)
			return mflops, index.RunTime(req, mflops) + startGuard
		},
	}
	switch {
	case req.Kind == grid.KindReservation:
		ask.Class, ask.StageIn = plan.ClassFixTime, 0
		ask.Rate = func(free grid.Resources) (int64, time.Duration) { return free.MFLOPS, req.Runtime }
	case !req.Window.At.IsZero():
		ask.Class = plan.ClassFixTime
	case promised:
		ask.Class = plan.ClassDeadline
	}
	return ask
}

// excluded returns a refusal for what the owner's rules or the calendar exclude permanently.
func (m *Machine) excluded(req grid.Requirement, submitter grid.SiteID) (grid.Refusal, bool) {
	unvouched := m.vouching.refuses(req.Kind, req.Signature)
	switch {
	case m.cfg.WasmOnly && req.Kind != grid.KindWasm:
		return grid.Refusal{Reason: grid.ReasonKind, Never: true}, true
	case unvouched != grid.ReasonNone:
		return grid.Refusal{Reason: unvouched, Never: true}, true
	case m.cfg.MaxRuntime > 0 && req.Runtime > m.cfg.MaxRuntime:
		return grid.Refusal{
			Reason: grid.ReasonRuntime, Never: true,
			Want: seconds(req.Runtime), Have: seconds(m.cfg.MaxRuntime),
		}, true
	case m.isTooLong(req, submitter):
		return grid.Refusal{
			Reason: grid.ReasonAhead, Never: true,
			Want: seconds(req.Runtime), Have: seconds(m.cfg.Planning.Longest),
		}, true
	case m.isTooFarAhead(req.Window, submitter):
		return grid.Refusal{
			Reason: grid.ReasonAhead,
			Want:   seconds(req.Window.At.Sub(m.now)), Have: seconds(m.cfg.Planning.Ahead),
		}, true
	case m.isTooMuchData(req, submitter):
		return grid.Refusal{
			Reason: grid.ReasonQuota, Never: true,
			Want: req.DataBytes(), Have: m.cfg.DataBytes / shares,
		}, true
	case !req.Window.Deadline.IsZero() && !req.Window.Deadline.After(m.now):
		return grid.Refusal{Reason: grid.ReasonWindow, Never: true}, true
	default:
		return grid.Refusal{}, false
	}
}

// isTooFarAhead reports whether a fixed start lies beyond what is promised to others.
func (m *Machine) isTooFarAhead(w grid.Window, submitter grid.SiteID) bool {
	limit := m.cfg.Planning.Ahead
	return limit > 0 && submitter != m.cfg.Self && w.At.Sub(m.now) > limit
}

// isTooLong reports whether this is a longer reservation than others get.
func (m *Machine) isTooLong(req grid.Requirement, submitter grid.SiteID) bool {
	limit := m.cfg.Planning.Longest
	return limit > 0 && req.Kind == grid.KindReservation && submitter != m.cfg.Self &&
		req.Runtime > limit
}

// isTooMuchData reports whether one task's data alone takes more than its submitter's
// share of the space for data.
func (m *Machine) isTooMuchData(req grid.Requirement, submitter grid.SiteID) bool {
	return m.cfg.DataBytes > 0 && submitter != m.cfg.Self &&
		req.DataBytes() > m.cfg.DataBytes/shares
}

// seconds is a duration in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// attemptRoom says how many more attempts of a submitter this site keeps, those
// included whose end was not acknowledged. No submitter but the site itself gets more
// than an eighth.
func (m *Machine) attemptRoom(submitter grid.SiteID) uint32 {
	room := m.cfg.MaxAttempts - len(m.roster.all)
	if submitter != m.cfg.Self {
		room = min(room, m.cfg.MaxAttempts/shares-m.roster.bySite[submitter])
	}
	return uint32(max(room, 0))
}

// shortfall is the plan's reason with the amounts that show what is missing.
func shortfall(reason grid.Reason, need, have grid.Resources) grid.Refusal {
	r := grid.Refusal{Reason: reason}
	switch reason {
	case grid.ReasonCPUs:
		r.Want, r.Have = need.MilliCPUs, have.MilliCPUs
	case grid.ReasonMemory:
		r.Want, r.Have = need.MemoryBytes, have.MemoryBytes
	case grid.ReasonDisk:
		r.Want, r.Have = need.DiskBytes, have.DiskBytes
	case grid.ReasonBandwidth:
		r.Want, r.Have = need.NetBps, have.NetBps
	case grid.ReasonComputation:
		r.Want, r.Have = need.MFLOPS, have.MFLOPS
	default: // no amount
	}
	r.Have = max(r.Have, 0)
	return r
}
