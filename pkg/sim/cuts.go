package sim

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// link is the way from one site to another.
type link struct{ from, to grid.SiteID }

// Silence lets a site's messages go nowhere, and its data neither; it still
// hears all. Its peers do not see that: its connections stay open.
func (w *World) Silence(id grid.SiteID) { w.hosts[id].silent = true }

// Unsilence ends that.
func (w *World) Unsilence(id grid.SiteID) { w.hosts[id].silent = false }

// Deafen lets nothing arrive at a site; all hear it still. Its connections stay open.
func (w *World) Deafen(id grid.SiteID) { w.hosts[id].deaf = true }

// Undeafen ends that.
func (w *World) Undeafen(id grid.SiteID) { w.hosts[id].deaf = false }

// Cut lets nothing pass from one site to another; the way back stays.
func (w *World) Cut(from, to grid.SiteID) { w.cuts[link{from, to}] = true }

// Mend ends that.
func (w *World) Mend(from, to grid.SiteID) { delete(w.cuts, link{from, to}) }

// Isolate cuts a site off from all others; it runs on.
func (w *World) Isolate(id grid.SiteID) { w.Part([]grid.SiteID{id}) }

// Rejoin ends a site's isolation.
func (w *World) Rejoin(id grid.SiteID) { w.Join([]grid.SiteID{id}) }

// Part cuts some sites off from all others. Among each other they stay connected, and so
// do the others.
func (w *World) Part(ids []grid.SiteID) {
	w.sequence++
	group := int(w.sequence) // a group of its own
	for _, id := range ids {
		w.hosts[id].group = group
	}
	w.schedule(w.silence(), func() {
		for _, id := range ids {
			if w.hosts[id].group == group {
				w.loseTouch(w.hosts[id])
			}
		}
	})
}

// silence returns the time that it takes to notice that a peer says nothing.
func (w *World) silence() time.Duration {
	if w.cfg.Network.Silence == 0 {
		return defaultSilence
	}
	return w.cfg.Network.Silence
}

// loseTouch lets a host and all that are not in its group notice that.
func (w *World) loseTouch(h *host) {
	for _, other := range w.all() {
		if other != h && other.group != h.group {
			w.part(other, h, false)
			w.part(h, other, false)
		}
	}
}

// Join ends a Part for some sites.
func (w *World) Join(ids []grid.SiteID) {
	for _, id := range ids {
		h := w.hosts[id]
		if h.group == 0 {
			continue
		}
		h.group = 0
		w.meet(h)
	}
}

// heal ends all isolation.
func (w *World) heal() { w.Join(w.order) }

// healAll ends everything that keeps messages from any site.
func (w *World) healAll() {
	w.heal()
	clear(w.cuts)
	clear(w.torn)
	w.lookOver()
	for _, id := range w.order {
		w.Unsilence(id)
		w.Undeafen(id)
	}
}

// hears reports whether what a host sends arrives at another one.
func (h *host) hears(from *host) bool {
	way := link{from.spec.ID, h.spec.ID}
	return h == from || h.group == from.group && !h.deaf && !h.world.cuts[way]
}

// reaches finds a host from which data can be had.
func (h *host) reaches(id grid.SiteID) (*host, bool) {
	other, known := h.world.find(id, h)
	if !known || !other.up || other.asleep {
		return nil, false
	}
	if other == h {
		return h, true
	}
	return other, !other.silent && h.hears(other) && other.hears(h)
}

// all lists the hosts: each site's own, and the second one behind it where there is one.
func (w *World) all() []*host {
	all := make([]*host, 0, len(w.order))
	for _, id := range w.order {
		all = append(all, w.hosts[id])
		if t := w.twins[id]; t != nil {
			all = append(all, t)
		}
	}
	return slices.Clip(all)
}
