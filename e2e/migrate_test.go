//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const endlessWork = "chain=100000000"

// A user moves a running job: it goes on elsewhere from a state that is new, and no site is blamed.
// One that saves nothing stays, unless it may begin anew. An owner may let it leave, too. It is not
// parallel: beside a job that takes a whole core, a machine with other work has none to offer.
func TestMigrate(t *testing.T) {
	m := newMesh(t, submitOnly, twoCores, twoCores)
	id := m.begin(t, []string{"--checkpoint", "every 10m"}, endlessWork)
	first := m.holder(t, id)
	second := m.migrates(t, id, string(id), first)
	if back := m.migrates(t, id, string(id)+".0", second); back != first {
		t.Errorf("it is at %s, want %s again", back.name, first.name)
	}
	if err := first.client.Leave(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "it leaves", func() bool {
		task := m.tasks(t, id)[0]
		return task.Site != first.id && task.Phase == view.PhaseRunning
	})
	if status, err := first.client.Status(t.Context()); err != nil || !status.Leaving {
		t.Errorf("the status is %+v, %v", status, err)
	}
	m.wantGoesOn(t, id)
	m.submit(t, "cancel", string(id)).want(t, 0)
	if err := first.client.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.staysWithoutAState(t)
	if status, err := m.sites[0].client.Status(t.Context()); err != nil || len(status.Faults) > 0 {
		t.Errorf("faults %+v, %v", status.Faults, err)
	}
	m.audit(t)
	m.replay(t)
}

// migrates moves a job that is named so, and wants that it runs elsewhere from a state. It stays as
// long as its program has not shown that it saves, and while the machine is too busy for another
// site to offer.
func (m *mesh) migrates(t *testing.T, id grid.JobID, name string, from *site) (to *site) {
	t.Helper()
	begun := time.Now()
	var a answer
	eventually(t, patience, "it moves", func() bool {
		a = m.submit(t, "migrate", name)
		return a.code == 0
	})
	t.Logf("moved after %s: %s", time.Since(begun), a.err)
	a.want(t, 0, "moved from")
	if to = m.holder(t, id); to == from {
		t.Errorf("it is at %s still", to.name)
	}
	m.wantGoesOn(t, id)
	return to
}

// staysWithoutAState wants that a program that saves nothing moves only if it may begin anew.
func (m *mesh) staysWithoutAState(t *testing.T) {
	t.Helper()
	id := m.begin(t, nil, "ticks=100000")
	at := m.holder(t, id)
	m.submit(t, "migrate", string(id)).want(t, 1, "stays", "--restart")
	if now := m.holder(t, id); now != at {
		t.Errorf("it is at %s, want %s", now.name, at.name)
	}
	eventually(t, patience, "it moves and begins anew", func() bool {
		a := m.submit(t, "migrate", string(id), "--restart")
		return a.code == 0 && strings.Contains(a.err, "moved from")
	})
	m.submit(t, "cancel", string(id)).want(t, 0)
	m.submit(t, "migrate", string(id)).want(t, 1, "nothing to move")
}

// wantGoesOn wants that the present attempt of a job began with a state.
func (m *mesh) wantGoesOn(t *testing.T, id grid.JobID) {
	t.Helper()
	eventually(t, patience, "it says where it began", func() bool {
		return strings.Contains(m.submit(t, "logs", string(id)).err, "from ")
	})
	if from := wentOnFrom(t, m.submit(t, "logs", string(id)).err); from == 0 {
		t.Error("it began anew")
	}
}
