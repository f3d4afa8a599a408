package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// onVacancy handles a site's message that it has capacity for jobs it remembers. The site
// does not know which matter most: jobs that wait here and come before those it names are
// asked for first. One that has not heard that a job is placed is told, and one of an older version
// that has kept what a probe asked for.
func (m *Machine) onVacancy(from grid.SiteID, msg protocol.Vacancy) {
	watched := m.peers.growSpace(from)
	var named []grid.JobID
	for _, id := range msg.Jobs {
		switch j, known := m.jobs.all[id]; {
		case !known:
			if p, is := m.probes[id]; is && p.open == 0 && !watched {
				m.herald.release(p.job, from, protocol.ClearWithdrawn)
			}
		case m.jobs.isAsking(j):
			named = append(named, id)
		case j.placed && j.inPart:
			m.herald.release(j, from, protocol.ClearPlaced)
		}
	}
	for _, id := range m.jobs.inOrder(append(named, m.jobs.higher(named)...)) {
		m.ask(m.jobs.all[id], from)
	}
}

// ask asks one site that has reported capacity, or has just come. While something else is
// under way for the job, the site is remembered.
func (m *Machine) ask(j *job, site grid.SiteID) {
	if j.isPresumed(m.now) || m.jobs.isBlocked(j) || !m.herald.mayAsk(j, site) {
		return
	}
	switch {
	case j.stage != nil:
		j.vacant[site] = true
	case j.traits.whole && j.traits.promise: // it has no time to ask one site after the other
		m.announceAgain(j)
	default:
		m.herald.ask(j, site)
	}
}

// announceAgain asks all sites for a job's waiting tasks, if that makes sense now.
func (m *Machine) announceAgain(j *job) {
	if len(j.waiting) == 0 || j.stage != nil || m.jobs.isBlocked(j) || m.hopeless(j) {
		return
	}
	if j.isPresumed(m.now) {
		return
	}
	if j.isResting(m.now) {
		m.setTimer(timerAgain, string(j.id), j.rest)
		return
	}
	m.herald.announceAgain(j)
}

// isResting reports whether nothing may be started yet.
func (e *enquiry) isResting(now time.Time) bool { return e.rest.After(now) }

// announceInTurn announces a waiting job again, but first the one with the highest
// priority that waits, too.
func (m *Machine) announceInTurn(j *job) {
	if first, is := m.jobs.firstBefore(j); is {
		m.announceAgain(first)
	}
	m.announceAgain(j)
}
