package plan

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// outage is capacity that is missing for some time.
type outage struct {
	missing grid.Resources
	until   time.Time
}

// SetOutage says how much of Total is not there until an instant, in place of what
// was said before; nothing missing ends it.
func (p *Planner) SetOutage(missing grid.Resources, until time.Time) {
	p.outage, p.dirty = outage{missing, until}, true
}

// SetPolicy changes the order in which those that wait move up, and who may overtake
// whom, from the next Advance on.
func (p *Planner) SetPolicy(policy Policy, backfill Backfill) {
	p.config.Policy, p.config.Backfill, p.dirty = policy, backfill, true
}

// Ready says that the inputs of an attempt are here.
func (p *Planner) Ready(now time.Time, attempt grid.AttemptID) {
	p.settle(now)
	if at, known := p.find(attempt); known {
		p.commitments[at].AwaitsData, p.dirty = false, true
	}
}

// EarliestStart is the first place that could be promised, whatever the deadline or
// the fixed start that is asked for.
func (p *Planner) EarliestStart(now time.Time, ask Ask) (Quote, grid.Reason) {
	ask.Window.Deadline, ask.At = time.Time{}, time.Time{}
	return p.Quote(now, ask)
}
