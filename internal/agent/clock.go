package agent

import (
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// clock is a machine's now: the wall clock at the start plus the time since,
// suspend included. It never steps back, whatever is done to the wall clock,
// and it translates to the clock that supervisors enforce leases by.
type clock struct {
	read func() lrm.BootTime
	wall time.Time
	boot lrm.BootTime
}

func newClock(read func() lrm.BootTime, skew time.Duration) clock {
	if read == nil {
		read = lrm.BootNow
	}
	return clock{read: read, wall: time.Now().Add(skew).UTC().Round(0), boot: read()}
}

func (c clock) now() time.Time { return c.wall.Add(c.read().Sub(c.boot)) }

// continuous is the clock that outlives the agent, on systems where the boot has a name.
func (c clock) continuous(bootID string) step.Clock {
	if bootID == "" {
		return step.Clock{}
	}
	return step.Clock{Of: bootID, Zero: c.wall.Add(-time.Duration(c.boot))}
}

func (c clock) toBoot(t time.Time) lrm.BootTime { return c.boot.Add(t.Sub(c.wall)) }
