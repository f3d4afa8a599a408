package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// onRenew takes what a site tells with its request for leases, and answers the request. What
// an earlier version does not say is not known, and nothing follows from it.
func (m *Machine) onRenew(from grid.SiteID, msg protocol.Renew) {
	for i, left := range msg.Left {
		m.rights.hearLeft(from, msg.Attempts[i], msg.Renewal, left)
	}
	for _, id := range m.rolls.missing(from, msg) {
		j, t := m.jobs.current(from, id)
		switch {
		case t == nil || !t.active() || m.isAstray(t):
		case t.named >= msg.Renewal: // the list was sent before the attempt was named
			m.rolls.enter(from, []grid.AttemptID{id}, m.jobs.isUnderWay(from))
		default:
			m.stopTimer(timerLease, id.String())
			t.leaseEnd = timeZero
			if t.moving.stage == moveStopping { // a site of an earlier version, after a fence
				m.moved(j, id.Task.Index)
				m.placeAgain(j)
				continue
			}
			m.failedAt(j, id.Task.Index, grid.Exit{
				Cause: grid.CauseSiteRestart, Text: "its site has it no more",
			}, suspectSite)
		}
	}
	m.onRequest(from, msg.Renewal, msg.Attempts)
}

// missing finds what a site has no more: attempts that it has named before and that are
// missing in its full list.
func (r rolls) missing(from grid.SiteID, msg protocol.Renew) []grid.AttemptID {
	if msg.List == nil {
		return nil
	}
	named := slices.Concat(msg.Attempts, msg.List.Also)
	slices.SortFunc(named, grid.AttemptID.Compare)
	return r.strike(from, msg.List, named)
}

// hearLeft takes what is left of an attempt's lease. It may show that a long one has not
// arrived and, as a later request was sent, cannot any more: then it is not waited for.
func (r rights) hearLeft(
	from grid.SiteID, id grid.AttemptID, renewal uint64, left time.Duration,
) {
	j, t := r.jobs.current(from, id)
	if t == nil || !t.active() || r.isAstray(t) {
		return
	}
	before := t.vain
	if !t.hears(renewal, left, j.traits.first, r.run) {
		return
	}
	if end := r.now.Add(r.cfg.latest(left)); t.leaseEnd.After(end) {
		t.leaseEnd = end
		r.setTimer(timerLease, id.String(), end)
	}
	if t.vain > before {
		level := step.LevelDebug // messages get lost
		if t.deaf() {
			level = step.LevelWarn
		}
		r.out.Report(level, eventGrantInVain, step.Report{
			Attempt: id, Site: from, Value: float64(t.vain),
			Text: "the site asks and did not get its lease",
		})
	}
}

// isUnderWay says of attempts whether a site is believed to have them.
func (l *jobs) isUnderWay(site grid.SiteID) func(grid.AttemptID) bool {
	return func(id grid.AttemptID) bool {
		_, t := l.current(site, id)
		return t != nil && t.active()
	}
}
