package broker

import (
	"fmt"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// bound reports whether the job runs inside a reservation.
func (j *job) bound() bool { return j.job.Spec.Reservation != "" }

func (j *job) isReservation() bool { return j.job.Spec.Kind == grid.KindReservation }

// checkBinding refuses a job whose reservation cannot serve it.
func (m *Machine) checkBinding(spec grid.Spec) error {
	id := spec.Reservation
	if id == "" {
		return nil
	}
	res, known := m.jobs[id]
	if !known || res.probe || !res.isReservation() {
		return fmt.Errorf("%w: reservation: %s is none that was made here; name one of the reservations of this site", grid.ErrInvalid, id)
	}
	if res.open == 0 {
		return fmt.Errorf("%w: reservation: %s is over; make another one, or submit the job without", grid.ErrInvalid, id)
	}
	holds := res.job.Spec.Need
	holds.MFLOPS = math.MaxInt64 // soft: less of it only takes longer
	if !holds.Fits(spec.Need) {
		return fmt.Errorf("%w: reservation: a place of %s holds less than a task needs (%+v of %+v); ask for less, or reserve more",
			grid.ErrInvalid, id, res.job.Spec.Need, spec.Need)
	}
	return nil
}

// Bound lists the jobs that were submitted to run inside a reservation, in the order
// of their submission, ended ones included.
func (m *Machine) Bound(reservation grid.JobID) []grid.JobID {
	return slices.DeleteFunc(slices.Clone(m.dependants[reservation]), func(id grid.JobID) bool {
		return m.jobs[id].job.Spec.Reservation != reservation
	})
}

// holders lists the sites that hold places of a reservation and can be reached,
// ascending.
func (m *Machine) holders(reservation grid.JobID) []grid.SiteID {
	res, known := m.jobs[reservation]
	if !known {
		return nil
	}
	sites := make(map[grid.SiteID]bool)
	for i := range res.tasks {
		t := &res.tasks[i]
		p, met := m.members[t.site]
		if t.active() && t.phase > grid.PhaseAwarded && (t.site == m.cfg.Self || met && p.connected) {
			sites[t.site] = true
		}
	}
	return sortedSites(sites)
}

// announceBound asks those who hold the job's reservation, and nobody else. While
// nobody does, the job waits.
func (m *Machine) announceBound(j *job) {
	sites := m.holders(j.job.Spec.Reservation)
	if len(sites) == 0 && !j.probe {
		m.waitFor(j, &round{sample: 1, complete: true})
		return
	}
	j.announced = true
	m.openRound(j, sites, true).explain = true
	msg := m.announcement(j)
	for _, site := range sites {
		m.out.Send(site, msg)
	}
	m.startTimers(j)
}

// clearBound tells those who were asked that a bound job needs their offers no more.
func (m *Machine) clearBound(j *job, msg protocol.Clear) {
	asked := make(map[grid.SiteID]bool)
	for _, site := range sortedSites(j.answers) {
		asked[site] = true
	}
	for i := range j.tasks {
		if site := j.tasks[i].site; site != "" {
			asked[site] = true
		}
	}
	for _, site := range sortedSites(asked) {
		m.out.Send(site, msg)
	}
}

// endBound ends a job whose reservation is over. What its sites still run they stop
// themselves, and say so; what was released early is stopped from here.
func (m *Machine) endBound(j *job) {
	res, known := m.jobs[j.job.Spec.Reservation]
	released := known && res.released()
	m.refuseBecause(j, grid.PhaseRefused, m.reservationOver(j), func(t *task) bool {
		return t.phase == grid.PhaseWaiting || released && t.active()
	})
}

// released reports whether a reservation was given up before its time.
func (j *job) released() bool {
	return slices.ContainsFunc(j.tasks, func(t task) bool { return t.phase == grid.PhaseCancelled })
}

// reservationOver says why a bound job cannot be placed any more; empty if it can.
func (m *Machine) reservationOver(j *job) string {
	res, known := m.jobs[j.job.Spec.Reservation]
	switch {
	case !j.bound() || known && res.open > 0:
		return ""
	case known && res.released():
		return fmt.Sprintf("its reservation %s was released", res.id)
	default:
		return fmt.Sprintf("its reservation %s is over", j.job.Spec.Reservation)
	}
}

// hopeless ends what waits in vain: its window or its reservation is over. It reports
// whether nothing waits any more.
func (m *Machine) hopeless(j *job) bool {
	if len(j.waiting) == 0 || j.probe {
		return false
	}
	if why := m.reservationOver(j); why != "" {
		m.refuseBecause(j, grid.PhaseRefused, why, func(t *task) bool { return t.phase == grid.PhaseWaiting })
	}
	return m.expire(j) || len(j.waiting) == 0
}
