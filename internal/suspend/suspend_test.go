package suspend_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/suspend"
	"github.com/mrsmesh/mrsmesh/internal/suspend/suspendtest"
)

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in time: ", what)
		}
	}
}

// The machine sleeps when all is done that is to be done before, each time anew.
func TestSleepWaits(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	ctx, end := context.WithCancel(t.Context())
	const took = 50 * time.Millisecond
	calls, ended := make(chan struct{}, 9), make(chan error, 1)
	go func() {
		ended <- suspend.Watch(ctx, func() {
			time.Sleep(took) // what is to be done
			calls <- struct{}{}
		})
	}()
	for n := range 3 {
		eventually(t, "a lock is held", func() bool { return bus.Locks() == 1 })
		if waited := bus.Sleep(t); waited < took || len(calls) != n+1 {
			t.Errorf("it sleeps after %s, with %d calls before", waited, len(calls))
		}
		if bus.Locks() != 0 {
			t.Error("a lock is held by who sleeps")
		}
		bus.Wake(t)
	}
	eventually(t, "a lock is held", func() bool { return bus.Locks() == 1 })
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Where there is no bus, or no logind on it, the error says so.
func TestNobodyTellsOfSleep(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	err := suspend.Watch(t.Context(), func() { t.Error("it sleeps") })
	if err == nil || !strings.HasPrefix(err.Error(), "watch for sleep: ") {
		t.Errorf("without a bus: %v", err)
	}
	bus := suspendtest.Start(t)
	bus.Leave(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	err = suspend.Watch(t.Context(), func() { t.Error("it sleeps") })
	if err == nil || !strings.Contains(err.Error(), "org.freedesktop.login1") {
		t.Errorf("without logind: %v", err)
	}
}
