package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// defaultSilence is when a peer that says nothing counts as gone.
const defaultSilence = 10 * time.Second

// meet lets a host and all that it can reach see each other.
func (w *World) meet(h *host) {
	for _, other := range w.all() {
		if other.spec.ID != h.spec.ID && other.up && h.up && other.group == h.group {
			h.introduce(other)
			other.introduce(h)
		}
	}
}

func (h *host) introduce(other *host) {
	of := other.run
	in := h.sight(other, of)
	for _, r := range []role{roleSite, roleBroker} {
		h.after(h.world.delay(), func() {
			if newest, _ := h.learns(other, of); newest {
				h.runs[other.spec.ID] = peer{run: of, present: true}
				h.step(r, in)
			}
		})
	}
}

// part lets a host notice that it has lost another one, unless it knows a newer run of it.
func (w *World) part(h, other *host, refusing bool) {
	known, met := h.runs[other.spec.ID]
	if met && known.run != other.run && !w.cfg.NoRuns {
		return
	}
	h.runs[other.spec.ID] = peer{run: other.run}
	h.tellBoth(step.PeerGone{Site: other.spec.ID, Refusing: refusing})
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
	target, known := w.find(to, h)
	if !known {
		return
	}
	w.messages++
	w.trace.Sent[typeName(msg)]++
	number := w.messages
	w.see(Sight{Kind: SightSent, Site: h.spec.ID, To: to, Number: number, Message: msg})
	if award, is := msg.(protocol.Award); is {
		w.estimates[award.Job], w.submitters[award.Job] = award.Spec.Runtime, h.spec.ID
	}
	encoded, err := protocol.Encode(msg)
	if err != nil {
		w.fail(fmt.Errorf("%s sends %T: %w", h.spec.ID, msg, err))
		return
	}
	if to == h.spec.ID {
		h.deliver(h, 0, number, encoded)
		return
	}
	net := w.cfg.Network
	if h.silent || w.rng.Float64() < net.Loss {
		h.seeLost(target, number)
		return
	}
	h.deliver(target, w.arrival(h, target), number, encoded)
	if w.rng.Float64() < net.Duplicate {
		h.deliver(target, w.delay()*2, 0, encoded)
	}
}

// deliver lets a message arrive after a while. Its number is 0 for a second copy.
func (h *host) deliver(target *host, after time.Duration, number int, encoded []byte) {
	from := h.spec.ID
	life, by, to := target.life, h.run, h.addressed(target)
	var arrive func()
	arrive = func() {
		if !target.up || target.life != life || !target.hears(h) || target.parted {
			h.seeLost(target, number)
			return
		}
		if target.missedBy(arrive) {
			return
		}
		if !target.admits(h, by, to) {
			h.seeLost(target, number)
			return
		}
		msg, err := protocol.Decode(encoded)
		if err != nil {
			h.world.fail(fmt.Errorf("%s sent what cannot be decoded: %w", from, err))
			return
		}
		h.world.trace.heard(target.spec.ID, msg)
		if target.liar != nil && target.liar.hears(from, msg) {
			return
		}
		target.step(roleFor(msg), step.MessageReceived{From: from, Message: msg})
	}
	h.world.schedule(after, arrive)
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

// typeName is the name of a message's type without its package.
func typeName(msg protocol.Message) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", msg), "protocol.")
}

// roleFor tells which of a site's machines a message is for.
func roleFor(msg protocol.Message) role {
	if protocol.ForBroker(msg) {
		return roleBroker
	}
	return roleSite
}
