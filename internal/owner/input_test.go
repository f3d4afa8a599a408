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
	t.Setenv("DISPLAY", "")
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
	t.Setenv("DISPLAY", "")
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	_, states := watching(t, Config{Root: t.TempDir(), Rules: yield.DefaultRules(), Input: true})
	if s := stateWithin(t, states); s.Reason != grid.ReasonOwnerBusy || s.Input == "" {
		t.Errorf("without a bus: %+v", s)
	}
}

// Less is given while somebody uses keyboard or mouse, and while nobody knows; by how much less is
// told each time, and the site does not pause.
func TestLessWhileYouAreThere(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DISPLAY", "")
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	told := make(chan yield.Given, 100)
	w, states := watching(t, Config{
		Root: t.TempDir(), Rules: yield.DefaultRules(), InUse: yield.InUse{Cores: 25, Memory: 50},
		Given: func(g yield.Given, until time.Time) {
			if !until.IsZero() {
				t.Errorf("%+v is to end %s, which nobody knows", g, until)
			}
			told <- g
		},
	})
	less := yield.Given{Cores: 25, Memory: 50, InUse: true, ByUse: true}
	all := yield.Given{Cores: 100, Memory: 100}
	given := func(when string, want yield.Given) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s nothing is told", when)
		}
	}
	given("at first", less)
	bus.SetIdle(true)
	given("away", all)
	bus.SetIdle(false)
	given("back", less)
	bus.SetIdle(true)
	given("away again", all)
	bus.Leave(t)
	given("when nobody knows", less)
	if r := w.Report(); r.State.Input == "" || r.State.Reason != grid.ReasonNone {
		t.Errorf("state %+v, want a site that shares, and what is wrong", r.State)
	}
	w.Change(Config{Rules: yield.DefaultRules()})
	given("without limits", all)
	if len(states) != 0 {
		t.Errorf("it paused: %+v", <-states)
	}
}

// With limits on data alone it is asked, too.
func TestLimitsOnDataAskForInput(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DISPLAY", "")
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	told := make(chan yield.Given, 100)
	watching(t, Config{
		Root: t.TempDir(), Rules: yield.DefaultRules(), Asks: true,
		Given: func(g yield.Given, _ time.Time) { told <- g },
	})
	select {
	case got := <-told:
		if want := (yield.Given{Cores: 100, Memory: 100, InUse: true}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing is told")
	}
}
