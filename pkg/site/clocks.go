package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// This machine's clock goes on evenly, whatever is done to the wall clock. A time that a
// submitter names is one on the submitter's wall clock, and what that shows comes with the
// messages that name times: no other clock decides when a window begins. So a site whose clock
// is wrong, or is set, keeps its promises all the same.

// clockJitter is by how much a message may be later than the ones before it without the
// sender's clock being taken for set back.
const clockJitter = time.Second

// clocks holds what is known of wall clocks.
type clocks struct {
	ahead     time.Duration // this site's, minus now: by so much it was set in this run
	submitter time.Duration // the same as this site's own submitter last said it
	lasting   step.Clock    // goes on when this run ends
}

// onClockStepped follows this site's own wall clock: in what it shows, and in what a run after
// the next boot of the machine goes by.
func (m *Machine) onClockStepped(in step.ClockStepped) {
	m.clocks.ahead += in.By
	m.out.Report(step.LevelInfo, eventClockSet, step.Report{Value: in.By.Seconds()})
	for _, a := range m.roster.where((*attempt).isPlaced) {
		if a.place.shift(in.By); a.phase != phaseAsked {
			m.save(a)
		}
	}
	for _, a := range m.roster.where((*attempt).hasExited) {
		a.shown.shift(in.By)
		m.save(a)
	}
	if p := &m.owner.paused; p.on && p.shift(in.By) {
		m.out.Persist(p.fact())
	}
}

// isPlaced reports whether a restart would take the attempt up at its place.
func (a *attempt) isPlaced() bool { return a.place != nil && a.wantsLease() && !a.started }

// aheadOf is by how much a submitter's wall clock is ahead of this machine's, nil if nothing is
// remembered of that submitter.
func (m *Machine) aheadOf(submitter grid.SiteID) *time.Duration {
	if submitter == m.cfg.Self {
		return &m.clocks.submitter
	}
	if p := m.links.peers[submitter]; p != nil {
		return &p.ahead
	}
	return nil
}

// hearClock learns from a message what its sender's wall clock showed. A message never comes
// before it is sent, so one that says more is right; one that says a little less was on its way
// for longer.
func (m *Machine) hearClock(from grid.SiteID, shows time.Time) {
	ahead := m.aheadOf(from)
	if ahead == nil || shows.IsZero() {
		return
	}
	said := shows.Sub(m.now)
	if late := *ahead - said; late < 0 || late > clockJitter {
		*ahead = said
	}
}

// onOwnClock turns a time that a submitter has named into one of this machine's clock.
func (m *Machine) onOwnClock(submitter grid.SiteID, named time.Time) time.Time {
	return m.windowHere(submitter, grid.Window{At: named}).At
}

// windowHere is the same for a window.
func (m *Machine) windowHere(submitter grid.SiteID, named grid.Window) grid.Window {
	if ahead := m.aheadOf(submitter); ahead != nil {
		return named.Shift(-*ahead)
	}
	return named.Shift(-m.clocks.ahead)
}

// here is a requirement with its window on this machine's clock.
func (m *Machine) here(submitter grid.SiteID, req grid.Requirement) grid.Requirement {
	req.Window = m.windowHere(submitter, req.Window)
	return req
}

// shownTime turns a time of the machine into one of this site's wall clock.
func (m *Machine) shownTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(m.clocks.ahead)
}
