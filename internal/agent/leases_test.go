package agent

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
)

// The submitter's machine grants leases as the owner sets them. Reservations have no shorter ones
// than tasks, and without a setting those of the machine.
func TestLeasesReachTheSubmittersMachine(t *testing.T) {
	t.Parallel()
	c := plans(t, 1)[0]
	standard := broker.Default("here")
	for _, of := range []struct {
		lease, reserved         time.Duration
		wantLease, wantReserved time.Duration
	}{
		{4 * time.Second, 7 * time.Minute, 4 * time.Second, 7 * time.Minute},
		{4 * time.Second, time.Second, 4 * time.Second, 4 * time.Second},
		{0, 0, standard.Lease, standard.ReservationLease},
	} {
		c.Lease, c.Reserved = of.lease, of.reserved
		c.StateDir = t.TempDir()
		a, err := New(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		_, made := a.groups.jobsOf(a.Self()).makeBroker()
		got := made.(broker.Config)
		if got.Lease != of.wantLease || got.ReservationLease != of.wantReserved {
			t.Errorf("set %s and %s: leases of %s, %s of reservations; want %s, %s", of.lease,
				of.reserved, got.Lease, got.ReservationLease, of.wantLease, of.wantReserved)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
