//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The owner of a running site gives less than the site has promised. One of two reservations moves
// to a site that has space, long before any lease is over, and the other one stays. When the owner
// of that site does the same nothing can move: both stay where they are, and an owner is told.
func TestAReservationLeavesASiteThatGivesLess(t *testing.T) {
	t.Parallel()
	m := newDomain(t, submitOnly, submitOnly, submitOnly, asideOnly(2), asideOnly(2))
	ids := m.reserveFor(t, 3, time.Now().Add(3*time.Minute).Truncate(time.Second), "10m")
	short := m.largestOf(t, ids, m.sites[3:])
	there := m.heldAt(t, short, ids)
	if len(there) != 2 {
		t.Fatalf("it holds %d", len(there))
	}
	began := time.Now()
	short.command(t, "config", "set", "ceilings.cpus", "1").want(t, 0)
	eventually(t, patience, "one is elsewhere", func() bool {
		return slices.ContainsFunc(there, func(id grid.JobID) bool {
			return m.isHeldElsewhere(t, id, short)
		})
	})
	took := time.Since(began)
	t.Logf("it was elsewhere after %s", took.Round(100*time.Millisecond))
	if limit := 20 * time.Second; took > limit {
		t.Errorf("that took %s, want %s at most", took, limit)
	}
	if n := len(m.heldAt(t, short, ids)); n != 1 {
		t.Errorf("it holds %d, want 1", n)
	}

	other := m.largestOf(t, ids, m.sites[3:])
	both := m.heldAt(t, other, ids)
	if other == short || len(both) != 2 {
		t.Fatalf("%s holds %d", other.name, len(both))
	}
	other.command(t, "config", "set", "ceilings.cpus", "1").want(t, 0)
	eventually(t, patience, "an owner is told", func() bool {
		return slices.ContainsFunc(both, func(id grid.JobID) bool {
			p := m.tasks(t, id)[0].Promise
			return p != nil && strings.Contains(p.Text, "has promised more than it has")
		})
	})
	for _, id := range both {
		if task := m.tasks(t, id)[0]; task.Site != other.id || task.Phase != view.PhaseHeld {
			t.Errorf("%s has left: %+v", id, task)
		}
	}
	m.audit(t)
}
