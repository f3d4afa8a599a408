package site

import (
	"errors"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerPlan brings the plan up to now when something in it is due.
const timerPlan = "plan"

// planning is the plan, and what has to be known of it from Step to Step.
type planning struct {
	*plan.Planner

	// othersUntil is until when the plan counts what other programs take of the machine
	// as missing; zero if they take nothing. It is moved on long before it is reached
	// (renewOutage): nobody says that they still take it.
	othersUntil time.Time

	timer time.Time // when the plan's timer fires; zero if it is not set
}

// newPlan is the empty plan of a run. Offers of an earlier run have other
// numbers, so that nobody can take one for another.
func newPlan(cfg Config, total grid.Resources, incarnation uint64) *plan.Planner {
	return plan.New(planConfig(cfg, total, incarnation))
}

func planConfig(cfg Config, total grid.Resources, incarnation uint64) plan.Config {
	p := cfg.Planning
	return plan.Config{
		Self: cfg.Self, Total: total, HoldAll: cfg.HoldAll,
		MaxOffers: cfg.CacheEntries, FirstOffer: incarnation<<32 + 1,
		Policy: p.Policy, Backfill: p.Backfill, Horizon: p.Horizon,
		Promised: p.Promised, Strangers: p.Strangers, Submitter: p.Submitter, Project: p.Project,
		Fairshare: p.Fairshare, Overestimate: p.Overestimate,
	}
}

// sendBid turns a quote into an open offer and tells the submitter; if it has its
// share of open offers already, it gives the refusal instead. What a probe is offered is not kept
// open.
func (m *Machine) sendBid(c call, q quote) (grid.Refusal, bool) {
	o, ok := m.open(q)
	if !ok {
		return grid.Refusal{Reason: grid.ReasonQuota}, false
	}
	m.out.Send(c.submitter, protocol.Bid{Job: c.job, Seq: c.seq, Offer: o})
	if c.probe {
		m.plan.Withdraw(o.ID)
	}
	return grid.Refusal{}, true
}

// open makes an open offer of a quote. A submitter has at most an eighth of all
// open offers. The site's own jobs are exempt: when there are too many of all, the
// oldest of theirs gives way, which costs nothing, because an award is quoted again
// in any case.
func (m *Machine) open(q quote) (grid.Offer, bool) {
	o, err := m.plan.Open(m.now, q.ask, q.place, false, m.cfg.OfferValidity)
	if errors.Is(err, plan.ErrQuota) && q.ask.Submitter == m.cfg.Self {
		m.withdrawOldest(m.cfg.Self)
		o, err = m.plan.Open(m.now, q.ask, q.place, false, m.cfg.OfferValidity)
	}
	if err != nil {
		return grid.Offer{}, false
	}
	return m.offerOf(o, q), true
}

// offerOf describes an open offer to its submitter.
func (m *Machine) offerOf(o plan.Offer, q quote) grid.Offer {
	r := aboutJob(q.ask.Job, q.ask.Submitter)
	r.Value = q.parts.Distance
	m.out.Report(step.LevelDebug, eventOfferMade, r)
	said := grid.Offer{
		ID: o.Number, Site: m.cfg.Self, Parts: q.parts, Finish: q.finish(m.now), Firm: o.Firm,
		Validity: o.Expires.Sub(m.now), TasksNow: q.place.Tasks, CoreMFLOPS: m.left.CoreMFLOPS,
		Decrypts: q.decrypts,
	}
	if o.Firm && !q.place.LatestStart.IsZero() {
		said.LatestStart = max(q.place.LatestStart.Sub(m.now), 0)
	}
	return said
}

// withdrawOldest closes the oldest open offer to a submitter.
func (m *Machine) withdrawOldest(submitter grid.SiteID) {
	offers := m.plan.Offers()
	i := slices.IndexFunc(offers, func(o plan.Offer) bool { return o.Submitter == submitter })
	if i >= 0 {
		m.plan.Withdraw(offers[i].Number)
	}
}

// dropOffer closes the job's open offer, if there is one.
func (m *Machine) dropOffer(job grid.JobID) {
	if m.plan.WithdrawJob(job) == 0 {
		return
	}
	if m.noteShare(); m.cfg.HoldAll {
		m.noteRoom()
	}
}

// heldOffer is the number of an open offer if it is for this job and submitter,
// else that of a later one for them: a request to hold it may have come twice. It is
// 0 if there is none.
func (m *Machine) heldOffer(number uint64, job grid.JobID, submitter grid.SiteID) uint64 {
	if o, ok := m.plan.Offer(number); ok && o.Job == job && o.Submitter == submitter {
		return number
	}
	offers := m.plan.Offers()
	i := slices.IndexFunc(offers, func(o plan.Offer) bool {
		return o.Job == job && o.Submitter == submitter
	})
	if i >= 0 {
		return offers[i].Number
	}
	return 0
}

// commit takes the place of a quote for an attempt, out of what the offer holds
// if it holds anything.
func (m *Machine) commit(id grid.AttemptID, spec grid.Spec, q quote) (plan.Commitment, bool) {
	c := plan.Commitment{
		Attempt: id, Submitter: q.ask.Submitter, Project: spec.Project, Give: q.place.Give,
		Class: q.ask.Class, Priority: int32(spec.Priority),
		NotBefore: q.ask.Window.NotBefore, Deadline: q.ask.Window.Deadline,
		LatestStart: q.place.LatestStart, Start: q.place.Start, End: q.place.End, Overrun: spec.Overrun,
		Within: q.ask.Within, Holds: spec.Kind == grid.KindReservation,
	}
	c.AwaitsData = !q.ask.NowOnly && !c.Holds
	err := m.plan.Commit(m.now, c, q.ask.Offer)
	if errors.Is(err, plan.ErrFull) && q.ask.Offer != 0 {
		// The quote counted all that the offer holds as free, and gives more of it
		// to this task than its share: the hold has served its purpose.
		m.plan.Withdraw(q.ask.Offer)
		m.noteRoom()
		err = m.plan.Commit(m.now, c, 0)
	}
	if err != nil {
		r := about(id, q.ask.Submitter)
		r.Text = err.Error()
		m.out.Report(step.LevelWarn, eventImpossiblePlan, r)
		return c, false
	}
	return c, true
}

// vacate gives an attempt's capacity back.
func (m *Machine) vacate(a *attempt) {
	if _, ok := m.plan.Release(a.id); ok {
		m.noteRoom()
	}
}

// isDue reports whether an attempt's place in the plan has come.
func (m *Machine) isDue(a *attempt) bool {
	c, ok := m.plan.Commitment(a.id)
	return ok && c.Running
}

// advance brings the plan up to now: offers expire, an attempt that runs longer than
// planned keeps its capacity, and one that waited in the plan starts when its place comes.
func (m *Machine) advance() {
	m.renewOutage()
	changes := m.plan.Advance(m.now)
	if len(changes.Withdrawn) > 0 {
		m.noteShare()
	}
	if slices.ContainsFunc(changes.Withdrawn, func(o plan.Offer) bool { return o.Holds > 0 }) {
		m.noteRoom()
	}
	m.applyChanges(changes)
	for _, c := range changes.Started {
		if a := m.roster.all[c.Attempt]; a != nil {
			m.begin(a)
		}
	}
	for _, c := range changes.Moved {
		if a := m.roster.all[c.Attempt]; a != nil {
			m.sendStart(a)
		}
	}
}

// armPlan sets the timer for what is due next in the plan. Without anything that
// waits or is held, which the plan itself knows best, there is nothing to wake up for:
// every Step advances the plan anyway.
func (m *Machine) armPlan() {
	next := time.Time{}
	if m.cfg.HoldAll || m.plan.Promises() {
		next, _ = m.plan.Next()
	}
	if next.Equal(m.plan.timer) {
		return
	}
	m.plan.timer = next
	if next.IsZero() {
		m.out.StopTimer(timerPlan, "")
		return
	}
	m.out.SetTimer(timerPlan, "", next)
}
