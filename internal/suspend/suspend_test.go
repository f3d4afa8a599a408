package suspend_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/suspend"
	"github.com/mrsmesh/mrsmesh/internal/suspend/suspendtest"
)

// The machine sleeps when all is done that is to be done before, each time anew.
func TestSleepWaits(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	ctx, end := context.WithCancel(t.Context())
	begun, done := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- suspend.Watch(ctx, func() {
			begun <- struct{}{}
			<-done
		})
	}()
	for range 3 {
		bus.AwaitLocks(t, 1)
		bus.Sleep(t)
		<-begun
		if bus.Held() != 1 {
			t.Error("nothing keeps the machine awake until all is done")
		}
		done <- struct{}{}
		bus.AwaitSleep(t)
		bus.Wake(t)
	}
	bus.AwaitLocks(t, 1)
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
