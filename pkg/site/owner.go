package site

import (
	"errors"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerPause ends a pause.
const timerPause = "pause"

// pause is what the owner said.
type pause struct {
	on    bool
	until time.Time // zero: until Resume
}

// onPause stops offering. It is a fact, so that a paused site stays paused after
// a restart.
func (m *Machine) onPause(in step.Pause) {
	if !in.Until.IsZero() && !in.Until.After(m.now) {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "a pause that is over"})
		return
	}
	m.paused = pause{on: true}
	if !in.Until.IsZero() {
		m.paused.until = time.UnixMilli(in.Until.UnixMilli()).UTC()
	}
	m.out.Persist(m.paused.fact())
	m.out.Report(step.LevelInfo, eventPaused, step.Report{})
	m.armPause()
}

func (m *Machine) armPause() {
	if m.paused.until.IsZero() {
		m.out.StopTimer(timerPause, "")
		return
	}
	m.out.SetTimer(timerPause, "", m.paused.until)
}

func (m *Machine) onPauseTimer() {
	if !m.paused.on || m.paused.until.IsZero() || m.now.Before(m.paused.until) {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + timerPause})
		return
	}
	m.unpause()
	m.resumed()
}

// unpause ends a pause, if there is one.
func (m *Machine) unpause() {
	if !m.paused.on {
		return
	}
	m.paused = pause{}
	m.out.Persist(m.paused.fact())
	m.out.StopTimer(timerPause, "")
}

// onResume ends a pause and calls off a drain.
func (m *Machine) onResume() {
	if !m.paused.on && !m.draining {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "neither paused nor draining"})
		return
	}
	m.unpause()
	m.draining = false
	m.resumed()
}

func (m *Machine) resumed() {
	m.out.Report(step.LevelInfo, eventResumedOffering, step.Report{})
	m.grown()
}

// onDrain makes the site offer nothing more. With Now what runs is stopped, too,
// and each submitter hears of it, so that its tasks move elsewhere. A drain is
// no fact: it ends with the agent.
func (m *Machine) onDrain(in step.Drain) {
	m.draining = true
	m.out.Report(step.LevelInfo, eventDraining, step.Report{})
	if !in.Now {
		return
	}
	for _, a := range m.roster.where((*attempt).wantsLease) {
		m.stop(a, false, "the site is stopping")
	}
}

// onCapacity takes new ceilings, and what others leave of them now. What is
// committed stays committed, also where it is more than that. Only the ceilings
// decide what can never run here; what is offered comes of what is left.
func (m *Machine) onCapacity(in step.CapacityChanged) {
	left := in.Capability
	if in.Left != nil {
		left.Total, left.CoreMFLOPS = in.Left.Total, in.Left.CoreMFLOPS
	}
	if err := errors.Join(in.Capability.Validate(), left.Validate()); err != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{Text: err.Error()})
		return
	}
	left.Total = left.Total.Min(in.Capability.Total)
	left.CoreMFLOPS = min(left.CoreMFLOPS, in.Capability.CoreMFLOPS)
	before := m.left
	m.capability, m.left = in.Capability, left
	m.plan.SetCapacity(in.Capability.Total)
	m.takenByOthers()
	m.outgrown()
	m.measurePotential()
	m.out.Report(step.LevelInfo, eventCapacityChanged, step.Report{})
	if !before.Total.Fits(left.Total) || !slices.Equal(left.Kinds, before.Kinds) {
		m.grown()
	}
}

// onTerms takes what the owner decided anew about the work that is taken. What was
// promised before stays promised.
func (m *Machine) onTerms(in step.TermsChanged) {
	cfg := m.cfg
	cfg.MaxRuntime, cfg.OwnerPatience = in.MaxRuntime, in.Patience
	cfg.MaxAhead, cfg.MaxReservation = in.Ahead, in.Longest
	cfg.Priced, cfg.Price = in.Priced, in.Price
	if err := cfg.Validate(); err != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{Text: err.Error()})
		return
	}
	before := m.cfg
	m.cfg = cfg
	m.out.Report(step.LevelInfo, eventTermsChanged, step.Report{})
	if m.owned != grid.ReasonNone && cfg.OwnerPatience != before.OwnerPatience {
		m.out.SetTimer(timerOwner, "", m.now.Add(cfg.OwnerPatience))
	}
	if before.MaxRuntime != 0 && (cfg.MaxRuntime == 0 || cfg.MaxRuntime > before.MaxRuntime) {
		m.grown() // who was refused may fit now
	}
}

// outgrown gives back what was promised and does not fit into the ceilings any more;
// what runs goes on.
func (m *Machine) outgrown() {
	for _, c := range m.plan.Commitments() {
		a := m.roster.all[c.Attempt]
		if a == nil || c.Running || m.capability.Total.Fits(c.Give) {
			continue
		}
		m.out.Report(step.LevelWarn, eventPromiseGone, about(a.id, a.submitter))
		m.stop(a, false, "the owner gives less than it was promised")
	}
}

// othersStay is how far ahead what other programs take now is expected to be missing.
const othersStay = 5 * time.Minute

// takenByOthers tells the plan what other programs take of the machine: it is missing
// now and for a while, and what is planned for later does not feel it.
func (m *Machine) takenByOthers() {
	missing := m.capability.Total.Sub(m.left.Total)
	m.othersUntil = time.Time{}
	if missing != (grid.Resources{}) {
		m.othersUntil = m.now.Add(othersStay)
	}
	m.plan.SetOutage(missing, m.othersUntil)
}

// stillTaken keeps what others take ahead of the plan for as long as it is so.
func (m *Machine) stillTaken() {
	if !m.othersUntil.IsZero() && m.othersUntil.Sub(m.now) < othersStay/2 {
		m.takenByOthers()
	}
}

// onBans takes who is banned now. The attempts of one that was not banned before
// are stopped without a word to him, his offers and requirements are dropped,
// and what he says is ignored from now on.
func (m *Machine) onBans(in step.BansChanged) {
	for _, site := range m.banned.Change(in, m.cfg.Self) {
		m.ban(site)
	}
}

func (m *Machine) ban(site grid.SiteID) {
	for _, entry := range m.cache.Entries(m.now) {
		if entry.Submitter == site {
			m.dropOffer(entry.Job)
			m.cache.Remove(entry.Job)
		}
	}
	theirs := m.roster.where(func(a *attempt) bool { return a.submitter == site })
	for _, a := range theirs {
		m.stop(a, true, "its submitter is banned")
	}
	m.out.Report(step.LevelInfo, eventBanned, step.Report{Site: site, Value: float64(len(theirs))})
}

// ownerStays is how long an owner who is busy now is expected to be so at most.
const ownerStays = 15 * time.Minute

// closedTo is the refusal of a site that is closed when the window begins. What is to
// begin later than a pause ends, or than an owner who is busy now should be gone, can
// be promised all the same.
func (m *Machine) closedTo(w grid.Window) (grid.Refusal, bool) {
	refusal, closed := m.closed()
	begins := w.Earliest()
	if !closed || m.draining || begins.IsZero() {
		return refusal, closed
	}
	open := m.now
	if m.owned != grid.ReasonNone {
		open = open.Add(ownerStays)
	}
	if m.paused.on && (m.paused.until.IsZero() || m.paused.until.After(open)) {
		open = m.paused.until
	}
	return refusal, open.IsZero() || begins.Before(open)
}

// closed is the refusal of a site whose owner wants no more work for now.
func (m *Machine) closed() (grid.Refusal, bool) {
	switch {
	case m.draining:
		return grid.Refusal{Reason: grid.ReasonDraining}, true
	case m.paused.on:
		return grid.Refusal{Reason: grid.ReasonPaused}, true
	case m.owned != grid.ReasonNone:
		return grid.Refusal{Reason: m.owned}, true
	default:
		return grid.Refusal{}, false
	}
}
