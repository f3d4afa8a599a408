package sim

import (
	"bytes"
	"cmp"
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
	roleDomain // on the host that is the controller of the domain
	roleBorder // on the gateway of a domain that has neighbours
)

// host is one simulated machine with its agent. What survives a crash: its clock and
// what is on its disk.
type host struct {
	world      *World
	spec       SiteSpec
	place      int  // in Config.Sites
	machine    int  // 0: the site's own; from 1: another one with its identity
	stale      bool // its agent was told of a newer run of its site, and does not start any more
	up         bool
	life       int  // number of this start; events of an earlier one are void
	group      int  // of the partition the host is in
	silent     bool // it takes messages in and lets none out
	deaf       bool // it lets messages out and takes none in
	dying      bool // its agent is killed in the midst of its next Step
	site       *site.Machine
	broker     *broker.Machine
	domain     *controller          // nil: it is not the controller
	border     *gate                // nil: it is no gateway
	near       map[grid.SiteID]bool // neighbouring domains, as its submitter's machine was told
	office     uint64               // term of the last controller that it has heard of
	clock      clock
	disk       disk
	timers     map[timerID]timer
	generation int
	attempts   map[grid.AttemptID]*attempt
	orphans    []*attempt                       // that outlived their agent
	bases      map[grid.AttemptID]time.Duration // run time in the states that were laid out
	coming     map[grid.CID][]func()            // who waits for data on its way, see bring
	run        run                              // of its agent
	peers      map[int]*peer                    // by their place in Config.Sites
	lately     *peer                            // the last one that was looked for
	nap
	inboxes [2]inbox
	unread  [2]bool       // facts were written since they were compared with the machine's
	quiet   [2]int        // steps since a machine was checked; a loud one counts as CheckQuiet
	batch   time.Duration // between two looks at the inboxes; 0: none waits
	stuck   time.Duration // until a sandbox that hangs answers; 0: none hangs
	liar    *liar         // nil: the site is honest
	fraud   *fraud        // nil: it is honest to neighbouring domains, or no gateway
	errs    float64       // the part of its results that is wrong
	// accomplice numbers those that give the same wrong results; 0: nobody else does.
	accomplice uint64
	starved    [2]bool // what the machines were told of the disk's space
}

type timerID struct {
	role role
	key  step.TimerKey
}

// timer is one that is set. One that is set anew has another generation.
type timer struct {
	generation int
	at         time.Time
}

func newHost(w *World, spec SiteSpec) *host {
	return &host{world: w, spec: spec, disk: newDisk(), clock: clock{wall: spec.Skew}}
}

// start makes the machines, gives them their facts, and boots them.
func (h *host) start() {
	h.up = true
	h.life++
	h.disk.incarnation++
	h.clock.begun = h.clock.wall
	for len(h.orphans) > 0 {
		h.bury(h.orphans[0])
	}
	h.world.see(Sight{Kind: SightUp, Site: h.spec.ID})
	h.timers, h.inboxes = make(map[timerID]timer), [2]inbox{}
	h.unread, h.quiet = [2]bool{true, true}, [2]int{}
	h.starved = [2]bool{}
	h.attempts, h.coming = make(map[grid.AttemptID]*attempt), make(map[grid.CID][]func())
	h.bases = make(map[grid.AttemptID]time.Duration)
	h.peers, h.lately = make(map[int]*peer), nil
	h.domain, h.office = nil, 0
	h.drawRun()
	siteConfig := site.Default(h.spec.ID, h.spec.Capability)
	brokerConfig := broker.Default(h.spec.ID)
	seed := h.world.cfg.Seed + h.disk.restored<<32 // a state that was used before gives no name twice
	siteConfig.Seed, brokerConfig.Seed = seed, seed
	brokerConfig.Capability = h.spec.Capability
	if h.spec.Tune != nil {
		h.spec.Tune(&siteConfig, &brokerConfig)
	}
	h.site, h.broker = site.New(siteConfig), broker.New(brokerConfig)
	for r, m := range h.machines() {
		if err := m.Restore(h.disk.facts[r].Encode()); err != nil {
			h.world.fail(fmt.Errorf("%s: restore: %w", h.spec.ID, err))
			return
		}
		h.step(role(r), h.boot())
	}
	h.keepGate()
	h.tellSpace()
	h.disk.foreign = false
	h.sweep()
	h.step(roleSite, step.HeldChanged{Added: slices.Sorted(maps.Keys(h.disk.held))})
}

func (h *host) machines() [2]step.Machine { return [2]step.Machine{h.site, h.broker} }

// step gives a machine an input and carries out its effects, or lets it wait for what is
// before it.
func (h *host) step(r role, in step.Input) {
	if !h.up || h.world.failure != nil {
		return
	}
	if h.asleep {
		h.miss(thunk(func() { h.step(r, in) }))
		return
	}
	switch r {
	case roleDomain:
		h.stepDomain(in)
		return
	case roleBorder:
		h.stepBorder(in)
		return
	case roleSite, roleBroker:
	}
	if h.holdsBack(r) {
		h.enqueue(r, in)
		return
	}
	effects := h.think(r, in)
	if h.dying && len(effects) > 0 {
		h.dieAmid(r, effects)
		return
	}
	for _, e := range effects {
		if h.up {
			h.carryOut(r, e)
		}
	}
	if h.up {
		h.judge(r, in)
	}
}

// think is a machine's Step.
func (h *host) think(r role, in step.Input) []step.Effect {
	w := h.world
	effects := h.machines()[r].Step(h.now(), in)
	w.steps++
	if h.quiet[r]++; slices.ContainsFunc(effects, isLoud) {
		h.quiet[r] = max(h.quiet[r], w.cfg.CheckQuiet)
	}
	if !w.cfg.Fast {
		w.mix(string(h.spec.ID), fmt.Sprintf("%d %T", r, in), w.elapsed.String())
		w.hash = step.HashEffects(w.hash, effects)
	}
	return effects
}

// judge checks a machine after a step, whose effects were carried out.
func (h *host) judge(r role, in step.Input) {
	w, machine := h.world, h.machines()[r]
	if w.steps%max(1, w.cfg.CheckEvery) != 0 || h.quiet[r] < w.cfg.CheckQuiet {
		return
	}
	h.quiet[r] = 0
	if err := machine.Check(); err != nil {
		w.fail(fmt.Errorf("%s after %T: %w", h.spec.ID, in, err))
	}
	if !w.cfg.CheckFacts || !h.unread[r] {
		return
	}
	h.unread[r] = false
	if !bytes.Equal(machine.Snapshot(), h.disk.facts[r].Encode()) {
		w.fail(fmt.Errorf("%s after %T: snapshot and facts differ", h.spec.ID, in))
	}
}

// isLoud reports whether a step with this effect is not quiet, see Config.CheckQuiet.
func isLoud(e step.Effect) bool {
	switch e := e.(type) {
	case step.Persist:
		return true
	case step.Report:
		return e.Level > step.LevelDebug
	default:
		return false
	}
}

// later gives an input to a machine after a while, unless the host crashes
// before.
func (h *host) later(after time.Duration, r role, in step.Input) {
	h.after(after, func() { h.step(r, in) })
}

// after does something after a while, unless the host crashes before.
func (h *host) after(d time.Duration, do func()) { h.world.put(d, h.alive(do)) }

// alive does something if the host has not crashed meanwhile, and is awake.
func (h *host) alive(do func()) *chore { return &chore{h: h, life: h.life, what: do} }

// chore is an action of a host, of one start of it.
type chore struct {
	h    *host
	life int
	what func()
}

func (c *chore) do() {
	switch {
	case !c.h.up || c.h.life != c.life:
	case c.h.asleep:
		c.h.miss(c)
	default:
		c.what()
	}
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
		h.write(r, e.Fact)
	case step.Report:
		h.world.trace.report(h, r, e)
		h.world.see(Sight{Kind: SightReported, Site: h.spec.ID, Broker: r == roleBroker, Report: e})
	case step.Reply:
		if !h.replied(e) {
			h.world.replies[e.Command] = e
		}
	case step.TellBorder:
		h.tellBorder(e)
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
	case step.Save:
		h.save(e)
	case step.Pull:
		h.pull(e)
	case step.LetGo:
		h.letGo(e)
	case step.Archive:
		h.archive(e)
	}
}

func (h *host) setTimer(id timerID, at time.Time) {
	h.generation++
	generation := h.generation
	h.timers[id] = timer{generation, at}
	h.world.put(h.trueTime(at)-h.world.elapsed, &alarm{h, h.life, generation, id})
}

// alarm is a timer's action.
type alarm struct {
	h                *host
	life, generation int
	id               timerID
}

func (a *alarm) do() {
	h := a.h
	switch {
	case !h.up || h.life != a.life:
	case h.asleep:
		h.miss(a)
	case h.timers[a.id].generation == a.generation:
		delete(h.timers, a.id)
		h.step(a.id.role, step.TimerFired{Key: a.id.key})
	}
}

func sortedTimers(timers map[timerID]timer) []timerID {
	return slices.SortedFunc(maps.Keys(timers), func(a, b timerID) int {
		return cmp.Or(cmp.Compare(a.role, b.role), cmp.Compare(a.key.Name, b.key.Name),
			cmp.Compare(a.key.ID, b.key.ID))
	})
}
