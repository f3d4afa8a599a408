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

// pause is the order to offer nothing for a time: of the owner, or of a site that may give it.
type pause struct {
	on    bool
	by    grid.SiteID // that ordered it from afar; empty: the owner
	until time.Time   // zero: until Resume
	shown time.Time   // until, on the wall clock as it stands now
	leave bool        // attempts that can go on elsewhere leave
	// stopAt is when what cannot leave is stopped; zero: it is not. stopShown is that on the wall
	// clock.
	stopAt, stopShown time.Time
}

// owner holds the owner's wishes for the site, and what the machine lacks for them: each of the
// four closes it.
type owner struct {
	paused   pause
	draining bool        // no fact: it ends with the agent
	busy     grid.Reason // why the owner has the machine alone, ReasonNone: it is shared
	full     bool        // the disk takes no more data; no fact either
	share    share       // of the ceilings that is given now; no fact either
	returns  time.Time   // when the hours end in which it is shared; zero: not known, no fact
}

// onPause stops offering. It is a fact, so that a paused site stays paused after
// a restart.
func (m *Machine) onPause(in step.Pause) {
	if !in.Until.IsZero() && !in.Until.After(m.shownTime(m.now)) {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "a pause that is over"})
		return
	}
	if m.ownersAlone(in.By) {
		return
	}
	p := pause{on: true, by: in.By, leave: in.Leave}
	p.until, p.shown = m.ownTime(in.Until)
	if in.Leave {
		p.stopAt, p.stopShown = m.ownTime(in.StopAt)
	}
	m.owner.paused = p
	m.out.Persist(p.fact())
	m.out.Report(step.LevelInfo, eventPaused, step.Report{Site: in.By})
	m.armPause()
	m.reviewLeaving()
}

// ownersAlone reports whether an order from afar has to yield to one that the owner gave here.
func (m *Machine) ownersAlone(by grid.SiteID) bool {
	if by == "" || !m.owner.draining && (!m.owner.paused.on || m.owner.paused.by != "") {
		return false
	}
	m.out.Report(step.LevelInfo, eventOwnersAlone, step.Report{Site: by})
	return true
}

// ownTime is a time on the wall clock on the machine's, and as it is shown; both are zero if it is.
func (m *Machine) ownTime(at time.Time) (own, shown time.Time) {
	if at.IsZero() {
		return own, shown
	}
	shown = time.UnixMilli(at.UnixMilli()).UTC()
	return shown.Add(-m.clocks.ahead), shown
}

// shift follows a wall clock that was set, and reports whether that changes what is shown.
func (p *pause) shift(by time.Duration) (changed bool) {
	for _, shown := range []*time.Time{&p.shown, &p.stopShown} {
		if !shown.IsZero() {
			*shown, changed = shown.Add(by), true
		}
	}
	return changed
}

func (m *Machine) armPause() {
	if at := m.owner.paused.stopAt; !at.IsZero() {
		m.out.SetTimer(timerStopAt, "", at)
	}
	if m.owner.paused.until.IsZero() {
		m.out.StopTimer(timerPause, "")
		return
	}
	m.out.SetTimer(timerPause, "", m.owner.paused.until)
}

func (m *Machine) onPauseTimer() {
	if !m.owner.paused.on || m.owner.paused.until.IsZero() || m.now.Before(m.owner.paused.until) {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + timerPause})
		return
	}
	m.unpause()
	m.reopen()
}

// unpause ends a pause, if there is one.
func (m *Machine) unpause() {
	if !m.owner.paused.on {
		return
	}
	m.owner.paused = pause{}
	m.out.Persist(m.owner.paused.fact())
	m.out.StopTimer(timerPause, "")
	m.reviewLeaving()
}

// onResume ends a pause and calls off a drain.
func (m *Machine) onResume(in step.Resume) {
	if !m.owner.paused.on && !m.owner.draining {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "neither paused nor draining"})
		return
	}
	if m.ownersAlone(in.By) {
		return
	}
	m.unpause()
	m.owner.draining = false
	m.reopen()
}

func (m *Machine) reopen() {
	m.out.Report(step.LevelInfo, eventResumedOffering, step.Report{})
	m.noteRoom()
}

// onDrain makes the site offer nothing more. With Now running attempts are stopped, too,
// and each submitter hears of it, so that its tasks move elsewhere. A drain is
// no fact: it ends with the agent.
func (m *Machine) onDrain(in step.Drain) {
	m.owner.draining = true
	m.out.Report(step.LevelInfo, eventDraining, step.Report{})
	if !in.Now {
		return
	}
	for _, a := range m.roster.where((*attempt).wantsLease) {
		m.stop(a, told, "the site is stopping")
	}
}

// onCapacity takes new ceilings, and what others leave of them now. What is
// committed stays committed, also where it is more than that. Only the ceilings
// decide what can never run here; offers are made from what is left.
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
	m.setOutage()
	m.dropOutgrown()
	m.links.outdated = true
	m.bookingsChanged()
	m.out.Report(step.LevelInfo, eventCapacityChanged, step.Report{})
	if !before.Total.Fits(left.Total) || !slices.Equal(left.Kinds, before.Kinds) {
		m.noteRoom()
	}
}

// onTerms takes what the owner decided anew about the work that is taken. What was
// promised before stays promised.
func (m *Machine) onTerms(in step.TermsChanged) {
	cfg := m.cfg
	cfg.MaxRuntime, cfg.OwnerPatience = in.MaxRuntime, in.Patience
	if in.MoveAfter != 0 {
		cfg.MoveAfter = in.MoveAfter
	}
	cfg.Planning.Ahead, cfg.Planning.Longest = in.Ahead, in.Longest
	cfg.Priced, cfg.Price, cfg.Signers = in.Priced, in.Price, in.Signers
	if err := cfg.Validate(); err != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{Text: err.Error()})
		return
	}
	before := m.cfg
	m.cfg = cfg
	m.out.Report(step.LevelInfo, eventTermsChanged, step.Report{})
	m.rearmMoves()
	m.bookingsChanged()
	m.changeSigners(before.Signers)
	if m.owner.needs() != grid.ReasonNone && cfg.OwnerPatience != before.OwnerPatience {
		m.out.SetTimer(timerOwner, "", m.now.Add(cfg.OwnerPatience))
	}
	if before.MaxRuntime != 0 && (cfg.MaxRuntime == 0 || cfg.MaxRuntime > before.MaxRuntime) {
		m.noteRoom() // a refused job may fit now
	}
}

// dropOutgrown gives back what was promised and does not fit into the ceilings any more;
// running attempts go on.
func (m *Machine) dropOutgrown() {
	for _, c := range m.plan.Commitments() {
		a := m.roster.all[c.Attempt]
		if a == nil || c.Running || m.capability.Total.Fits(c.Give) {
			continue
		}
		m.out.Report(step.LevelWarn, eventPromiseGone, about(a.id, a.submitter))
		m.stop(a, told, "the owner gives less than it was promised")
	}
}

// othersStay is the time for which the load of other programs is expected to last.
const othersStay = 5 * time.Minute

// setOutage tells the plan what other programs take of the machine, and what the owner gives less
// at this time of the week: it is missing now and for a while, and what is planned for later does
// not feel it.
func (m *Machine) setOutage() {
	left := m.left.Total
	shared := m.shared()
	left.MilliCPUs = min(left.MilliCPUs, shared.MilliCPUs)
	left.MemoryBytes = min(left.MemoryBytes, shared.MemoryBytes)
	missing := m.capability.Total.Sub(left)
	m.plan.othersUntil = time.Time{}
	if missing != (grid.Resources{}) {
		m.plan.othersUntil = m.now.Add(othersStay)
		if until := m.owner.share.until; until.After(m.plan.othersUntil) {
			m.plan.othersUntil = until
		}
	}
	m.plan.SetOutage(missing, m.plan.othersUntil)
}

// renewOutage keeps what others take ahead of the plan for as long as it is so.
func (m *Machine) renewOutage() {
	if !m.plan.othersUntil.IsZero() && m.plan.othersUntil.Sub(m.now) < othersStay/2 {
		m.setOutage()
	}
}

// onBans takes the sites that are banned now. The attempts of one that was not banned before
// are stopped silently, its offers and requirements are dropped, and its messages are
// ignored from now on.
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
		m.stop(a, untold, "its submitter is banned")
	}
	m.out.Report(step.LevelInfo, eventBanned, step.Report{Site: site, Value: float64(len(theirs))})
}

// ownerStays is the longest time that an owner who is busy now is expected to stay so, and a disk
// that is full now.
const ownerStays = 15 * time.Minute

// closedFor is the refusal of a site that is closed when the window begins. What is to
// begin later than a pause ends, or than an owner who is busy now should be gone, can
// be promised all the same.
func (o owner) closedFor(w grid.Window, now time.Time) (grid.Refusal, bool) {
	refusal, closed := o.closed()
	begins := w.Earliest()
	if !closed || o.draining || begins.IsZero() {
		return refusal, closed
	}
	open := now
	if o.needs() != grid.ReasonNone {
		open = open.Add(ownerStays)
	}
	if o.paused.on && (o.paused.until.IsZero() || o.paused.until.After(open)) {
		open = o.paused.until
	}
	return refusal, open.IsZero() || begins.Before(open)
}

// closed is the refusal of a site whose owner wants no more work for now.
func (o owner) closed() (grid.Refusal, bool) {
	switch {
	case o.draining:
		return grid.Refusal{Reason: grid.ReasonDraining}, true
	case o.paused.on:
		return grid.Refusal{Reason: grid.ReasonPaused}, true
	case o.needs() != grid.ReasonNone:
		return grid.Refusal{Reason: o.needs()}, true
	default:
		return grid.Refusal{}, false
	}
}
