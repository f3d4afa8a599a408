package sim

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Twin starts a second machine with a copy of a site's disk, its identity included, as who
// clones a virtual machine does: its agent notices that its state was on other hardware, and
// the first one's notices nothing. Messages to the site reach one of the two, by chance. Nothing
// happens while no honest member hears the first one and is heard by it: then nobody could know of
// both.
func (w *World) Twin(id grid.SiteID) {
	h := w.hosts[id]
	if w.twins[id] != nil || h.group != 0 || h.silent || h.asleep || !w.hasWitness(h) {
		return
	}
	w.machines++
	t := newHost(w, h.spec)
	t.place = h.place
	t.machine, t.group, t.clock = w.machines, h.group, h.clock
	t.disk = h.disk.copy()
	t.disk.restored++ // its run is another one
	t.disk.foreign = true
	w.twins[id] = t
	t.start()
	w.meet(t)
}

// hasWitness reports whether a host exchanges messages with any other site's.
func (w *World) hasWitness(h *host) bool {
	return slices.ContainsFunc(w.all(), func(o *host) bool {
		return o.spec.ID != h.spec.ID && o.up && !o.asleep && !o.silent && o.hears(h) && h.hears(o)
	})
}

// EndTwin takes the second machine away, or the first one if its agent has ended because of the
// second. If neither goes on, the owner adopts the state of the first one.
func (w *World) EndTwin(id grid.SiteID) {
	t := w.twins[id]
	if t == nil {
		return
	}
	if t.up {
		t.die(0)
	}
	delete(w.twins, id)
	if h := w.hosts[id]; h.stale {
		w.adopt(h)
	}
}

// supersede ends the agent of a host that was told of a newer run of its site.
func (w *World) supersede(h *host, newer run) {
	h.stale, h.disk.incarnation = true, max(h.disk.incarnation, newer.incarnation)
	gone := h.begun(true)
	h.die(0)
	for _, id := range gone {
		h.certify(id)
	}
	id := h.spec.ID
	switch other := w.twins[id]; {
	case w.hosts[id] != h:
	case other == nil:
		w.adopt(h) // what it was told of has been taken away
	case other.up:
		w.hosts[id], w.twins[id] = other, h
	}
}

// adopt lets a host's agent start that was told of a newer run.
func (w *World) adopt(h *host) {
	h.stale = false
	h.disk.restored++
	h.disk.foreign = true
	w.Restart(h.spec.ID)
}

// find is the host that is reached under a site's identity from a host; its own is nearest.
func (w *World) find(id grid.SiteID, from *host) (*host, bool) {
	h, known := w.hosts[id]
	if from != nil && from.spec.ID == id {
		return from, true
	}
	if t := w.twins[id]; t != nil && t.up && (!h.up || w.rng.IntN(2) == 0) {
		h = t
	}
	return h, known
}
