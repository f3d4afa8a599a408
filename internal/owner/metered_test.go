package owner

import (
	"path/filepath"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/suspend/suspendtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// TestNothingWhileDataCostsMoney pauses a site as long as NetworkManager says so. The first answer
// counts before anything is offered.
func TestNothingWhileDataCostsMoney(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	bus.SetMetered(t, 3)
	cfg := Config{Root: t.TempDir(), Rules: yield.DefaultRules(), Unmetered: true}
	w, states := watching(t, cfg)
	<-w.Looked()
	if s := stateWithin(t, states); s.Reason != grid.ReasonOwnerBusy || s.Why != yield.WhyMetered {
		t.Errorf("at first: %+v", s)
	}
	bus.SetMetered(t, 2)
	if s := stateWithin(t, states); s.Reason != grid.ReasonNone {
		t.Errorf("at home again: %+v", s)
	}
	bus.SetMetered(t, 1)
	if s := stateWithin(t, states); s.Why != yield.WhyMetered {
		t.Errorf("on the way again: %+v", s)
	}
	w.Change(Config{Rules: cfg.Rules})
	if s := stateWithin(t, states); s.Reason != grid.ReasonNone {
		t.Errorf("shared anyway: %+v", s)
	}
}

// Where there is no NetworkManager, or no bus, nothing costs money, and nothing is wrong.
func TestNobodyTellsOfMetering(t *testing.T) {
	bus := suspendtest.Start(t)
	for name, address := range map[string]string{
		"no NetworkManager": bus.Address,
		"no bus":            "unix:path=" + filepath.Join(t.TempDir(), "none"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
			w, states := watching(t, Config{
				Root: t.TempDir(), Rules: yield.DefaultRules(), Unmetered: true,
			})
			<-w.Looked()
			if len(states) != 0 {
				t.Errorf("it paused: %+v", <-states)
			}
		})
	}
}
