package owner

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/suspend/suspendtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// stateWithin waits for a state, longer than it may take on a machine that has more to do.
func stateWithin(t *testing.T, states <-chan State) State {
	t.Helper()
	select {
	case s := <-states:
		return s
	case <-time.After(time.Minute):
		t.Fatal("the state does not change")
		return State{}
	}
}

// TestNothingWhileYouAreThere pauses a site while its owner uses keyboard or mouse, and while
// nobody knows.
func TestNothingWhileYouAreThere(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	rules := yield.DefaultRules()
	w, states := watching(t, Config{Root: t.TempDir(), Rules: rules, Input: true})
	s := stateWithin(t, states)
	if s.Reason != grid.ReasonOwnerBusy || s.Why != "owner.input: keyboard or mouse are in use" {
		t.Errorf("at first: %+v", s)
	}
	bus.SetIdle(true)
	if s = stateWithin(t, states); s.Reason != grid.ReasonNone || s.Input != "" {
		t.Errorf("away: %+v", s)
	}
	bus.Leave(t)
	s = stateWithin(t, states)
	if s.Reason != grid.ReasonOwnerBusy || s.Input == "" || !strings.HasSuffix(s.Why, s.Input) {
		t.Errorf("without logind: %+v", s)
	}
	w.Change(Config{Rules: rules})
	if s = stateWithin(t, states); s.Reason != grid.ReasonNone || s.Input != "" {
		t.Errorf("given up: %+v", s)
	}
}

// Without a bus the site pauses and says why.
func TestNobodyTellsOfInput(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	_, states := watching(t, Config{Root: t.TempDir(), Rules: yield.DefaultRules(), Input: true})
	if s := stateWithin(t, states); s.Reason != grid.ReasonOwnerBusy || s.Input == "" {
		t.Errorf("without a bus: %+v", s)
	}
}
