package agent

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// tellSite tells the site's machine something. For it an owner is there while somebody acts for
// the owner.
func (a *Agent) tellSite(in step.Input) {
	switch in := in.(type) {
	case step.PeerSeen:
		a.heeding.seen(in)
	case step.PeerGone:
		a.heeding.gone(in)
	default:
		a.site.tell(in)
	}
}

// seen takes it that a site is connected, or said something new of itself. The owners for whom it
// acts are there with it: the machine reminds them of their attempts.
func (h *heeding) seen(in step.PeerSeen) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, before := h.here[in.Site]
	h.here[in.Site] = in
	delete(h.lines, in.Site)
	if in.Site == h.post.now.Site {
		h.post.gone = time.Time{}
	}
	h.show(in)
	if before {
		return
	}
	for _, owner := range h.actedFor(in.Site) {
		if owner != in.Site {
			h.show(h.standIn(owner, in.Site))
		}
	}
}

// gone takes it that a site's connection was lost. An owner for whom another one acts that is
// connected is there nevertheless.
func (h *heeding) gone(in step.PeerGone) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.register.Grouped(in.Site) {
		h.lines[in.Site] = h.here[in.Site].Line
	}
	delete(h.here, in.Site)
	if in.Site == h.post.now.Site {
		h.post.gone = h.now()
	}
	if !h.standsIn(h.register.Acting(in.Site), in.Site) {
		h.hide(in)
	}
	for _, owner := range h.actedFor(in.Site) {
		if _, connected := h.here[owner]; !connected {
			h.hide(step.PeerGone{Site: owner, Refusing: in.Refusing})
		}
	}
}

// standsIn reports whether a site that acts for an owner is another one, and connected.
func (h *heeding) standsIn(acting, owner grid.SiteID) bool {
	_, connected := h.here[acting]
	return acting != owner && acting != "" && (connected || acting == h.self)
}

// began takes it that a site begins to act for an owner: for the machine the owner is there anew,
// so that it is told how its attempts go and what has ended. h.mu is held.
func (h *heeding) began(owner, acting grid.SiteID) {
	if owner == h.self {
		h.tell(h.standIn(owner, acting))
		return
	}
	h.hide(step.PeerGone{Site: owner})
	if _, connected := h.here[acting]; connected || acting == h.self {
		h.show(h.standIn(owner, acting)) // else when it comes
	}
}

// standIn describes an owner for whom a site acts: as the owner describes itself, if it is
// connected, else as the site does, in the owner's last line of runs. h.mu is held.
func (h *heeding) standIn(owner, acting grid.SiteID) step.PeerSeen {
	if in, connected := h.here[owner]; connected {
		return in
	}
	in := h.here[acting]
	in.Site, in.Line = owner, h.lines[owner]
	return in
}

// show tells the machine that a site is there; h.mu is held.
func (h *heeding) show(in step.PeerSeen) {
	h.shown[in.Site] = true
	h.tell(in)
}

// hide tells the machine that a site is gone, if it takes it for connected; h.mu is held.
func (h *heeding) hide(in step.PeerGone) {
	if h.shown[in.Site] {
		delete(h.shown, in.Site)
		h.tell(in)
	}
}
