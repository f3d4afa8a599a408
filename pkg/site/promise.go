package site

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// onHoldOffer makes an offer firm: what it quoted, or what can be had now, is held
// until the new offer's validity ends. Migol 6.2.1, the reservation request.
func (m *Machine) onHoldOffer(from grid.SiteID, msg protocol.HoldOffer) {
	if !m.authorised(msg.Job, from) {
		return
	}
	o, refusal, ok := m.holdOffer(from, msg)
	if !ok {
		r := aboutJob(msg.Job, from)
		r.Reason = refusal.Reason
		m.report(step.LevelDebug, eventOfferRefused, r)
		m.send(from, protocol.Refuse{Job: msg.Job, Seq: msg.Seq, Refusal: refusal})
		return
	}
	r := aboutJob(msg.Job, from)
	r.Value = float64(o.TasksNow)
	m.report(step.LevelDebug, eventHeld, r)
	m.send(from, protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: o})
}

func (m *Machine) holdOffer(from grid.SiteID, msg protocol.HoldOffer) (grid.Offer, grid.Refusal, bool) {
	entry, cached := m.cache.Get(m.now, msg.Job)
	if !cached {
		return grid.Offer{}, grid.Refusal{Reason: grid.ReasonUnknownOffer}, false
	}
	req := entry.Value
	if !msg.At.IsZero() {
		req.Window = grid.Window{At: msg.At, Deadline: req.Window.Deadline}
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

// onVerified accepts an attempt whose plan the sandbox can keep, and declines another.
// OpenCCS: the Machine Manager "checks" what the Planning Manager made before the
// request is accepted.
func (m *Machine) onVerified(in step.Verified) {
	a := m.known(in.Attempt, phaseAsked, phaseAsked)
	if a == nil {
		return
	}
	if in.Problem != "" {
		r := about(a.id, a.submitter)
		r.Text = in.Problem
		m.report(step.LevelWarn, eventUnkeepable, r)
		m.decline(a, grid.ReasonAdapter)
		return
	}
	m.accept(a)
	m.sayAccepted(a.submitter, []*attempt{a})
	m.setUp(a.submitter, []*attempt{a})
}

// decline gives up an attempt of which nothing was promised yet.
func (m *Machine) decline(a *attempt, why grid.Reason) {
	m.vacate(a)
	m.roster.remove(a)
	m.raiseToken(a.id.Task, a.id.Token)
	r := about(a.id, a.submitter)
	r.Reason = why
	m.report(step.LevelInfo, eventDeclined, r)
	m.send(a.submitter, protocol.Declined{Attempts: []grid.AttemptID{a.id}, Refusal: grid.Refusal{Reason: why}})
}

// begin is told when an attempt's place in the plan has come.
func (m *Machine) begin(a *attempt) {
	if a.reserves() {
		m.progress(a, grid.PhaseRunning, 0, 0)
		return
	}
	m.tryStart(a)
}

// tellStart tells the submitter when an attempt that waits in the plan is to start.
func (m *Machine) tellStart(a *attempt) {
	c, ok := m.plan.Commitment(a.id)
	if !ok || c.Running || a.phase == phaseAsked || a.place == nil {
		return
	}
	msg := progressOf(a, grid.PhaseStaging)
	msg.StartsIn = min(max(c.Start.Sub(m.now), 0), grid.MaxRuntime)
	m.send(a.submitter, msg)
}

// standAside does what the plan wants of those that hold what is promised to others,
// and of promises that it cannot keep.
func (m *Machine) standAside(changes plan.Changes) {
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
			a.overran = m.hasOverrun(a, c) && c.Overrun == plan.OverrunStop && c.Within == (grid.AttemptID{})
			m.stop(a, false, grid.ReasonPromised.String())
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
	m.report(step.LevelInfo, eventDisplaced, r)
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
		if !c.Running {
			m.queued--
		}
		a := m.roster.all[c.Attempt]
		if a == nil || !a.wantsLease() {
			continue
		}
		m.report(step.LevelWarn, eventPromiseGone, about(a.id, a.submitter))
		m.stop(a, false, "the site can no longer keep the promised time")
	}
}

// closeReservations ends reservations whose time is over.
func (m *Machine) closeReservations(over []plan.Commitment) {
	for _, c := range over {
		if !c.Running {
			m.queued--
		}
		if a := m.roster.all[c.Attempt]; a != nil && a.wantsLease() {
			m.end(a, grid.Exit{Cause: grid.CauseExited, Text: "its time is over"})
		}
	}
	if len(over) > 0 {
		m.grown()
	}
}

// onPlanning changes the order in which those that wait move up.
func (m *Machine) onPlanning(in step.PlanningChanged) {
	policy, err := plan.ParsePolicy(in.Policy)
	backfill, errBackfill := plan.ParseBackfill(in.Backfill)
	if err = errors.Join(err, errBackfill); err != nil {
		m.report(step.LevelWarn, eventInvalid, step.Report{Text: err.Error()})
		return
	}
	m.plan.SetPolicy(policy, backfill)
	m.cfg.PlanPolicy, m.cfg.PlanBackfill = policy, backfill
	m.report(step.LevelInfo, eventPlanning, step.Report{Text: in.Policy + " " + in.Backfill})
}

// placeFact is the place in the plan that an attempt was promised, and what else is
// needed to take it up again. Times are ms since 1970 UTC, 0 = none.
type placeFact struct {
	StartMS       int64          `json:"start_ms"`
	EndMS         int64          `json:"end_ms"`
	Give          grid.Resources `json:"give"`
	Class         plan.Class     `json:"class"`
	NotBeforeMS   int64          `json:"not_before_ms,omitempty"`
	DeadlineMS    int64          `json:"deadline_ms,omitempty"`
	LatestStartMS int64          `json:"latest_start_ms,omitempty"`
	Priority      int32          `json:"priority,omitempty"`
	Project       string         `json:"project,omitempty"`
	Overrun       plan.Overrun   `json:"overrun,omitempty"`
	Holds         bool           `json:"holds,omitempty"`
	Within        string         `json:"within,omitempty"`
	Module        grid.Input     `json:"module,omitzero"`
}

func newPlaceFact(c plan.Commitment, module grid.Input) *placeFact {
	f := &placeFact{
		StartMS: toMS(c.Start), EndMS: toMS(c.End), Give: c.Give, Class: c.Class, NotBeforeMS: toMS(c.NotBefore),
		DeadlineMS: toMS(c.Deadline), LatestStartMS: toMS(c.LatestStart), Priority: c.Priority, Project: c.Project,
		Overrun: c.Overrun, Holds: c.Holds, Module: module,
	}
	if c.Within != (grid.AttemptID{}) {
		f.Within = c.Within.String()
	}
	return f
}

// commitment is the promise of an attempt as the plan knows it.
func (f *placeFact) commitment(a *attempt) plan.Commitment {
	c := plan.Commitment{
		Attempt: a.id, Submitter: a.submitter, Project: f.Project, Give: f.Give, Class: f.Class, Priority: f.Priority,
		NotBefore: fromMS(f.NotBeforeMS), Deadline: fromMS(f.DeadlineMS), LatestStart: fromMS(f.LatestStartMS),
		Start: fromMS(f.StartMS), End: fromMS(f.EndMS), AwaitsData: !f.Holds, Overrun: f.Overrun, Holds: f.Holds,
	}
	c.Within, _ = parseAttempt(f.Within)
	return c
}

// validate reports a place that no plan could have.
func (f *placeFact) validate() error {
	switch {
	case f == nil:
		return nil
	case f.StartMS >= f.EndMS || f.Class > plan.ClassVarTime || f.Overrun > plan.OverrunStop:
		return fmt.Errorf("%w: a place in the plan from %d to %d ms, class %d", grid.ErrInvalid, f.StartMS, f.EndMS, f.Class)
	}
	if _, ok := parseAttempt(f.Within); !ok && f.Within != "" {
		return fmt.Errorf("%w: a place within %q", grid.ErrInvalid, f.Within)
	}
	return f.Give.Validate()
}

// promised is what the facts say of places in the plan that can still be kept. What
// is bound to a reservation is kept with it.
func (m *Machine) promised() []plan.Commitment {
	var list []plan.Commitment
	for _, bound := range []bool{false, true} {
		for _, a := range m.roster.where((*attempt).wantsLease) {
			if a.place == nil || a.started || !a.place.keepable(m.now) || (a.place.Within != "") != bound {
				continue
			}
			c := a.place.commitment(a)
			held := func(h plan.Commitment) bool { return h.Holds && h.Attempt == c.Within }
			if bound && !slices.ContainsFunc(list, held) {
				continue
			}
			list = append(list, c)
		}
	}
	return list
}

// takeUp goes on with an attempt that was promised a later start before the agent
// died.
func (m *Machine) takeUp(a *attempt, c plan.Commitment) {
	a.module, a.estimate, a.accepted = a.place.Module, c.End.Sub(c.Start), m.now
	if a.reserves() {
		a.phase = phaseReady
	}
	if !c.Running {
		m.queued++
	}
	m.report(step.LevelInfo, eventTakenUp, about(a.id, a.submitter))
	m.setUp(a.submitter, []*attempt{a})
}

// keepable reports whether an attempt that a restart found can still be begun in its
// place: one that has no fixed start may begin a little later.
func (f *placeFact) keepable(now time.Time) bool {
	switch {
	case f.Holds:
		return fromMS(f.EndMS).After(now)
	case f.Class == plan.ClassFixTime:
		return fromMS(f.StartMS).After(now)
	case f.Class == plan.ClassDeadline:
		return f.LatestStartMS == 0 || fromMS(f.LatestStartMS).After(now)
	default:
		return fromMS(f.StartMS).After(now)
	}
}

func toMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
