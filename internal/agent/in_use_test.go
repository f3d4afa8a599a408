package agent_test

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/suspend/suspendtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// While somebody uses the machine half of the cores are given, and the task on the other half is
// suspended until nobody does.
func TestLessWhileSomebodyIsThere(t *testing.T) {
	bus := suspendtest.Start(t)
	bus.SetIdle(true)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	c := agent.Plans(t, 2)[1] // the first one gives next to nothing
	c.Owner.InUse = agent.InUse{InUse: yield.InUse{Cores: 50}, UploadBps: 1e6}
	one := start(t, c)
	cores := int(c.Capability.Total.MilliCPUs / 1000)
	var ids []grid.TaskID
	for range cores {
		ids = append(ids, one.submit(t, one.job(t, "run=60s")))
	}
	one.awaitRunning(t, ids, cores)
	bus.SetIdle(false)
	one.awaitRunning(t, ids, cores/2)
	status, err := one.Status(t.Context())
	if o := status.Owner; err != nil || o == nil || o.Share != 50 || !o.InUse || o.Busy {
		t.Errorf("status %+v, %v; want half of the cores, and that somebody is there", o, err)
	}
	bus.SetIdle(true)
	one.awaitRunning(t, ids, cores)
}
