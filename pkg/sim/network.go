package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// defaultSilence is when a peer that says nothing counts as gone.
const defaultSilence = 10 * time.Second

// submits reports whether a host is one of those that others know.
func (w *World) submits(h *host) bool {
	return w.cfg.Submitters == nil || slices.Contains(w.cfg.Submitters, h.spec.ID)
}

// meet lets a host and all that it can reach, and has business with, see each other.
func (w *World) meet(h *host) {
	business := w.submits(h)
	for _, other := range w.all() {
		if other.spec.ID != h.spec.ID && other.up && h.up && other.group == h.group &&
			h.together(other) && (business || w.submits(other)) {
			h.introduce(other)
			other.introduce(h)
		}
	}
	h.hearOffice()
	w.lookOver()
}

func (h *host) introduce(other *host) {
	of := other.run
	in := h.sight(other, of)
	for _, r := range []role{roleSite, roleBroker} {
		h.after(h.world.delay(), func() {
			if newest, _ := h.learns(other, of); newest {
				h.peer(other).knows(of, true)
				h.step(r, in)
				if r == roleBroker {
					h.stepDomain(in)
					h.stepBorder(in)
				}
			}
		})
	}
}

// part lets a host notice that it has lost another one, unless it knows a newer run of it.
func (w *World) part(h, other *host, refusing bool) {
	if len(w.cfg.Realms) > 0 {
		w.lookOver()
	}
	if !h.together(other) {
		return
	}
	known := h.peer(other)
	if known.met && known.run != other.run && !w.cfg.NoRuns {
		return
	}
	known.knows(other.run, false)
	h.tellBoth(step.PeerGone{Site: other.spec.ID, Refusing: refusing})
	h.stepDomain(step.PeerGone{Site: other.spec.ID})
	h.stepBorder(step.PeerGone{Site: other.spec.ID})
}

func (h *host) broadcast(msg protocol.Message) {
	l := &letter{from: h.spec.ID, msg: msg}
	for _, id := range h.world.order {
		h.post(id, l)
	}
}

// send delivers a message to the machine that it is for, through the wire
// format and the network's moods.
func (h *host) send(to grid.SiteID, msg protocol.Message) {
	h.post(to, &letter{from: h.spec.ID, msg: msg})
}

// letter is a message on its way, to one receiver or to many.
type letter struct {
	from grid.SiteID
	msg  protocol.Message
	read protocol.Message // as its receivers see it; nil before the first one does
}

// open gives the message as it is after its way over the wire. All receivers share it: a machine
// changes no message.
func (l *letter) open(w *World) (protocol.Message, bool) {
	if l.read != nil {
		return l.read, true
	}
	if w.cfg.Fast {
		l.read = l.msg
		return l.read, true
	}
	encoded, err := protocol.Encode(l.msg)
	if err != nil {
		w.fail(fmt.Errorf("%s sends %T: %w", l.from, l.msg, err))
		return nil, false
	}
	if l.read, err = protocol.Decode(encoded); err != nil {
		w.fail(fmt.Errorf("%s sent what cannot be decoded: %w", l.from, err))
		return nil, false
	}
	return l.read, true
}

// post sends a letter to one of its receivers.
func (h *host) post(to grid.SiteID, l *letter) {
	w := h.world
	if w.standing(to) != nil {
		h.sendToNeighbour(to, l)
		return
	}
	target, known := w.find(to, h)
	if !known || !h.together(target) {
		return
	}
	w.messages++
	w.trace.Sent[typeName(l.msg)]++
	number := w.messages
	w.see(Sight{Kind: SightSent, Site: h.spec.ID, To: to, Number: number, Message: l.msg})
	if award, is := l.msg.(protocol.Award); is {
		w.estimates[award.Job], w.submitters[award.Job] = award.Spec.Runtime, h.spec.ID
	}
	msg, whole := l.open(w)
	if !whole {
		return
	}
	if to == h.spec.ID {
		h.deliver(h, h.lagTo(h, msg), number, msg)
		return
	}
	net := w.cfg.Network
	if h.silent || w.rng.Float64() < net.Loss {
		h.seeLost(target, number)
		return
	}
	h.deliver(target, h.lagTo(target, msg), number, msg)
	if w.rng.Float64() < net.Duplicate {
		h.deliver(target, w.delay()*2, 0, msg)
	}
}

// deliver lets a message arrive after a while. Its number is 0 for a second copy.
func (h *host) deliver(target *host, after time.Duration, number int, msg protocol.Message) {
	h.world.put(after, &arrival{
		from: h, target: target, life: target.life, by: h.run, to: h.addressed(target),
		number: number, msg: msg,
	})
}

// arrival is a message that comes to a host.
type arrival struct {
	from, target *host
	life         int // of the target when it was sent
	by, to       run // of the sender, and as it knew the target
	number       int
	msg          protocol.Message
}

func (a *arrival) do() {
	h, target := a.from, a.target
	if !target.up || target.life != a.life || !target.hears(h) || target.parted {
		h.seeLost(target, a.number)
		return
	}
	if target.asleep {
		target.miss(a)
		return
	}
	if !target.admits(h, a.by, a.to) {
		h.seeLost(target, a.number)
		return
	}
	from := h.spec.ID
	if !h.world.cfg.Fast {
		h.world.trace.heard(target.spec.ID, a.msg)
	}
	if target.liar != nil && target.liar.hears(from, a.msg) {
		return
	}
	target.step(roleFor(a.msg), step.MessageReceived{From: from, Message: a.msg})
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
	delay := w.delay()
	p := from.peer(to)
	if net.Spread > 0 {
		if p.farther == 0 {
			p.farther = w.farther(from, to)
		}
		delay += time.Duration((p.farther - 1) * float64(net.Latency))
	}
	p.lastArrival = max(w.elapsed+delay, p.lastArrival)
	return p.lastArrival - w.elapsed
}

// farther is by what factor the way between two hosts takes longer than others, the same in both
// directions.
func (w *World) farther(a, b *host) float64 {
	seed := uint64(min(a.place, b.place))<<32 | uint64(max(a.place, b.place))
	chance := rand.New(rand.NewPCG(w.cfg.Seed, seed))
	return math.Exp(w.cfg.Network.Spread * chance.NormFloat64())
}

// typeName is the name of a message's type without its package.
func typeName(msg protocol.Message) string { return reflect.TypeOf(msg).Name() }

// roleFor tells which of a site's machines a message is for.
func roleFor(msg protocol.Message) role {
	switch {
	case protocol.ForBroker(msg):
		return roleBroker
	case protocol.ForController(msg):
		return roleDomain
	default:
		return roleSite
	}
}
