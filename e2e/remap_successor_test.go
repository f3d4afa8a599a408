//go:build e2e

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// asideOnly are the settings of a site that is never the controller.
func asideOnly(n int) string { return cores(n) + "controller: {accept: none}\n" }

// awayFromFirst lets another site than the first one be the controller: that is stopped and started
// again.
func (m *mesh) awayFromFirst(t *testing.T) (acting *site) {
	t.Helper()
	if acting = m.awaitController(t, m.sites...); acting != m.sites[0] {
		return acting
	}
	m.sites[0].terminate(t)
	m.awaitController(t, m.sites[1:]...)
	m.sites[0].start(t)
	m.awaitWhole(t)
	return m.awaitController(t, m.sites...)
}

// largestOf is a site that holds most of some reservations.
func (m *mesh) largestOf(t *testing.T, ids []grid.JobID, sites []*site) *site {
	t.Helper()
	return slices.MaxFunc(sites, func(a, b *site) int {
		return len(m.heldAt(t, a, ids)) - len(m.heldAt(t, b, ids))
	})
}

// The controller is no founder, no submitter and no site that holds anything. A site is killed, and
// the controller in the middle of the remapping, when it has taken the site for failed. Another one
// acts in time, and the outcome is the same: of two reservations the one that another site has
// space for is held there when the lease is over, and the owner of the other one was told long
// before.
func TestTheControllerIsKilledWhileReservationsLeave(t *testing.T) {
	t.Parallel()
	m := newDomain(t, submitOnly, submitOnly, submitOnly, asideOnly(2), asideOnly(2), asideOnly(2))
	acting := m.awayFromFirst(t)
	ids := m.reserveFor(t, 5, time.Now().Add(90*time.Second).Truncate(time.Second), "5m")
	victim := m.largestOf(t, ids, m.sites[3:])
	there := m.heldAt(t, victim, ids)
	if len(there) != 2 || acting == victim || acting == m.sites[0] {
		t.Fatalf("%s acts, and %s holds %d", acting.name, victim.name, len(there))
	}
	eventually(t, patience, "the controller knows of all", func() bool {
		return acting.controller(t).Bookings == len(ids)
	})
	killed := time.Now()
	victim.kill(t)
	eventually(t, patience, "the controller takes it for failed", func() bool {
		return len(acting.controller(t).Failed) > 0
	})
	term, began := acting.controller(t).Term, time.Now()
	acting.kill(t)
	rest := slices.DeleteFunc(slices.Clone(m.sites), func(s *site) bool {
		return s == acting || s == victim
	})
	eventually(t, patience, "another one acts", func() bool {
		return slices.ContainsFunc(rest, func(s *site) bool { return s.controller(t).Here })
	})
	wantTimes(t, "another one acts after", []time.Duration{time.Since(began)}, controlledWithin)
	if next := m.awaitController(t, rest...); next.controller(t).Term <= term {
		t.Errorf("it acts in term %d, and before it was %d", next.controller(t).Term, term)
	}
	lacks := func(id grid.JobID) bool { return m.isSaidToLackAPlace(t, id) }
	eventually(t, patience, "it is said that there is no space", func() bool {
		return slices.ContainsFunc(there, lacks)
	})
	said := time.Since(killed)
	eventually(t, 2*patience, "the other one is elsewhere", func() bool {
		return slices.ContainsFunc(there, func(id grid.JobID) bool {
			return m.isHeldElsewhere(t, id, victim)
		})
	})
	t.Logf("after the kill: %s until who has no place was told, %s until the other had moved",
		said.Round(time.Second), time.Since(killed).Round(time.Second))
	if limit := 30 * time.Second; said > limit {
		t.Errorf("it was told after %s, want %s at most", said, limit)
	}
	if n := len(slices.DeleteFunc(there, lacks)); n != 1 {
		t.Errorf("%d have another place, want 1", n)
	}
	m.audit(t)
}
