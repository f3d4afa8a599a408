package sim

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Crash kills a site's agent with all its jobs, as SIGKILL does. Its host still
// answers, so that its peers learn of the death for certain.
func (w *World) Crash(id grid.SiteID) {
	h := w.hosts[id]
	if !h.up {
		return
	}
	h.up, h.dying, h.silent = false, false, false
	h.site, h.broker = nil, nil
	for _, a := range sortedAttempts(h.attempts) {
		w.trace.stopped(a, w.elapsed)
		h.seeAttempt(SightGone, a)
	}
	w.see(Sight{Kind: SightDown, Site: id})
	life := h.life
	for _, other := range w.order {
		if other == id || w.hosts[other].group != h.group {
			continue
		}
		w.hosts[other].after(w.cfg.Network.Detect, func() {
			if h.life == life && !h.up {
				w.part(w.hosts[other], h, true)
			}
		})
	}
}

// CrashInStep kills a site's agent in the midst of the next Step of one of its
// machines that has effects: after it has thought, before all is done.
func (w *World) CrashInStep(id grid.SiteID) {
	h := w.hosts[id]
	h.dying = h.up
}

// dieAmid carries out what a driver that is killed may have carried out by then:
// the effects up to one that is drawn by chance, in their order. The facts of a
// Step are written together, before anything that comes behind the first of
// them.
func (h *host) dieAmid(r role, effects []step.Effect) {
	facts := make([]step.Effect, 0, len(effects))
	rest := make([]step.Effect, 0, len(effects))
	first := len(effects) // place of the first fact among the rest
	for _, e := range effects {
		if _, isFact := e.(step.Persist); !isFact {
			rest = append(rest, e)
			continue
		}
		facts = append(facts, e)
		first = min(first, len(rest))
	}
	done := h.world.rng.IntN(len(rest) + 1)
	if done <= first && h.world.rng.IntN(2) == 0 {
		facts = nil
	}
	for _, e := range slices.Concat(facts, rest[:done]) {
		h.carryOut(r, e)
	}
	h.world.Crash(h.spec.ID)
}

// Restart starts a crashed site's agent again, with the facts it had. One that
// was to die in its next Step and has made none lives on.
func (w *World) Restart(id grid.SiteID) {
	h := w.hosts[id]
	h.dying = false
	if h.up {
		return
	}
	h.start()
	w.meet(h)
}

// Silence lets a site's messages go nowhere, and its data neither; it still
// hears all. Its peers do not see that: its connections stay open.
func (w *World) Silence(id grid.SiteID) { w.hosts[id].silent = true }

// Unsilence ends that.
func (w *World) Unsilence(id grid.SiteID) { w.hosts[id].silent = false }

// Isolate cuts a site off from all others; it runs on.
func (w *World) Isolate(id grid.SiteID) {
	h := w.hosts[id]
	w.sequence++
	h.group = int(w.sequence) // a group of its own
	group := h.group
	silence := w.cfg.Network.Silence
	if silence == 0 {
		silence = defaultSilence
	}
	w.schedule(silence, func() {
		if h.group != group {
			return
		}
		for _, other := range w.order {
			if other != id {
				w.part(w.hosts[other], h, false)
				w.part(h, w.hosts[other], false)
			}
		}
	})
}

// Rejoin ends a site's isolation.
func (w *World) Rejoin(id grid.SiteID) {
	if h := w.hosts[id]; h.group != 0 {
		h.group = 0
		w.meet(h)
	}
}

// Heal ends all isolation.
func (w *World) Heal() {
	for _, id := range w.order {
		w.Rejoin(id)
	}
}
