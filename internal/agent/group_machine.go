package agent

import (
	"encoding/json"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The rows that an agent keeps in the table of a group beside those of the machine.
const (
	keySettings    = "settings"    // how the owner's machine is set up, see chair
	keyCertificate = "certificate" // who belongs to the group, see protocol.Certificate
)

// boot makes this agent the one that acts for the owner.
func (g *group) boot(e standby.Boot) {
	if err := g.write(g.a.ctx, true); err != nil { // its journal begins with what is on the disk
		g.a.leave(err)
		return
	}
	machine, config := g.duty.makeMachine()
	if err := machine.Restore(e.Facts); err != nil {
		g.duty.unreadable(fmt.Errorf("facts of the %s machine: %w", g.name, err))
		return
	}
	text, err := json.Marshal(config)
	if err == nil {
		g.record, err = g.store.Begin(store.Header{
			Build: g.a.cfg.Version, Machine: g.name, Seed: g.a.cfg.Seed, Term: e.Term, Config: text,
		})
	}
	g.machine, g.term, g.unjournalled, g.idle = machine, e.Term, false, false
	g.heedJournal(err)
	g.duty.begins(machine, e.Term)
	g.think(step.Boot{
		Incarnation: e.Term, Nonce: g.store.Nonce(), Line: g.store.Line(),
		Restored: g.first && g.duty.restored(),
		Clock:    g.a.clock.continuous(g.a.bootID),
	})
	if g.missed { // else all of it waits
		g.missed = false
		g.tellSurroundings()
	}
	first := g.first
	g.first = false
	g.duty.begun(first)
	g.form()
	g.thinkOn()
}

// tellSurroundings tells a machine that boots what others of this agent were told one by one.
func (g *group) tellSurroundings() {
	for _, in := range g.a.around.all() {
		g.think(in)
	}
}

// discard throws the machine away as a crash would.
func (g *group) discard(e standby.Discard) {
	if g.term == 0 {
		return
	}
	for key := range g.byKey {
		if key != wakeKey() && key != sendKey() {
			g.stopTimer(key)
		}
	}
	if g.record != nil {
		if err := g.record.End(); err != nil {
			g.log.Warn("the journal was not ended", "machine", g.name, "error", err)
		}
	}
	g.duty.ends(e.Why)
	g.machine, g.record, g.term, g.full = nil, nil, 0, false
	g.waiting, g.missed = nil, true
}

// release carries out what the machine wanted and the group has let go.
func (g *group) release(e step.Effect) {
	if own, is := e.(committed); is {
		own.then()
		return
	}
	g.duty.perform(e)
}

// committed is an effect of the agent's own: it is carried out when the facts before it are
// committed.
type committed struct {
	step.Report

	then func()
}

// persist writes rows of the agent's own into the table, and does something when the group has
// agreed on them. It does nothing where this agent does not act.
func (g *group) persist(then func(), rows ...step.Fact) {
	if !g.acts() {
		return
	}
	effects := make([]step.Effect, 0, len(rows)+1)
	for _, row := range rows {
		effects = append(effects, step.Persist{Fact: row})
	}
	if then != nil {
		effects = append(effects, committed{then: then})
	}
	g.step(standby.Stepped{Term: g.term, Effects: effects})
}
