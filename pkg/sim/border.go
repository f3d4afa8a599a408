package sim

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/border"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// gate is the border's machine on a gateway.
type gate struct {
	*border.Machine

	acts     bool                        // it was told of the links
	seen     map[grid.SiteID]grid.SiteID // which gateway of each neighbour it was told of
	commands map[uint64]uint64           // of orders by those that the broker was given
}

// keepGate boots the border's machine of a gateway.
func (h *host) keepGate() {
	w := h.world
	r := w.realmOf(h.spec.ID)
	h.near = make(map[grid.SiteID]bool)
	if h.border = nil; !h.isGateway() {
		return
	}
	cfg := border.Default(h.spec.ID, r.stands(), r.Name)
	cfg.MaxHops = max(r.Hops, 1)
	if r.Tune != nil {
		r.Tune(&cfg)
	}
	m, err := border.New(cfg)
	if err == nil {
		err = m.Restore(h.disk.border.Encode())
	}
	if err != nil {
		w.fail(fmt.Errorf("border at %s: %w", h.spec.ID, err))
		return
	}
	h.border = &gate{
		Machine: m, acts: r.Deputies == 0, commands: make(map[uint64]uint64),
		seen: make(map[grid.SiteID]grid.SiteID),
	}
	h.stepBorder(h.boot())
	links := step.LinksChanged{}
	if h.border.acts {
		links.Links = w.terms(r)
	}
	h.stepBorder(links)
	h.stepBorder(step.CapacityChanged{Capability: h.spec.Capability})
}

// stepBorder gives the border's machine an input and carries out its effects.
func (h *host) stepBorder(in step.Input) {
	g, w := h.border, h.world
	if g == nil || !h.up || w.failure != nil {
		return
	}
	effects := g.Step(h.now(), in)
	w.steps++
	if !w.cfg.Fast {
		w.hash = step.HashEffects(w.hash, effects)
	}
	dying := h.dying && len(effects) > 0
	if dying {
		effects = h.amid(effects)
	}
	for _, e := range effects { // what is persisted comes before what relies on it
		if h.up && h.border == g {
			h.carryOutBorder(e)
		}
	}
	if dying {
		h.crash(0)
		return
	}
	if err := g.Check(); err != nil {
		w.fail(fmt.Errorf("%s after %T: %w", h.spec.ID, in, err))
	}
	if w.cfg.CheckFacts && string(g.Snapshot()) != string(h.disk.border.Encode()) {
		w.fail(fmt.Errorf("border at %s after %T: snapshot and facts differ", h.spec.ID, in))
	}
}

// amid tells which of some effects are done by a driver that is killed: those up to one that is
// drawn by chance. The facts of a Step are written together.
func (h *host) amid(effects []step.Effect) []step.Effect {
	done := effects[:h.world.rng.IntN(len(effects)+1)]
	isFact := func(e step.Effect) bool { _, is := e.(step.Persist); return is }
	if !slices.ContainsFunc(done, isFact) {
		return done
	}
	rest := slices.DeleteFunc(slices.Clone(effects[len(done):]), func(e step.Effect) bool {
		return !isFact(e)
	})
	return slices.Concat(done, rest)
}

func (h *host) carryOutBorder(e step.Effect) {
	switch e := e.(type) {
	case step.Persist:
		h.disk.border.Apply(e.Fact)
	case step.SendBorder:
		h.sendOver(e)
	case step.SendAs:
		h.sendAs(e)
	case step.Order:
		h.order(e)
	case step.Sign:
		key := h.world.realmOf(h.spec.ID).key()
		in := step.Signed{ID: e.ID, Signature: ed25519.Sign(key, e.Text)}
		h.after(0, func() { h.stepBorder(in) })
	case step.Stage:
		need := e.Inputs
		if e.Module.CID != "" {
			need = append([]grid.Input{e.Module}, need...)
		}
		h.bringOver(e.Attempt, need, e.From, func(problem string) {
			h.stepBorder(step.Staged{Attempt: e.Attempt, Problem: problem})
		})
	case step.Collect:
		var need []grid.Input
		for _, cid := range e.Outputs {
			need = append(need, grid.Input{CID: cid})
		}
		h.bringOver(e.Attempt, need, e.From, func(problem string) {
			h.stepBorder(step.Collected{Attempt: e.Attempt, Problem: problem})
		})
	case step.Discard:
		h.disk.unpin(borderPin(e.Attempt))
	default:
		h.carryOut(roleBorder, e)
	}
}

// borderPin is for whom a gateway keeps data that cross a border.
func borderPin(id grid.AttemptID) string { return "border " + id.String() }

// sendOver sends a message to a neighbour's gateway.
func (h *host) sendOver(e step.SendBorder) {
	w := h.world
	far := w.hosts[cmp.Or(h.border.seen[e.Domain], w.standing(e.Domain).Members[0])]
	raw, err := protocol.Encode(e.Message)
	if err != nil {
		w.fail(fmt.Errorf("border at %s sends %T: %w", h.spec.ID, e.Message, err))
		return
	}
	msg, err := protocol.DecodeBorder(raw)
	if err != nil {
		w.fail(fmt.Errorf("border at %s sent what cannot be decoded: %w", h.spec.ID, err))
		return
	}
	w.messages++
	w.trace.Sent[typeName(msg)]++
	copies := 1
	if w.rng.Float64() < w.cfg.Network.Duplicate {
		copies = 2
	}
	if w.rng.Float64() < w.cfg.Network.Loss {
		copies = 0
	}
	from, life := w.realmOf(h.spec.ID).stands(), far.life
	for range copies {
		w.put(w.arrival(h, far), thunk(func() {
			if far.life == life && w.crosses(h, far) && far.hearsOver(from, h) {
				far.hearBorder(from, msg)
			}
		}))
	}
}

// hearBorder takes what a neighbour's gateway says.
func (h *host) hearBorder(from grid.SiteID, msg protocol.Message) {
	if h.up && h.fraud != nil {
		h.fraud.hears(from, msg)
		return
	}
	h.stepBorder(step.BorderReceived{Domain: from, Message: msg})
}

// hearsOver reports whether a gateway's stream with a neighbour is with that gateway of it.
func (h *host) hearsOver(domain grid.SiteID, far *host) bool {
	return h.border == nil || h.world.realmOf(far.spec.ID).Deputies == 0 ||
		h.border.seen[domain] == far.spec.ID
}

// sendAs sends a message to a member in a neighbour's name.
func (h *host) sendAs(e step.SendAs) {
	w := h.world
	target, known := w.hosts[e.To]
	if !known || !h.together(target) {
		return
	}
	w.messages++
	w.trace.Sent[typeName(e.Message)]++
	msg, whole := (&letter{from: e.As, msg: e.Message}).open(w)
	if !whole || target != h && w.rng.Float64() < w.cfg.Network.Loss {
		return
	}
	life := target.life
	w.put(w.arrival(h, target), thunk(func() {
		if target.life == life && target.gateway() == h &&
			(target == h || target.hears(h) && !h.silent) {
			target.step(roleBroker, step.MessageReceived{From: e.As, Message: msg})
		}
	}))
}

// sendToNeighbour sends what a member says to a neighbour to its gateway.
func (h *host) sendToNeighbour(to grid.SiteID, l *letter) {
	w, g := h.world, h.gateway()
	if g == nil {
		return
	}
	w.messages++
	w.trace.Sent[typeName(l.msg)]++
	w.trace.Abroad++
	msg, whole := l.open(w)
	if !whole || g != h && w.rng.Float64() < w.cfg.Network.Loss {
		return
	}
	life, from := g.life, h.spec.ID
	w.put(w.arrival(h, g), thunk(func() {
		if g.life == life && (g == h || g.hears(h) && !h.silent) {
			g.stepBorder(step.MessageReceived{From: from, To: to, Message: msg})
		}
	}))
}

// order hands an input of the border's machine to the broker of its host.
func (h *host) order(e step.Order) {
	w := h.world
	w.commands++
	number := w.commands
	if e.Command != 0 {
		h.border.commands[number] = e.Command
	}
	in := e.Input
	switch v := in.(type) {
	case step.Submit:
		v.Command, in = number, v
	case step.Probe:
		v.Command, in = number, v
	case step.CancelJob:
		v.Command, in = number, v
	case step.ForgetJob:
		v.Command, in = number, v
	}
	h.after(0, func() { h.step(roleBroker, in) })
}

// replied hands the broker's answer to the border's machine, if it is for that.
func (h *host) replied(e step.Reply) bool {
	if h.border == nil {
		return false
	}
	number, mine := h.border.commands[e.Command]
	if !mine {
		return false
	}
	delete(h.border.commands, e.Command)
	in := step.Replied{Command: number, Job: e.Job}
	if e.Err != nil {
		in.Err = e.Err.Error()
	}
	h.after(0, func() { h.stepBorder(in) })
	return true
}

// tellBorder hands the broker's news to the border's machine.
func (h *host) tellBorder(e step.TellBorder) {
	if first, is := attemptOf(e.News.Ref); is {
		h.world.trace.Ordered[e.News.Job] = first
	}
	h.after(0, func() { h.stepBorder(e.News) })
}

// bringOver moves data to a gateway, from a member or from a neighbour's gateway.
func (h *host) bringOver(
	id grid.AttemptID, need []grid.Input, from grid.SiteID, done func(problem string),
) {
	source := h.holder(from)
	var bytes int64
	for _, in := range need {
		bytes += in.Bytes
	}
	h.transfer(bytes, source, func() {
		other, reached := h.reaches(source)
		if reached && !h.together(other) {
			reached = h.world.crosses(h, other)
		}
		if !reached {
			done("the holder cannot be reached")
			return
		}
		for _, in := range need {
			if _, has := other.disk.has(in.CID); !has {
				done("the holder does not have it")
				return
			}
		}
		for _, in := range need {
			size, _ := other.disk.has(in.CID)
			h.store(in.CID, size)
			h.disk.pin(in.CID, borderPin(id))
		}
		done("")
	})
}

// Links shows the links of a gateway; none while it is down.
func (w *World) Links(gateway grid.SiteID) []border.LinkState {
	if g := w.hosts[gateway].border; g != nil {
		return g.Links()
	}
	return nil
}
