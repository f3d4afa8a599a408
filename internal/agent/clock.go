package agent

import (
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// clock is a machine's now: the wall clock at the start plus the time since,
// suspend included. It never steps back, whatever is done to the wall clock,
// and it translates to the clock that supervisors enforce leases by.
type clock struct {
	wall time.Time
	boot lrm.BootTime
}

func newClock() clock { return clock{wall: time.Now().UTC().Round(0), boot: lrm.BootNow()} }

func (c clock) now() time.Time { return c.wall.Add(lrm.BootNow().Sub(c.boot)) }

func (c clock) toBoot(t time.Time) lrm.BootTime { return c.boot.Add(t.Sub(c.wall)) }
