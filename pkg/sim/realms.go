package sim

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/border"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Realm is a domain of a world of several. Members of different ones cannot talk; the gateways of
// those that are linked can.
type Realm struct {
	Name    grid.DomainID
	Members []grid.SiteID // the first one is the gateway
	// Deputies are so many members after the first: the first of all these that is there acts.
	Deputies int
	// Links are the neighbours by their names, with the terms of this side: Domain and Key are
	// filled in. A link holds if both sides name it.
	Links []step.Link
	Hops  uint32 // how many borders its work may cross; 0: one
	// Tune changes the configuration of its gateway; may be nil.
	Tune func(*border.Config)
}

// stands is the site that a domain is taken for by its neighbours.
func (r Realm) stands() grid.SiteID { return grid.SiteID("domain-" + r.Name) }

// key is the domain's own.
func (r Realm) key() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("realm " + r.Name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func (r Realm) public() grid.DomainKey {
	key := r.key()
	return grid.NewDomainKey(key[len(key)-ed25519.PublicKeySize:])
}

// realmOf is the domain of a site; nil: there is one domain only, or the site is of none.
func (w *World) realmOf(id grid.SiteID) *Realm {
	for i := range w.cfg.Realms {
		if slices.Contains(w.cfg.Realms[i].Members, id) {
			return &w.cfg.Realms[i]
		}
	}
	return nil
}

// realm finds a domain by its name; nil: there is none.
func (w *World) realm(name grid.DomainID) *Realm {
	for i := range w.cfg.Realms {
		if w.cfg.Realms[i].Name == name {
			return &w.cfg.Realms[i]
		}
	}
	return nil
}

// standing finds the domain that a site stands for; nil: the site is a real one.
func (w *World) standing(id grid.SiteID) *Realm {
	for i := range w.cfg.Realms {
		if w.cfg.Realms[i].stands() == id {
			return &w.cfg.Realms[i]
		}
	}
	return nil
}

// together reports whether two hosts are of one domain.
func (h *host) together(other *host) bool {
	return len(h.world.cfg.Realms) == 0 ||
		h.world.realmOf(h.spec.ID) == h.world.realmOf(other.spec.ID)
}

// gateways are those of a domain that can be one.
func (w *World) gateways(r *Realm) (all []*host) {
	for _, id := range r.Members[:1+r.Deputies] {
		all = append(all, w.hosts[id])
	}
	return all
}

// isGateway reports whether the host can hold the links of its domain.
func (h *host) isGateway() bool {
	r := h.world.realmOf(h.spec.ID)
	return r != nil && len(r.Links) > 0 && slices.Contains(h.world.gateways(r), h)
}

// meets reports whether two hosts of a domain hear each other.
func (h *host) meets(other *host) bool {
	return h == other || h.up && other.up && h.hears(other) && other.hears(h)
}

// gateway is the host that holds the links of a host's domain, as that one sees it: the first of
// those that can be one, and is there. Nil: there is none.
func (h *host) gateway() *host {
	r := h.world.realmOf(h.spec.ID)
	if r == nil || len(r.Links) == 0 {
		return nil
	}
	all := h.world.gateways(r)
	if r.Deputies == 0 {
		return all[0]
	}
	for _, g := range all {
		if g.up && g.meets(h) && g.acts() {
			return g
		}
	}
	return nil
}

// acts reports whether no gateway is there that is before this one.
func (h *host) acts() bool {
	all := h.world.gateways(h.world.realmOf(h.spec.ID))
	before := all[:slices.Index(all, h)]
	return h.up && !slices.ContainsFunc(before, h.meets)
}

// opposite is the gateway of a neighbour that an acting one is connected with: the first on either
// side that acts and reaches the other. Nil: there is none.
func (h *host) opposite(other *Realm) *host {
	w := h.world
	joined := func(a, b *host) bool { return w.crosses(a, b) && w.crosses(b, a) }
	for _, far := range w.gateways(other) {
		if !far.acts() || !joined(h, far) {
			continue
		}
		for _, own := range w.gateways(w.realmOf(h.spec.ID)) {
			if own.acts() && joined(own, far) {
				if own == h {
					return far
				}
				break
			}
		}
	}
	return nil
}

// terms are the links of a domain as its gateway is told them.
func (w *World) terms(r *Realm) []step.Link {
	var links []step.Link
	for _, l := range r.Links {
		other := w.realm(l.Name)
		if other == nil || !slices.ContainsFunc(other.Links, func(b step.Link) bool {
			return b.Name == r.Name
		}) {
			continue
		}
		l.Domain, l.Key = other.stands(), other.public()
		links = append(links, l)
	}
	slices.SortFunc(links, func(a, b step.Link) int { return cmp.Compare(a.Domain, b.Domain) })
	return links
}

// fence is a border between two domains.
type fence struct{ a, b grid.DomainID }

func fenceOf(a, b grid.DomainID) fence { return fence{min(a, b), max(a, b)} }

// CutBorder ends the connection between the gateways of two domains. They notice as they do of
// other sites.
func (w *World) CutBorder(a, b grid.DomainID) {
	w.torn[fenceOf(a, b)] = true
	w.schedule(w.silence(), w.lookOver)
}

// MendBorder ends that.
func (w *World) MendBorder(a, b grid.DomainID) {
	delete(w.torn, fenceOf(a, b))
	w.schedule(w.delay(), w.lookOver)
}

// crosses reports whether messages pass between the gateways of two domains.
func (w *World) crosses(from, to *host) bool {
	a, b := w.realmOf(from.spec.ID), w.realmOf(to.spec.ID)
	return from.up && to.up && !from.silent && to.hears(from) && !w.torn[fenceOf(a.Name, b.Name)]
}

// lookOver lets all gateways notice which neighbours are there, and all members what their gateway
// says of that.
func (w *World) lookOver() {
	for i := range w.cfg.Realms {
		w.lookFrom(&w.cfg.Realms[i])
	}
}

func (w *World) lookFrom(r *Realm) {
	for _, h := range w.gateways(r) {
		if h.up && h.border != nil {
			h.lookOut(r)
		}
	}
	for _, l := range w.terms(r) {
		for _, id := range r.Members {
			m := w.hosts[id]
			g := m.gateway()
			m.hearOfNeighbour(l, g != nil && g.up && g.meets(m) && g.border != nil &&
				g.border.seen[l.Domain] != "")
		}
	}
}

// lookOut lets a gateway notice whether it acts, and which neighbours are there.
func (h *host) lookOut(r *Realm) {
	w := h.world
	if acts := h.acts(); r.Deputies > 0 && h.border.acts != acts {
		h.border.acts = acts
		h.border.seen = make(map[grid.SiteID]grid.SiteID)
		links := step.LinksChanged{}
		if acts {
			links.Links = w.terms(r)
		}
		h.after(0, func() { h.stepBorder(links) })
	}
	if !h.border.acts {
		return
	}
	for _, l := range w.terms(r) {
		var site grid.SiteID
		if far := h.opposite(w.standing(l.Domain)); far != nil {
			site = far.spec.ID
		}
		before := h.border.seen[l.Domain]
		if before == site {
			continue
		}
		h.border.seen[l.Domain] = site
		if before != "" {
			h.after(0, func() { h.stepBorder(step.NeighbourGone{Domain: l.Domain}) })
		}
		if site != "" {
			in := step.NeighbourSeen{Domain: l.Domain, Name: l.Name, Gateway: site}
			h.after(0, func() { h.stepBorder(in) })
		}
	}
}

// hearOfNeighbour tells a member's submitter's machine what its gateway says of a neighbour.
func (h *host) hearOfNeighbour(l step.Link, there bool) {
	if !h.up || h.near[l.Domain] == there {
		return
	}
	h.near[l.Domain] = there
	var in step.Input = step.PeerGone{Site: l.Domain}
	if there {
		in = step.PeerSeen{
			Site: l.Domain, Name: string(l.Name), Domain: l.Name, Beside: l.Beside,
		}
	}
	h.after(h.world.delay(), func() { h.step(roleBroker, in) })
}

// holder is the site from which data come: what a neighbour holds comes by the gateway.
func (h *host) holder(from grid.SiteID) grid.SiteID {
	r, g := h.world.standing(from), h.gateway()
	switch {
	case r == nil || g == nil:
		return from
	case g == h && h.border != nil && h.border.seen[from] != "": // from its gateway
		return h.border.seen[from]
	default:
		return g.spec.ID
	}
}

// Original is the task that a task of another domain's job really is: the one of the job that its
// user submitted.
func (w *World) original(id grid.TaskID) grid.TaskID {
	for range len(w.cfg.Realms) {
		first, foreign := w.trace.Ordered[id.Job]
		if !foreign {
			return id
		}
		id = first.Task
	}
	return id
}

// attemptOf reads the name of an order of pkg/border.
func attemptOf(ref string) (grid.AttemptID, bool) {
	text, _, _ := strings.Cut(ref, " ")
	id, err := grid.ParseAttemptID(text)
	return id, err == nil
}
