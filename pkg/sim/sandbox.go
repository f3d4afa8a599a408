package sim

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// forever stands for a time that never ends.
const forever = 1000 * 24 * time.Hour

// Stick lets a site's sandboxes hang: they make no progress, and stopping or
// freezing one is answered only after so long; below 0: never. 0 ends that, and they
// go on.
func (w *World) Stick(id grid.SiteID, answer time.Duration) {
	h := w.hosts[id]
	was := h.stuck != 0
	if answer < 0 {
		answer = forever
	}
	h.stuck = answer
	if h.up && was != (answer != 0) {
		h.stickAttempts()
	}
}

// stickAttempts lets running attempts hang, or hanging ones go on. A host that sleeps does so
// when it wakes.
func (h *host) stickAttempts() {
	if h.asleep {
		h.miss(thunk(h.stickAttempts))
		return
	}
	for _, id := range sortedAttempts(h.attempts) {
		a := h.attempts[id]
		switch {
		case h.stuck != 0 && a.running:
			h.pauseAttempt(a)
			a.hangs = true
		case h.stuck == 0 && a.hangs:
			h.unhang(a)
		}
	}
}

// unhang lets a sandbox that hung go on: it is stopped if that was asked for.
func (h *host) unhang(a *attempt) {
	a.hangs = false
	switch {
	case a.stopping:
		a.generation++
		h.end(a, grid.Exit{Cause: grid.CauseStopped})
	case a.suspended:
		h.later(0, roleSite, step.AttemptFrozen{Attempt: a.id})
	case a.leaseUntil > h.world.elapsed:
		h.resume(a)
	default:
		h.later(0, roleSite, step.AttemptFrozen{Attempt: a.id})
	}
}
