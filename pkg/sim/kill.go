package sim

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Crash kills a site's agent with all its jobs, as SIGKILL does. Its host still
// answers, so that its peers see the connection refused; its supervisors certify that the
// jobs are dead.
func (w *World) Crash(id grid.SiteID) { w.Kill(id, 0) }

// Kill is Crash where the jobs outlive their agent by up to so long: their supervisors
// still end them with their leases.
func (w *World) Kill(id grid.SiteID, lag time.Duration) {
	if h := w.hosts[id]; h.up {
		h.crash(lag)
	}
}

// crash ends a host's agent, and lets all that can reach the host know.
func (h *host) crash(lag time.Duration) {
	w := h.world
	gone := h.begun(lag == 0)
	h.die(lag)
	for _, id := range gone {
		h.certify(id)
	}
	life := h.life
	for _, other := range w.all() {
		if other.spec.ID == h.spec.ID || other.group != h.group {
			continue
		}
		other.after(w.cfg.Network.Detect, func() {
			if h.life == life && !h.up {
				w.part(other, h, true)
			}
		})
	}
}

// PowerCut takes the power from a site: agent and jobs are gone, nobody answers, and what
// was not synced is lost. Its peers only see that it says nothing any more.
func (w *World) PowerCut(id grid.SiteID) {
	h := w.hosts[id]
	if !h.up {
		return
	}
	h.die(0)
	h.disk.boots++
	h.disk.forgetLoose(w.elapsed)
	life := h.life
	w.schedule(w.silence(), func() {
		for _, other := range w.all() {
			if h.life == life && !h.up && other != h && other.group == h.group {
				w.part(other, h, false)
			}
		}
	})
}

// die ends a host's agent. Its sandboxes follow after the lag.
func (h *host) die(lag time.Duration) {
	w := h.world
	h.up, h.dying, h.silent = false, false, false
	h.nap = nap{naps: h.naps}
	h.site, h.broker, h.domain, h.border = nil, nil, nil, nil
	w.succeed(h.spec.ID)
	if len(w.cfg.Realms) > 0 {
		w.schedule(w.cfg.Network.Detect, w.lookOver)
	}
	for _, id := range sortedAttempts(h.attempts) {
		if a := h.attempts[id]; a.running && lag > 0 {
			h.orphan(a, lag)
			continue
		}
		w.trace.stopped(h, id, w.elapsed)
		h.seeAttempt(SightGone, id)
	}
	w.see(Sight{Kind: SightDown, Site: h.spec.ID})
}

// orphan lets a job run on without its agent, until it ends, its lease does, or its
// supervisor notices.
func (h *host) orphan(a *attempt, lag time.Duration) {
	w := h.world
	h.orphans = append(h.orphans, a)
	until := w.elapsed + min(lag, a.left)
	if !w.cfg.NoWatchdog {
		until = min(until, a.leaseUntil)
	}
	w.schedule(until-w.elapsed, func() { h.bury(a) })
}

// bury ends an orphan.
func (h *host) bury(a *attempt) {
	i := slices.Index(h.orphans, a)
	if i < 0 {
		return
	}
	h.orphans = slices.Delete(h.orphans, i, i+1)
	h.world.trace.stopped(h, a.id, h.world.elapsed)
	h.seeAttempt(SightGone, a.id)
	h.certify(a.id)
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
		if h.up { // else a fact could not be written
			h.carryOut(r, e)
		}
	}
	h.crash(0)
}

// Restart starts a crashed site's agent again, with the facts it had. One that
// was to die in its next Step and has made none lives on.
func (w *World) Restart(id grid.SiteID) {
	h := w.hosts[id]
	h.dying = false
	if h.up || h.stale || h.disk.broken {
		return
	}
	h.start()
	w.meet(h)
}
