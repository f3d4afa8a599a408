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

// gateway is the host that holds the links of a host's domain; nil: it has none.
func (h *host) gateway() *host {
	if r := h.world.realmOf(h.spec.ID); r != nil && len(r.Links) > 0 {
		return h.world.hosts[r.Members[0]]
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
	h := w.hosts[r.Members[0]]
	for _, l := range w.terms(r) {
		other := w.standing(l.Domain)
		far := w.hosts[other.Members[0]]
		there := w.crosses(h, far) && w.crosses(far, h)
		if h.up && h.border != nil && h.border.seen[l.Domain] != there {
			h.border.seen[l.Domain] = there
			var in step.Input = step.NeighbourGone{Domain: l.Domain}
			if there {
				in = step.NeighbourSeen{Domain: l.Domain, Name: l.Name}
			}
			h.after(0, func() { h.stepBorder(in) })
		}
		for _, id := range r.Members {
			m := w.hosts[id]
			m.hearOfNeighbour(l, there && h.up && (m == h || m.hears(h) && h.hears(m)))
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
	case g == h: // from its gateway
		return r.Members[0]
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
