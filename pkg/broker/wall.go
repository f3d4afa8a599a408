package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The machine's clock goes on evenly, whatever is done to the wall clock: leases, margins and
// timers rest on it. Users name times on the wall clock. So do messages about windows, facts,
// and what people are shown; run.ahead leads from one clock to the other.

// wall reads the wall clock in the Step under way.
func (r *run) wall() time.Time { return r.now.Add(r.ahead) }

// onWall turns a time of the machine into one of the wall clock as it stands now.
func (r *run) onWall(t time.Time) time.Time { return onWall(t, r.ahead) }

func onWall(t time.Time, ahead time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(ahead)
}

// wallMS is onWall for a fact, ms since 1970 UTC: the next run begins with the wall clock.
func (r *run) wallMS(t time.Time) int64 { return step.MS(r.onWall(t)) }
