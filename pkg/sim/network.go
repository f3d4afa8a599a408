package sim

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// defaultSilence is when a peer that says nothing counts as gone.
const defaultSilence = 10 * time.Second

// meet lets a host and all that it can reach see each other.
func (w *World) meet(h *host) {
	for _, id := range w.order {
		other := w.hosts[id]
		if other != h && other.up && h.up && other.group == h.group {
			h.introduce(other)
			other.introduce(h)
		}
	}
}

func (h *host) introduce(other *host) {
	in := step.PeerSeen{
		Site: other.spec.ID, Name: string(other.spec.ID), Capability: other.spec.Capability,
		Skew: other.spec.Skew - h.spec.Skew,
	}
	for _, r := range []role{roleSite, roleBroker} {
		h.later(h.world.delay(), r, in)
	}
}

func (w *World) part(h, other *host, provenDead bool) {
	for _, r := range []role{roleSite, roleBroker} {
		h.step(r, step.PeerGone{Site: other.spec.ID, ProvenDead: provenDead})
	}
}

// Crash kills a site's agent with all its jobs, as SIGKILL does. Its host still
// answers, so that its peers learn of the death for certain.
func (w *World) Crash(id grid.SiteID) {
	h := w.hosts[id]
	if !h.up {
		return
	}
	h.up = false
	h.site, h.broker = nil, nil
	for _, a := range sortedAttempts(h.attempts) {
		w.trace.stopped(a, w.elapsed)
	}
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

// Restart starts a crashed site's agent again, with the facts it had.
func (w *World) Restart(id grid.SiteID) {
	h := w.hosts[id]
	if h.up {
		return
	}
	h.start()
	w.meet(h)
}

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

// Heal ends all isolation.
func (w *World) Heal() {
	for _, id := range w.order {
		if h := w.hosts[id]; h.group != 0 {
			h.group = 0
			w.meet(h)
		}
	}
}

func (h *host) broadcast(msg protocol.Message) {
	for _, id := range h.world.order {
		h.send(id, msg)
	}
}

// send delivers a message to the machine that it is for, through the wire
// format and the network's moods.
func (h *host) send(to grid.SiteID, msg protocol.Message) {
	w := h.world
	target, known := w.hosts[to]
	if !known {
		return
	}
	w.messages++
	encoded, err := protocol.Encode(msg)
	if err != nil {
		w.fail(fmt.Errorf("%s sends %T: %w", h.spec.ID, msg, err))
		return
	}
	if to == h.spec.ID {
		h.deliver(h, 0, encoded)
		return
	}
	net := w.cfg.Network
	if w.rng.Float64() < net.Loss {
		return
	}
	h.deliver(target, w.arrival(h, target), encoded)
	if w.rng.Float64() < net.Duplicate {
		h.deliver(target, w.delay()*2, encoded)
	}
}

func (h *host) deliver(target *host, after time.Duration, encoded []byte) {
	from := h.spec.ID
	life := target.life
	h.world.schedule(after, func() {
		if !target.up || target.life != life || target.group != h.group {
			return
		}
		msg, err := protocol.Decode(encoded)
		if err != nil {
			h.world.fail(fmt.Errorf("%s sent what cannot be decoded: %w", from, err))
			return
		}
		target.step(roleFor(msg), step.MessageReceived{From: from, Message: msg})
	})
}

// delay is one message's way.
func (w *World) delay() time.Duration {
	net := w.cfg.Network
	return net.Latency + time.Duration(w.rng.Float64()*float64(net.Jitter))
}

// arrival keeps the messages between two sites in order, as a stream does,
// unless the network reorders.
func (w *World) arrival(from, to *host) time.Duration {
	net := w.cfg.Network
	if w.rng.Float64() < net.Reorder {
		return w.delay() + time.Duration(w.rng.Float64()*20*float64(net.Latency))
	}
	at := max(w.elapsed+w.delay(), from.lastArrival[to.spec.ID])
	from.lastArrival[to.spec.ID] = at
	return at - w.elapsed
}

// roleFor tells which of a site's machines a message is for.
func roleFor(msg protocol.Message) role {
	if protocol.ForBroker(msg) {
		return roleBroker
	}
	return roleSite
}
