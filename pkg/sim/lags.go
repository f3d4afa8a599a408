package sim

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Lags says how long a machine waits for what it wanted, for a simulation that is to take as
// long as a mesh that was measured. Each function gets a number of chance of its own, uniform in
// [0, 1), which makes a distribution of it; a time below 0 counts as 0. One that is nil leaves
// everything as Network and this package have it.
type Lags struct {
	// Message is from the step that sends a message to the step that receives it, also from a
	// site to itself, in place of Network's Latency, Spread and Jitter. A machine gets another
	// one's messages in the order in which they were sent.
	Message func(from, to grid.SiteID, msg protocol.Message, chance float64) time.Duration
	// Start is from step.StartAttempt to step.AttemptStarted.
	Start func(at grid.SiteID, chance float64) time.Duration
	// Stage and Collect are from these effects to their answers, besides the time that the data
	// is on its way. bytes have to be moved.
	Stage, Collect func(at grid.SiteID, bytes int64, chance float64) time.Duration
}

// startDelay is the time that a sandbox takes to start where nobody has measured it.
const startDelay = 5 * time.Millisecond

// starting is the time that a sandbox takes to start.
func (h *host) starting() time.Duration {
	start := h.world.cfg.Lags.Start
	if start == nil {
		return startDelay
	}
	return max(start(h.spec.ID, h.world.rng.Float64()), 0)
}

// lagging does something after the lag of data that was moved, unless the host crashes before.
func (h *host) lagging(
	lag func(grid.SiteID, int64, float64) time.Duration, bytes int64, do func(),
) func() {
	if lag == nil {
		return do
	}
	return func() { h.after(max(lag(h.spec.ID, bytes, h.world.rng.Float64()), 0), do) }
}

// lagTo is when a message arrives at a host, from now on.
func (h *host) lagTo(to *host, msg protocol.Message) time.Duration {
	w := h.world
	lag := w.cfg.Lags.Message
	switch {
	case lag != nil:
		at := &h.peer(to).lastTaken[roleFor(msg)]
		*at = max(*at, w.elapsed+lag(h.spec.ID, to.spec.ID, msg, w.rng.Float64()), w.elapsed)
		return *at - w.elapsed
	case to == h:
		return 0
	default:
		return w.arrival(h, to)
	}
}
