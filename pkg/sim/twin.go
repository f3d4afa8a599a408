package sim

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// Twin starts a second machine with a copy of a site's disk, its identity included, as who
// clones a virtual machine does. Messages to the site reach one of the two, by chance.
func (w *World) Twin(id grid.SiteID) {
	h := w.hosts[id]
	if w.twins[id] != nil {
		return
	}
	t := newHost(w, h.spec)
	t.twin, t.group, t.clock = true, h.group, h.clock
	t.disk = h.disk.copy()
	t.disk.restored++ // its run is another one
	t.disk.foreign = true
	w.twins[id] = t
	t.start()
	w.meet(t)
}

// EndTwin stops the second machine. Nobody notices, for the first one answers.
func (w *World) EndTwin(id grid.SiteID) {
	t := w.twins[id]
	if t == nil {
		return
	}
	if t.up {
		t.die(0)
	}
	delete(w.twins, id)
}

// find is the host that is reached under a site's identity from a host; its own is nearest.
func (w *World) find(id grid.SiteID, from *host) (*host, bool) {
	h, known := w.hosts[id]
	if from != nil && from.spec.ID == id {
		return from, true
	}
	if t := w.twins[id]; t != nil && (!h.up || w.rng.IntN(2) == 0) {
		h = t
	}
	return h, known
}
