package owner

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/suspend/suspendtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Where a session's desktop tells logind nothing, its X server does; a film, another session and
// Wayland keep the site from believing it.
func TestAnXServerTellsWhetherYouAreThere(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	server := &xserver{}
	server.start(t)
	mine := suspendtest.Session{Class: "user", Type: "x11", Display: server.display + ".0"}
	bus.SetSessions(mine, suspendtest.Session{Class: "manager"})
	_, states := watching(t, Config{Root: t.TempDir(), Rules: yield.DefaultRules(), Input: true})
	step := func(when string, want grid.Reason, change func()) {
		t.Helper()
		change()
		if s := stateWithin(t, states); s.Reason != want || s.Input != "" {
			t.Errorf("%s: %+v, want %s", when, s, want)
		}
	}
	step("at first", grid.ReasonOwnerBusy, func() {})
	away := func() {
		t.Helper()
		step("away", grid.ReasonNone, func() { bus.SetSessions(mine); server.rest(yield.IdleByX) })
	}
	away()
	step("back", grid.ReasonOwnerBusy, func() { server.rest(0) })
	away()
	step("a film", grid.ReasonOwnerBusy, func() { bus.SetFilm(true) })
	step("after it", grid.ReasonNone, func() { bus.SetFilm(false) })
	step("somebody else", grid.ReasonOwnerBusy, func() {
		bus.SetSessions(mine, suspendtest.Session{Class: "user", Type: "tty"})
	})
	away()
	step("Wayland", grid.ReasonOwnerBusy, func() {
		wayland := mine
		wayland.Type = "wayland"
		bus.SetSessions(wayland)
	})
	away()
	step("a desktop that tells", grid.ReasonOwnerBusy, func() {
		tells := mine
		tells.Since = 1
		bus.SetSessions(tells)
	})
	away()
}

// Without logind it is up to the X server alone, but for Wayland's.
func TestAnXServerAlone(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("the X server of macOS knows of a part of the input only")
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	server := &xserver{}
	server.start(t)
	server.rest(time.Hour)
	cfg := Config{Root: t.TempDir(), Rules: yield.DefaultRules(), Input: true}
	w, states := watching(t, cfg)
	<-w.Looked()
	if len(states) != 0 {
		t.Errorf("it paused: %+v", <-states)
	}
	server.rest(time.Second)
	if s := stateWithin(t, states); s.Reason != grid.ReasonOwnerBusy || s.Input != "" {
		t.Errorf("there: %+v", s)
	}
	t.Setenv("WAYLAND_DISPLAY", "wayland-0")
	server.rest(time.Hour)
	cfg.Root = t.TempDir()
	_, states = watching(t, cfg)
	if s := stateWithin(t, states); s.Reason != grid.ReasonOwnerBusy || s.Input == "" {
		t.Errorf("Wayland: %+v", s)
	}
}

// An X server that hangs pauses the site, which says so.
func TestAnXServerThatHangsPauses(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	server := &xserver{hangs: true}
	server.start(t)
	bus.SetSessions(suspendtest.Session{Class: "user", Type: "x11", Display: server.display})
	_, states := watching(t, Config{Root: t.TempDir(), Rules: yield.DefaultRules(), Input: true})
	s := stateWithin(t, states)
	if s.Reason != grid.ReasonOwnerBusy || !strings.Contains(s.Input, "X server "+server.display) {
		t.Errorf("it hangs: %+v", s)
	}
}
