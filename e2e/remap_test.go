//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// cores are the settings of a site that gives so many.
func cores(n int) string {
	return fmt.Sprintf("ceilings: {cpus: %d, memory: 1GiB, disk: 1GiB, gflops: %d}\n", n, 4*n)
}

// reserve makes reservations of one core for 15 s that open at the same time.
func (m *mesh) reserve(t *testing.T, n int, at time.Time) (ids []grid.JobID) {
	t.Helper()
	return m.reserveFor(t, n, at, "15s")
}

// reserveFor makes reservations of one core that open at the same time. Where little is free one
// may be refused while offers are held for the one before.
func (m *mesh) reserveFor(t *testing.T, n int, at time.Time, lasts string) (ids []grid.JobID) {
	t.Helper()
	for range n {
		eventually(t, patience, "it is promised", func() bool {
			said := m.submit(t, "reserve", "--parsable", "--at", stamp(at), "--for", lasts,
				"--cpus", "1", "--memory", "16MiB")
			if said.code == 0 {
				ids = append(ids, fresh(t, said))
			}
			return said.code == 0
		})
	}
	return ids
}

// release gives some back that others than a site hold.
func (m *mesh) release(t *testing.T, ids []grid.JobID, n int, not *site) (rest []grid.JobID) {
	t.Helper()
	for _, id := range ids {
		if n > 0 && m.heldBy(t, id) != not {
			m.submit(t, "release", string(id)).want(t, 0)
			n--
		} else {
			rest = append(rest, id)
		}
	}
	return rest
}

// heldAt lists the reservations that a site holds.
func (m *mesh) heldAt(t *testing.T, s *site, ids []grid.JobID) (held []grid.JobID) {
	t.Helper()
	for _, id := range ids {
		if m.tasks(t, id)[0].Site == s.id {
			held = append(held, id)
		}
	}
	return held
}

// isHeldElsewhere reports whether another site than that one holds a reservation.
func (m *mesh) isHeldElsewhere(t *testing.T, id grid.JobID, than *site) bool {
	t.Helper()
	task := m.tasks(t, id)[0]
	return task.Phase == view.PhaseHeld && task.Site != than.id
}

// isSaidToLackAPlace reports whether the owner of a reservation knows that no site can hold it.
func (m *mesh) isSaidToLackAPlace(t *testing.T, id grid.JobID) bool {
	t.Helper()
	task := m.tasks(t, id)[0]
	return task.Phase == view.PhaseWaiting && task.Promise != nil && task.Promise.Text != ""
}

// Forty reservations at eight sites of sixteen cores, of which the largest has four. It is killed,
// and so is the controller if it is another site. What starts soon and has space leaves before its
// start, the owners of the rest know by then, and what starts later stays. The site returns: what
// stayed is there, as if nothing had been.
func TestReservationsLeaveASiteThatIsKilled(t *testing.T) {
	t.Parallel()
	m := newDomain(t, submitOnly, cores(4), cores(1), cores(1), cores(2), cores(2), cores(2),
		cores(2), cores(2))
	largest := m.sites[1]
	first := time.Now().Add(100 * time.Second).Truncate(time.Second)
	next, later := first.Add(20*time.Second), first.Add(45*time.Second)
	full := m.reserve(t, 14, first) // two more than the others have space for
	some := m.release(t, m.reserve(t, 14, next), 2, largest)
	more := m.reserve(t, 14, later)
	lost, moves, stays := m.heldAt(t, largest, full), m.heldAt(t, largest, some),
		m.heldAt(t, largest, more)
	if len(lost) != 2 || len(moves) != 2 || len(stays) != 2 {
		t.Fatalf("the largest site holds %d, %d and %d", len(lost), len(moves), len(stays))
	}
	acting := m.awaitController(t, m.sites...)
	killed := time.Now()
	largest.kill(t)
	if acting != largest && acting != m.sites[0] {
		acting.kill(t)
		acting.start(t)
	}
	for _, id := range lost {
		eventually(t, 2*patience, "it is said that there is no space", func() bool {
			return m.isSaidToLackAPlace(t, id)
		})
	}
	said := time.Now()
	for _, id := range moves {
		eventually(t, 2*patience, "what has space is elsewhere", func() bool {
			return m.isHeldElsewhere(t, id, largest)
		})
	}
	t.Logf("after the kill: %s until all without a place were told, %s until the others had moved",
		said.Sub(killed).Round(time.Second), time.Since(killed).Round(time.Second))
	if said.After(first) || time.Now().After(next) {
		t.Error("that was after their start")
	}
	eventually(t, 2*patience, "the first ones open", func() bool { return time.Now().After(first) })
	for _, id := range stays {
		if task := m.tasks(t, id)[0]; task.Site != largest.id || task.Token != 1 {
			t.Errorf("%s has left: %+v", id, task)
		}
	}
	largest.start(t)
	for _, wave := range []struct {
		ids []grid.JobID
		at  time.Time
	}{{full, first}, {some, next}, {more, later}} {
		for _, id := range wave.ids {
			eventually(t, 2*patience, "it is over", func() bool {
				return m.job(t, id).Phase.Ended()
			})
			if m.job(t, id).Phase == view.PhaseLost && slices.Contains(lost, id) {
				continue
			}
			m.awaitPhase(t, id, view.PhaseOver)
			m.wantPunctual(t, id, wave.at)
		}
	}
	for _, id := range stays {
		if n := m.tasks(t, id)[0].Token; n != 1 {
			t.Errorf("%s was to stay, and was awarded %d times", id, n)
		}
	}
	m.audit(t)
}
