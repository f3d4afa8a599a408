package site

import (
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// quote is where this site stands for one requirement, and the place in the plan
// that this follows from.
type quote struct {
	parts grid.Parts
	ask   plan.Ask
	place plan.Quote
}

// finish is the time until the expected end of a task with this quote.
func (q quote) finish() time.Duration { return q.parts.Wait + q.place.End.Sub(q.place.Start) }

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
// plan has room for.
func (m *Machine) quote(req grid.Requirement, in inquiry) (quote, grid.Refusal, bool) {
	site := index.Site{
		Capability: m.capability, Free: m.capability.Total, PotentialBps: m.potential,
		Sources: m.access(req, in.submitter), Up: 1, Priced: m.cfg.Priced, Price: m.cfg.Price,
	}
	bare, refusal, ok := index.Measure(req, site)
	if !ok && refusal.Never {
		return quote{}, refusal, false
	}
	if excluded, is := m.excluded(req, in.submitter); is {
		return quote{}, excluded, false
	}
	if closed, is := m.closed(); is {
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
	q := quote{ask: m.ask(req, in, bare.StageIn)}
	place, reason := m.plan.Quote(m.now, q.ask)
	if reason != grid.ReasonNone {
		return quote{}, shortfall(reason, q.ask.Need, place.Free), false
	}
	q.place = place
	site.Capability.CoreMFLOPS = m.left.CoreMFLOPS
	site.Free, site.Wait = place.Free, max(place.Start.Sub(m.now), 0)
	site.Up = m.up(place.End.Sub(m.now))
	if q.parts, refusal, ok = index.Measure(req, site); !ok {
		return quote{}, refusal, false
	}
	return q, grid.Refusal{}, true
}

// ask is the requirement as a question to the plan. In the thesis map a job waits
// at its submitter, so only what starts now is of use; in the seconds map it
// waits in the plan, and stages its data when its place has come.
func (m *Machine) ask(req grid.Requirement, in inquiry, stageIn time.Duration) plan.Ask {
	core, staging := m.left.CoreMFLOPS, time.Duration(0)
	if req.Map != grid.MapThesis {
		staging, stageIn = stageIn, 0
	}
	return plan.Ask{
		Submitter: in.submitter, Job: in.job, Need: req.Need.Counted(), StageIn: stageIn,
		Class: plan.ClassVarTime, Window: req.Window, NowOnly: req.Map == grid.MapThesis, Count: in.count, Offer: in.offer,
		Rate: func(free grid.Resources) (int64, time.Duration) {
			mflops := index.TaskMFLOPS(req.Need, free, core)
			return mflops, staging + index.RunTime(req, mflops)
		},
	}
}

// excluded is what the owner's rules or the calendar exclude for ever.
func (m *Machine) excluded(req grid.Requirement, submitter grid.SiteID) (grid.Refusal, bool) {
	switch {
	case m.cfg.WasmOnly && req.Kind != grid.KindWasm:
		return grid.Refusal{Reason: grid.ReasonKind, Never: true}, true
	case m.cfg.MaxRuntime > 0 && req.Runtime > m.cfg.MaxRuntime:
		return grid.Refusal{
			Reason: grid.ReasonRuntime, Never: true,
			Want: seconds(req.Runtime), Have: seconds(m.cfg.MaxRuntime),
		}, true
	case m.tooMuchData(req, submitter):
		return grid.Refusal{
			Reason: grid.ReasonQuota, Never: true, Want: dataBytes(req), Have: m.cfg.DataBytes / shares,
		}, true
	case !req.Window.Deadline.IsZero() && !req.Window.Deadline.After(m.now):
		return grid.Refusal{Reason: grid.ReasonWindow, Never: true}, true
	default:
		return grid.Refusal{}, false
	}
}

// tooMuchData reports whether one task's data alone takes more than its submitter's
// share of the room.
func (m *Machine) tooMuchData(req grid.Requirement, submitter grid.SiteID) bool {
	return m.cfg.DataBytes > 0 && submitter != m.cfg.Self && dataBytes(req) > m.cfg.DataBytes/shares
}

// dataBytes is what a task's data measures.
func dataBytes(req grid.Requirement) (sum int64) {
	for _, src := range req.Sources {
		if sum += src.Bytes; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum
}

// seconds is a duration in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// attemptRoom is how many more attempts of a submitter this site keeps, those
// included whose end was not acknowledged. Nobody but the site itself gets more
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
	case grid.ReasonComputation:
		r.Want, r.Have = need.MFLOPS, have.MFLOPS
	default: // no amount
	}
	r.Have = max(r.Have, 0)
	return r
}
