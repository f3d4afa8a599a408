package agent

import (
	"sync/atomic"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// clock is a machine's now: the wall clock at the start plus the time since,
// suspend included. It never steps back, whatever is done to the wall clock,
// and it translates to the clock that supervisors enforce leases by.
type clock struct {
	read  func() lrm.BootTime
	real  func() time.Time // the wall clock
	wall  time.Time
	boot  lrm.BootTime
	ahead *atomic.Int64 // the wall clock minus now, as far as the machines were told, ns
}

// newClock makes a clock of a boot clock and a wall clock; nil = this system's.
func newClock(read func() lrm.BootTime, wall func() time.Time) clock {
	if read == nil {
		read = lrm.BootNow
	}
	if wall == nil {
		wall = time.Now
	}
	return clock{
		read: read, real: wall, wall: wall().UTC().Round(0), boot: read(), ahead: new(atomic.Int64),
	}
}

func (c clock) now() time.Time { return c.wall.Add(c.read().Sub(c.boot)) }

// shows reads the wall clock, as far as the machines know it.
func (c clock) shows() time.Time { return c.now().Add(time.Duration(c.ahead.Load())) }

// continuous is the clock that outlives the agent, on systems where the boot has a name.
func (c clock) continuous(bootID string) step.Clock {
	if bootID == "" {
		return step.Clock{}
	}
	return step.Clock{Of: bootID, Zero: c.wall.Add(-time.Duration(c.boot))}
}

func (c clock) toBoot(t time.Time) lrm.BootTime { return c.boot.Add(t.Sub(c.wall)) }

const (
	// leastStep is by how much the wall clock differs from what the machines know when it
	// counts as set. Less is called on time, so that no promise depends on it; it is also from
	// where on time daemons set a clock rather than let it run faster for a while.
	leastStep = broker.PromiseTolerance
	// lookEvery is the time between two looks at the clocks, also after a suspend.
	lookEvery = time.Second
	// lookTakes bounds the time between two readings that are compared: this process may have
	// been stopped between them.
	lookTakes = 100 * time.Millisecond
)

// follow reports by how much the wall clock was set since that was asked last, if it was.
func (c clock) follow() (by time.Duration, set bool) {
	before := c.read()
	wall := c.real().Round(0)
	if c.read().Sub(before) > lookTakes {
		return 0, false
	}
	ahead := wall.Sub(c.wall.Add(before.Sub(c.boot)))
	by = (ahead - time.Duration(c.ahead.Load())).Round(time.Millisecond)
	if by.Abs() < leastStep {
		return 0, false
	}
	c.ahead.Add(int64(by))
	return by, true
}

// followClock tells whom it concerns that the wall clock was set, until the agent ends.
func (a *Agent) followClock() {
	beat := time.NewTicker(lookEvery)
	defer beat.Stop()
	for {
		if by, set := a.clock.follow(); set {
			a.log.Warn("the clock of this machine was set; the times of jobs move with it", "by", by)
			a.tellBrokers(step.ClockStepped{By: by})
			a.site.tell(step.ClockStepped{By: by})
			if ends := a.owner.Report().State.Ends; !ends.IsZero() {
				a.tellReturns(ends)
			}
			a.learn()
			a.mesh.Announce()
		}
		select {
		case <-a.ctx.Done():
			return
		case <-beat.C:
		}
	}
}
