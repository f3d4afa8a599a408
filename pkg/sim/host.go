package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// role tells a host's two machines apart.
type role uint8

const (
	roleSite role = iota
	roleBroker
)

// host is one simulated machine with its agent. What survives a crash: facts,
// held data, the incarnation counter.
type host struct {
	world       *World
	spec        SiteSpec
	up          bool
	life        int  // number of this start; events of an earlier one are void
	group       int  // of the partition the host is in
	silent      bool // it takes messages in and lets none out
	dying       bool // its agent is killed in the midst of its next Step
	site        *site.Machine
	broker      *broker.Machine
	facts       [2]*step.Facts
	timers      map[timerID]int // generation of each timer that is set
	generation  int
	attempts    map[grid.AttemptID]*attempt
	held        map[grid.CID]int64
	lastArrival map[grid.SiteID]time.Duration
}

type timerID struct {
	role role
	key  step.TimerKey
}

func newHost(w *World, spec SiteSpec) *host {
	return &host{
		world: w, spec: spec, facts: [2]*step.Facts{step.NewFacts(), step.NewFacts()},
		held: make(map[grid.CID]int64),
	}
}

// start makes the machines, gives them their facts, and boots them.
func (h *host) start() {
	h.up = true
	h.life++
	h.world.see(Sight{Kind: SightUp, Site: h.spec.ID})
	h.timers = make(map[timerID]int)
	h.attempts = make(map[grid.AttemptID]*attempt)
	h.lastArrival = make(map[grid.SiteID]time.Duration)
	siteConfig := site.Default(h.spec.ID, h.spec.Capability)
	brokerConfig := broker.Default(h.spec.ID)
	siteConfig.Seed, brokerConfig.Seed = h.world.cfg.Seed, h.world.cfg.Seed
	brokerConfig.Capability = h.spec.Capability
	if h.spec.Tune != nil {
		h.spec.Tune(&siteConfig, &brokerConfig)
	}
	h.site, h.broker = site.New(siteConfig), broker.New(brokerConfig)
	for r, m := range h.machines() {
		if err := m.Restore(h.facts[r].Encode()); err != nil {
			h.world.fail(fmt.Errorf("%s: restore: %w", h.spec.ID, err))
			return
		}
		h.step(role(r), step.Boot{Incarnation: uint64(h.life)})
	}
	h.step(roleSite, step.HeldChanged{Added: slices.Sorted(maps.Keys(h.held))})
}

func (h *host) machines() [2]step.Machine { return [2]step.Machine{h.site, h.broker} }

// now is the host's own clock.
func (h *host) now() time.Time { return h.world.now().Add(h.spec.Skew) }

// step gives a machine an input and carries out its effects.
func (h *host) step(r role, in step.Input) {
	w := h.world
	if !h.up || w.failure != nil {
		return
	}
	machine := h.machines()[r]
	effects := machine.Step(h.now(), in)
	w.steps++
	w.mix(string(h.spec.ID), fmt.Sprintf("%d %T", r, in), w.elapsed.String())
	w.hash = step.HashEffects(w.hash, effects)
	if h.dying && len(effects) > 0 {
		h.dieAmid(r, effects)
		return
	}
	for _, e := range effects {
		h.carryOut(r, e)
	}
	if w.steps%max(1, w.cfg.CheckEvery) != 0 || !h.up {
		return
	}
	if err := machine.Check(); err != nil {
		w.fail(fmt.Errorf("%s after %T: %w", h.spec.ID, in, err))
	}
	if w.cfg.CheckFacts && !bytes.Equal(machine.Snapshot(), h.facts[r].Encode()) {
		w.fail(fmt.Errorf("%s after %T: snapshot and facts differ", h.spec.ID, in))
	}
}

// later gives an input to a machine after a while, unless the host crashes
// before.
func (h *host) later(after time.Duration, r role, in step.Input) {
	h.after(after, func() { h.step(r, in) })
}

// after does something after a while, unless the host crashes before.
func (h *host) after(d time.Duration, do func()) {
	life := h.life
	h.world.schedule(d, func() {
		if h.up && h.life == life {
			do()
		}
	})
}

func (h *host) carryOut(r role, e step.Effect) {
	switch e := e.(type) {
	case step.Broadcast:
		h.broadcast(e.Message)
	case step.Send:
		h.send(e.To, e.Message)
	case step.SetTimer:
		h.setTimer(timerID{r, e.Key}, e.At)
	case step.StopTimer:
		delete(h.timers, timerID{r, e.Key})
	case step.Persist:
		h.facts[r].Apply(e.Fact)
	case step.Report:
		h.world.trace.report(h, r, e)
		h.world.see(Sight{Kind: SightReported, Site: h.spec.ID, Broker: r == roleBroker, Report: e})
	case step.Reply:
		h.world.replies[e.Command] = e
	case step.Hold:
		h.hold(e)
	default:
		h.carryOutWork(e)
	}
}

func (h *host) carryOutWork(e step.Effect) {
	switch e := e.(type) {
	case step.Stage:
		h.stage(e)
	case step.Verify:
		h.after(0, func() { h.step(roleSite, step.Verified{Attempt: e.Attempt}) })
	case step.StartAttempt:
		h.startAttempt(e)
	case step.ExtendLease:
		h.extendLease(e)
	case step.SuspendAttempt:
		h.suspend(e.Attempt)
	case step.ContinueAttempt:
		h.proceed(e.Attempt)
	case step.StopAttempt:
		h.stopAttempt(e.Attempt)
	case step.Discard:
		h.discard(e)
	case step.Collect:
		h.collect(e)
	}
}

func (h *host) setTimer(id timerID, at time.Time) {
	h.generation++
	generation := h.generation
	h.timers[id] = generation
	h.after(at.Sub(h.now()), func() {
		if h.timers[id] != generation {
			return
		}
		delete(h.timers, id)
		h.step(id.role, step.TimerFired{Key: id.key})
	})
}
