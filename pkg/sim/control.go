package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/domain"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// office is that of the domain's controller: who acts, and the facts that the domain's group
// keeps, over the death of any host. How a group agrees on both is the business of pkg/standby.
type office struct {
	term   uint64      // of the last controller
	acting grid.SiteID // the last one; empty: there never was one
	facts  *step.Facts
}

// controller is the controller's machine on a host that acts, or has not heard that another one
// does: its facts are no longer the group's then.
type controller struct {
	*domain.Machine

	facts *step.Facts
}

// appoint makes a site the domain's controller, with the facts of the one before. Every site that
// it can reach hears of it. The one before goes on if it cannot, as one that is cut off does.
func (w *World) appoint(id grid.SiteID) {
	h := w.hosts[id]
	if !h.up {
		return
	}
	if before := w.office.acting; before != "" && w.hosts[before].group == h.group {
		w.hosts[before].resign()
	}
	facts := step.NewFacts()
	if w.office.facts != nil {
		for _, f := range w.office.facts.All() {
			facts.Apply(f)
		}
	}
	w.office = office{term: w.office.term + 1, acting: id, facts: facts}
	h.control(w.office.term, facts)
	for _, other := range w.all() {
		other.hearOffice()
	}
}

// control boots the controller's machine.
func (h *host) control(term uint64, facts *step.Facts) {
	cfg := domain.Default(h.spec.ID)
	if h.world.cfg.Domain != nil {
		h.world.cfg.Domain(&cfg)
	}
	m, err := domain.New(cfg)
	if err == nil {
		err = m.Restore(facts.Encode())
	}
	if err != nil {
		h.world.fail(fmt.Errorf("controller at %s: %w", h.spec.ID, err))
		return
	}
	h.domain = &controller{Machine: m, facts: facts}
	h.step(roleDomain, step.Boot{Incarnation: term})
	for _, other := range h.world.all() {
		if other != h && other.up && other.group == h.group {
			h.stepDomain(h.sight(other, other.run))
		}
	}
}

// resign ends a controller's machine that hears of a newer one.
func (h *host) resign() {
	h.domain = nil
	for _, id := range sortedTimers(h.timers) {
		if id.role == roleDomain {
			delete(h.timers, id)
		}
	}
}

// stepDomain gives the controller's machine an input and carries out its effects.
func (h *host) stepDomain(in step.Input) {
	d := h.domain
	if d == nil || !h.up || h.world.failure != nil {
		return
	}
	effects := d.Step(h.now(), in)
	h.world.steps++
	if !h.world.cfg.Fast {
		h.world.hash = step.HashEffects(h.world.hash, effects)
	}
	for _, e := range effects {
		if f, is := e.(step.Persist); is {
			d.facts.Apply(f.Fact)
			continue
		}
		if h.up && h.domain == d {
			h.carryOut(roleDomain, e)
		}
	}
	if err := d.Check(); err != nil {
		h.world.fail(fmt.Errorf("controller at %s after %T: %w", h.spec.ID, in, err))
	}
}

// hearOffice lets a host hear who the controller is that it can reach.
func (h *host) hearOffice() {
	o := h.world.office
	if o.acting == "" {
		return
	}
	h.after(h.world.delay(), func() {
		acting := h.world.hosts[o.acting]
		if o.term < h.office || !acting.up || acting.group != h.group ||
			slices.Contains(h.world.cfg.Deaf, h.spec.ID) {
			return
		}
		h.office = o.term
		if h.domain != nil && h.spec.ID != o.acting {
			h.resign()
		}
		h.tellBoth(step.Controller{Site: o.acting, Term: o.term})
	})
}

// controllerAt reads the controller's machine of a site; nil: none runs there.
func (w *World) controllerAt(id grid.SiteID) *domain.Machine {
	if d := w.hosts[id].domain; d != nil {
		return d.Machine
	}
	return nil
}

// succeed makes another site the controller when the one that acts has died: the first of the
// candidates that is there.
func (w *World) succeed(dead grid.SiteID) {
	if w.office.acting != dead {
		return
	}
	term := w.office.term
	w.schedule(w.cfg.Elects, func() {
		if w.office.term != term {
			return
		}
		for _, id := range w.cfg.Controllers {
			if w.hosts[id].up {
				w.appoint(id)
				return
			}
		}
	})
}

// electTime is the time that a group needs to find that its acting member is dead and to agree on
// another one, see docs/performance.md.
const electTime = 3 * time.Second

// elect makes the first candidate the controller.
func (w *World) elect() {
	if w.cfg.Elects == 0 {
		w.cfg.Elects = electTime
	}
	if len(w.cfg.Controllers) > 0 {
		w.appoint(w.cfg.Controllers[0])
	}
}
