package sim

import (
	"cmp"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// run is one start of an agent, as its Hello tells it. The newest run of a site that a host has
// heard of is the site, for the host: messages of an older one are refused, and it is told so;
// what was sent to one run does not reach another.
type run struct{ incarnation, nonce, line uint64 }

// compare orders the runs of a site.
func (r run) compare(other run) int {
	return cmp.Or(cmp.Compare(r.incarnation, other.incarnation), cmp.Compare(r.nonce, other.nonce))
}

// peer is another site as a host knows it.
type peer struct {
	place       int              // in Config.Sites
	run                          // the newest that was heard of
	met         bool             // any run was heard of
	present     bool             // the host's machines believe so
	lastArrival time.Duration    // there, of what was sent to it
	farther     float64          // than other hosts, by that factor; 0: not drawn yet
	lastTaken   [2]time.Duration // by each of its machines, where that was measured; see Lags
}

// peer finds, or makes, what a host knows of another one.
func (h *host) peer(other *host) *peer {
	if h.lately != nil && h.lately.place == other.place {
		return h.lately
	}
	p := h.peers[other.place]
	if p == nil {
		p = &peer{place: other.place}
		h.peers[other.place] = p
	}
	h.lately = p
	return p
}

// knows notes the newest run of another host.
func (p *peer) knows(of run, present bool) { p.run, p.met, p.present = of, true, present }

// drawRun names the run that begins. Its line is the one before, if its state has not moved.
func (h *host) drawRun() {
	if h.disk.line == 0 || h.disk.foreign {
		h.world.lines++
		h.disk.line = h.world.lines
	}
	h.run = run{incarnation: h.disk.incarnation, nonce: h.nonce(), line: h.disk.line}
}

// learns takes a run that another host says it is, by a Hello or with a message, and reports
// whether it is the newest of its site, and whether it is a new one. An older one is told.
func (h *host) learns(from *host, of run) (newest, fresh bool) {
	known := h.peer(from)
	c := of.compare(known.run)
	met := known.met
	if met && c < 0 && !h.world.cfg.NoRuns {
		h.refuse(from, of, known.run)
		return false, false
	}
	if !met || c != 0 {
		if met {
			h.leave(from)
			h.hangUp(from, known.run, of)
		}
		known.knows(of, false)
	}
	return true, met && c != 0
}

// leave lets a host's machines know that another one is gone.
func (h *host) leave(other *host) {
	if known := h.peer(other); known.present {
		known.present = false
		h.tellBoth(step.PeerGone{Site: other.spec.ID, Refusing: true})
	}
}

func (h *host) tellBoth(in step.Input) {
	for _, r := range []role{roleSite, roleBroker} {
		h.step(r, in)
	}
}

// greet lets a host's machines see a run of another one.
func (h *host) greet(other *host, of run) {
	h.peer(other).knows(of, true)
	h.tellBoth(h.sight(other, of))
}

func (h *host) sight(other *host, of run) step.PeerSeen {
	return step.PeerSeen{
		Site: other.spec.ID, Name: string(other.spec.ID), Capability: other.spec.Capability,
		Skew:      h.world.wallOf(other).Sub(h.world.wallOf(h)),
		RoundTrip: 2 * h.world.cfg.Network.Latency, Line: of.line, Owner: other.spec.Owner,
	}
}

// hangUp ends the connection with an older run of a site, which is told why when it connects
// again.
func (h *host) hangUp(from *host, older, newer run) {
	for _, other := range h.world.all() {
		if other != from && other.spec.ID == from.spec.ID && other.run == older {
			h.refuse(other, older, newer)
		}
	}
}

// refuse tells a host that its run is not the newest of its site.
func (h *host) refuse(from *host, of, newer run) {
	w := h.world
	if w.cfg.NoRuns {
		return
	}
	w.trace.Refused++
	w.schedule(w.cfg.Network.Latency, func() {
		if from.up && from.run == of && !from.asleep && from.hears(h) && !h.silent {
			w.supersede(from, newer)
		}
	})
}

// addressed is the run that a host sends to: the one that it knows, or whichever is there.
func (h *host) addressed(to *host) run {
	if known := h.peer(to); known.met {
		return known.run
	}
	return to.run
}

// admits decides whether a message from one run to another reaches a host.
func (h *host) admits(from *host, by, to run) bool {
	if from == h || h.world.cfg.NoRuns {
		return true
	}
	newest, fresh := h.learns(from, by)
	if fresh {
		h.greet(from, by)
	}
	if newest && to != h.run && from.up && from.run == by && from.hears(h) && !h.silent {
		if ok, fresh := from.learns(h, h.run); ok && fresh { // it finds another than it knows
			from.greet(h, h.run)
		}
	}
	return newest && to == h.run
}
