package sim

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// nap holds all that a suspended host has missed.
type nap struct {
	asleep  bool
	naps    int      // how often it was suspended
	parted  bool     // it slept for so long that its connections ended
	missed  []action // what comes late, in the order in which it should have come
	stopped []grid.AttemptID
}

// Suspend stops a host, agent and sandboxes, while the true time and its
// clocks go on. What would have happened at it happens when it wakes; what is sent to it
// is kept until its peers notice that it says nothing, and lost after that.
func (w *World) Suspend(id grid.SiteID) {
	h := w.hosts[id]
	if !h.up || h.asleep {
		return
	}
	h.nap = nap{asleep: true, naps: h.naps + 1}
	for _, id := range sortedAttempts(h.attempts) {
		if a := h.attempts[id]; a.running {
			h.pauseAttempt(a)
			h.stopped = append(h.stopped, id)
		}
	}
	naps := h.naps
	w.schedule(w.silence(), func() {
		if h.naps != naps || !h.asleep {
			return
		}
		h.parted = true
		for _, other := range w.all() {
			if other != h && other.group == h.group {
				w.part(other, h, false)
			}
		}
	})
}

// Wake ends Suspend. A sandbox whose lease has ended meanwhile does not run again.
func (w *World) Wake(id grid.SiteID) {
	h := w.hosts[id]
	if !h.asleep {
		return
	}
	missed, stopped, parted := h.missed, h.stopped, h.parted
	h.nap = nap{naps: h.naps}
	for _, id := range stopped {
		h.wakeAttempt(h.attempts[id])
	}
	for _, late := range missed {
		late.do()
	}
	if parted && h.up {
		for _, other := range w.all() {
			if other != h {
				w.part(h, other, false)
			}
		}
		w.meet(h)
	}
}

// wakeAttempt lets a sandbox that was stopped go on, if its lease does, or for as long as
// nobody looks at that.
func (h *host) wakeAttempt(a *attempt) {
	w := h.world
	a.leaseUntil = max(a.leaseUntil, w.elapsed+h.spec.WakeLag)
	if a.leaseUntil > w.elapsed || w.cfg.NoWatchdog {
		h.resume(a)
		return
	}
	h.later(0, roleSite, step.AttemptFrozen{Attempt: a.id})
}

// miss notes what a host that sleeps does when it wakes.
func (h *host) miss(late action) { h.missed = append(h.missed, late) }
