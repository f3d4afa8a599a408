package site

import (
	"errors"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// onHoldOffer makes an offer firm: what it quoted, or what can be had now, is held
// until the new offer's validity ends. Migol 6.2.1, the reservation request.
func (m *Machine) onHoldOffer(from grid.SiteID, msg protocol.HoldOffer) {
	if !m.admitOrder(msg.Job, from) {
		return
	}
	m.hearClock(from, msg.Clock)
	o, refusal, ok := m.holdOffer(from, msg)
	if !ok {
		r := aboutJob(msg.Job, from)
		r.Reason = refusal.Reason
		m.out.Report(step.LevelDebug, eventOfferRefused, r)
		m.out.Send(from, protocol.Refuse{Job: msg.Job, Seq: msg.Seq, Refusal: refusal})
		return
	}
	r := aboutJob(msg.Job, from)
	r.Value = float64(o.TasksNow)
	m.out.Report(step.LevelDebug, eventHeld, r)
	m.out.Send(from, protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: o})
}

func (m *Machine) holdOffer(
	from grid.SiteID, msg protocol.HoldOffer,
) (grid.Offer, grid.Refusal, bool) {
	entry, cached := m.cache.Get(m.now, msg.Job)
	if !cached {
		return grid.Offer{}, grid.Refusal{Reason: grid.ReasonUnknownOffer}, false
	}
	req := m.here(from, entry.Value.requirement())
	if !msg.At.IsZero() {
		req.Window = grid.Window{At: m.onOwnClock(from, msg.At), Deadline: req.Window.Deadline}
		if err := req.Window.Validate(); err != nil {
			return grid.Offer{}, grid.Refusal{Reason: grid.ReasonInvalid}, false
		}
	}
	q, refusal, ok := m.quote(req, inquiry{
		job: msg.Job, submitter: from, count: msg.Tasks, offer: m.heldOffer(msg.OfferID, msg.Job, from),
	})
	if !ok {
		return grid.Offer{}, refusal, false
	}
	o, err := m.plan.Open(m.now, q.ask, q.place, true, m.cfg.OfferValidity)
	switch {
	case err == nil:
		return m.offerOf(o, q), grid.Refusal{}, true
	case errors.Is(err, plan.ErrQuota), errors.Is(err, plan.ErrFirm):
		return grid.Offer{}, grid.Refusal{Reason: grid.ReasonQuota}, false
	default:
		return grid.Offer{}, grid.Refusal{Reason: grid.ReasonPromised}, false
	}
}

// quoteAwarded returns the quote of an award: the place that a firm offer holds for it, and
// for any other what the plan has now. A firm offer is honoured until it expires,
// also if what it quoted could not be had again.
func (m *Machine) quoteAwarded(req grid.Requirement, in inquiry) (quote, grid.Refusal, bool) {
	o, open := m.plan.Offer(in.offer)
	at := req.Window.At
	another := !at.IsZero() && at.Sub(o.Quote.Start).Abs() > clockJitter
	if !open || !o.Firm || o.Holds == 0 || another || !o.Quote.End.After(m.now) {
		return m.quote(req, in)
	}
	site := m.bare(req, in.submitter)
	bare, _, _ := index.Measure(req, site)
	ask := m.ask(req, in, bare.StageIn)
	ask.Within = o.Within
	return m.measured(req, site, bare.StageIn, quote{ask: ask, place: o.Quote})
}

// onVerified accepts an attempt whose plan the sandbox can keep, and declines another.
// OpenCCS: the Machine Manager "checks" what the Planning Manager made before the
// request is accepted.
func (m *Machine) onVerified(in step.Verified) {
	a := m.find(in.Attempt, phaseAsked, phaseAsked)
	if a == nil {
		return
	}
	if in.Problem != "" {
		r := about(a.id, a.submitter)
		r.Text = in.Problem
		m.out.Report(step.LevelWarn, eventUnkeepable, r)
		m.decline(a, grid.ReasonAdapter)
		return
	}
	m.accept(a)
	m.sendAccepted(a.submitter, []*attempt{a})
	m.setUp(a.submitter, []*attempt{a})
}

// decline gives up an attempt of which nothing was promised yet.
func (m *Machine) decline(a *attempt, why grid.Reason) {
	m.vacate(a)
	m.roster.remove(a)
	m.raiseToken(a.id.Task, a.id.Token)
	r := about(a.id, a.submitter)
	r.Reason = why
	m.out.Report(step.LevelInfo, eventDeclined, r)
	m.out.Send(a.submitter, protocol.Declined{
		Attempts: []grid.AttemptID{a.id}, Refusal: grid.Refusal{Reason: why},
	})
}

// begin is told when an attempt's place in the plan has come.
func (m *Machine) begin(a *attempt) {
	if a.reserves() {
		m.noteBegin(a)
		m.sendProgress(a, grid.PhaseRunning, 0, 0)
		return
	}
	m.tryStart(a)
}

// sendStart tells the submitter when an attempt that waits in the plan is to start.
func (m *Machine) sendStart(a *attempt) {
	if in := m.startsIn(a); in > 0 {
		msg := m.progressOf(a, grid.PhaseStaging)
		msg.StartsIn = in
		m.out.Send(a.submitter, msg)
	}
}

// startsIn is the time until an accepted attempt is to start, 0 if its place in the
// plan has come.
func (m *Machine) startsIn(a *attempt) time.Duration {
	c, ok := m.plan.Commitment(a.id)
	if !ok || c.Running || a.phase == phaseAsked || a.place == nil {
		return 0
	}
	return min(max(c.Start.Sub(m.now), 0), grid.MaxRuntime)
}

// applyChanges does what the plan wants of those that hold what is promised to others,
// and of promises that it cannot keep.
func (m *Machine) applyChanges(changes plan.Changes) {
	for _, c := range changes.Suspended {
		if a := m.roster.all[c.Attempt]; a != nil {
			m.displace(a, c)
		}
	}
	for _, c := range changes.Resumed {
		if a := m.roster.all[c.Attempt]; a != nil && a.wantsLease() {
			a.displaced = grid.ReasonNone
			m.proceed(a)
			m.tryStart(a)
		}
	}
	for _, c := range changes.Stopped {
		if a := m.roster.all[c.Attempt]; a != nil && a.wantsLease() {
			ends := c.Overrun == grid.OverrunStop && c.Within == (grid.AttemptID{})
			a.overran = ends && m.hasOverrun(a, c)
			m.stop(a, told, grid.ReasonPromised.String())
		}
	}
	m.losePromises(changes.Lost)
	m.closeReservations(changes.Over)
}

func (m *Machine) displace(a *attempt, c plan.Commitment) {
	if !a.wantsLease() {
		return
	}
	a.displaced = grid.ReasonPromised
	if m.hasOverrun(a, c) {
		a.displaced = grid.ReasonOverrun
	}
	r := about(a.id, a.submitter)
	r.Reason = a.displaced
	m.out.Report(step.LevelInfo, eventDisplaced, r)
	if a.started {
		m.suspend(a)
	}
}

// hasOverrun reports whether an attempt has had the time that it was to take.
func (m *Machine) hasOverrun(a *attempt, c plan.Commitment) bool {
	return !m.now.Before(c.Start.Add(a.estimate))
}

// losePromises gives back attempts whose promised time cannot be kept; the plan has
// dropped them.
func (m *Machine) losePromises(lost []plan.Commitment) {
	for _, c := range lost {
		a := m.roster.all[c.Attempt]
		if a == nil || !a.wantsLease() && a.phase != phaseAsked {
			continue
		}
		m.out.Report(step.LevelWarn, eventPromiseGone, about(a.id, a.submitter))
		m.stop(a, told, "the site can no longer keep the promised time")
	}
}

// closeReservations ends reservations whose time is over.
func (m *Machine) closeReservations(over []plan.Commitment) {
	for _, c := range over {
		if a := m.roster.all[c.Attempt]; a != nil && a.wantsLease() {
			m.end(a, grid.Exit{Cause: grid.CauseExited, Text: "its time is over"})
		}
	}
	if len(over) > 0 {
		m.noteRoom()
	}
}

// onPlanning changes the order in which those that wait move up.
func (m *Machine) onPlanning(in step.PlanningChanged) {
	policy, err := grid.ParsePolicy(in.Policy)
	backfill, errBackfill := grid.ParseBackfill(in.Backfill)
	if err = errors.Join(err, errBackfill); err != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{Text: err.Error()})
		return
	}
	m.plan.SetPolicy(policy, backfill)
	m.cfg.Planning.Policy, m.cfg.Planning.Backfill = policy, backfill
	m.out.Report(step.LevelInfo, eventPlanning, step.Report{Text: in.Policy + " " + in.Backfill})
}
