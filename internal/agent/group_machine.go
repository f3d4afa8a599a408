package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The rows that an agent keeps in the table of a group beside those of the broker.
const (
	keySettings    = "settings"    // how the owner's broker is set up, see brokerSettings
	keyCertificate = "certificate" // who belongs to the group, see protocol.Certificate
)

// brokerSettings are those of the owner's that its broker has wherever it runs. Leases above
// all: a successor waits for as long as its predecessor has granted.
type brokerSettings struct {
	Name        string
	Lease       time.Duration
	LeaseMargin time.Duration
	Policy      grid.AvailPolicy
	FIBR        bool
	SoftMin     bool
	Replies     int

	OwnFaults bool          `json:",omitempty"`
	FaultHalf time.Duration `json:",omitempty"`
}

func (a *Agent) brokerSettings() brokerSettings {
	return brokerSettings{
		Name: a.cfg.Name, Lease: a.cfg.Lease, LeaseMargin: a.cfg.LeaseMargin, Policy: a.cfg.Policy,
		FIBR: a.cfg.FIBR, SoftMin: a.cfg.SoftMin, Replies: a.cfg.Replies,
		OwnFaults: a.cfg.OwnFaults, FaultHalf: a.cfg.FaultHalf,
	}
}

// makeBroker makes a machine as the owner has set it up. Here are this site's parts of it: where
// it runs, and the randomness, which is a secret of each run.
func (g *group) makeBroker() (*broker.Machine, step.Machine, any) {
	settings := g.a.brokerSettings()
	if !g.own() {
		settings = brokerSettings{}
		if text := g.member.Row(broker.FactGroup, keySettings); text != nil {
			_ = json.Unmarshal(text, &settings) // as it was written; else the defaults
		}
	}
	c := g.a.brokerConfig(g.owner, settings)
	m := broker.New(c)
	return m, m, c
}

// brokerConfig is that of an owner's broker which runs here.
func (a *Agent) brokerConfig(owner grid.SiteID, s brokerSettings) broker.Config {
	c := broker.Default(owner)
	c.Here, c.HeldBy, c.Name, c.Seed = a.mesh.Self(), a.cfg.P2P.Owner, s.Name, a.cfg.Seed
	c.Addrs, c.Capability = a.mesh.Addrs(), a.cfg.Capability
	c.ReplyTarget, c.Policy, c.FIBR = s.Replies, s.Policy, s.FIBR
	c.OwnFaultsOnly = s.OwnFaults
	setIf(&c.FaultHalfLife, s.FaultHalf)
	if a.cfg.Gossip {
		c.UnicastUpTo = 0
	}
	if s.SoftMin {
		c.Choice = broker.ChoiceSoftMin
	}
	setIf(&c.Lease, s.Lease)
	setIf(&c.LeaseMargin, s.LeaseMargin)
	c.NoFencing = noFencing
	return c
}

// boot makes this agent the acting submitter of the owner.
func (g *group) boot(e standby.Boot) {
	if err := g.write(g.a.ctx, true); err != nil { // its journal begins with what is on the disk
		g.a.leave(err)
		return
	}
	typed, machine, config := g.making()
	if err := machine.Restore(e.Facts); err != nil {
		g.unreadable(fmt.Errorf("facts of the %s machine: %w", g.name, err))
		return
	}
	text, err := json.Marshal(config)
	if err == nil {
		g.record, err = g.store.Begin(store.Header{
			Build: g.a.cfg.Version, Machine: g.name, Seed: g.a.cfg.Seed, Term: e.Term, Config: text,
		})
	}
	g.machine, g.term, g.unjournalled = machine, e.Term, false
	g.jobs, g.idle = nil, false
	if typed != nil {
		g.jobs = typed.Open
	}
	g.heedJournal(err)
	g.show(typed)
	if !g.alone() {
		g.log.Info("this agent acts for the jobs of an owner",
			"owner", string(g.owner), "term", e.Term)
		g.a.reports.count("group_booted")
	}
	g.think(step.Boot{
		Incarnation: e.Term, Nonce: g.store.Nonce(), Line: g.store.Line(),
		Restored: g.first && g.own() && g.store.Restored(),
		Clock:    g.a.clock.continuous(g.a.bootID),
	})
	if g.missed { // else all of it waits
		g.missed = false
		g.tellSurroundings()
	}
	if g.first {
		g.first = false
		if g.own() && g.store.Restored() {
			g.noteBefore(typed)
		}
		if g.own() {
			g.a.ownSubmissions()
			g.a.trustState()
		}
	}
	g.form()
	g.content.boot(g)
	g.thinkOn()
}

// unreadable ends this agent, if the facts are its own, else its part in the group: another owner's
// facts, which may be wrong on purpose or of a later version, are not to end anything else here.
func (g *group) unreadable(err error) {
	if g.own() {
		g.a.leave(err)
		return
	}
	g.log.Error("another owner's jobs cannot be taken up", "owner", string(g.owner), "error", err)
	g.a.reports.count("group_unreadable")
	g.a.sendQuietly(g.owner, protocol.StandbyAnswer{Reason: short(err.Error())})
	g.a.spawn(func() { g.a.dismiss(g, "its facts cannot be read here") })
}

// noteBefore notes the jobs of a state that was restored. If a group has them, they are its.
func (g *group) noteBefore(m *broker.Machine) {
	if m == nil {
		return // a test's own
	}
	g.before = make(map[grid.JobID]bool)
	for _, id := range m.Jobs() {
		g.before[id] = true
	}
}

// tellSurroundings tells a machine that boots what others of this agent were told one by one.
func (g *group) tellSurroundings() {
	for _, in := range g.a.around.all() {
		g.think(in)
	}
}

// discard throws the machine away as a crash would. Who waits for an answer is told that the
// outcome is not known.
func (g *group) discard(e standby.Discard) {
	if g.term == 0 {
		return
	}
	g.log.Info("this agent acts no longer for the jobs of an owner",
		"owner", string(g.owner), "term", e.Term, "why", e.Why)
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
	g.machine, g.record, g.term, g.full = nil, nil, 0, false
	g.waiting, g.shown, g.missed = nil, shown{}, true
	g.ownerSince = time.Time{} // an owner that hands over is still there, and is not to get it back
	g.content.discard(g)
	if g.own() {
		g.a.commands.fail(fmt.Errorf("%w: %s", view.ErrBusy, e.Why+
			"; whether it was accepted is not known: look with submit list, then try again"))
	}
}

// release carries out what the machine wanted and the group has let go.
func (g *group) release(e step.Effect) {
	switch e := e.(type) {
	case step.Send:
		g.sendOut(e.To, e.Message)
	case step.Broadcast:
		g.broadcastOut(e.Message)
	case step.Hold:
		g.content.hold(g, e)
	case step.Collect:
		g.content.collect(g, e)
	case step.Pull:
		g.content.pull(g, e)
	case committed:
		e.then()
	case step.Archive, step.LetGo, step.Reply:
		if g.own() { // the history is the owner's, and so are those who ask
			g.a.perform(e)
		}
	default:
		g.a.perform(e)
	}
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

// sendOut sends a message of the owner's broker, in the name of the owner if it has certified
// who may act for it. What the owner says of sites it says itself, under its own key.
func (g *group) sendOut(to grid.SiteID, m protocol.Message) {
	if _, said := m.(protocol.Testimony); said {
		if g.own() {
			g.a.send(to, m)
		}
		return
	}
	g.a.send(to, g.wrap(m))
}

func (g *group) broadcastOut(m protocol.Message) { g.a.broadcast(g.wrap(m)) }

// wrap says for whom a message is, and by which right. Who is in the group at the moment does not
// count: a site that has seen a certificate heeds no message without a term, before the change
// that it is for and after the one that leaves the owner alone.
func (g *group) wrap(m protocol.Message) protocol.Message {
	if g.assembly.encoded == nil {
		return m // nobody else has ever been able to
	}
	return g.a.behalf(g.owner, g.term, g.assembly.encoded, m)
}

// errNotActing answers a command that would have to wait for too long.
var errNotActing = errors.New("no agent acts for your jobs at the moment")
