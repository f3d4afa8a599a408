package agent

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// group is this agent's member of one owner's group: a loop that has, while this agent acts for
// the owner, the machine that the group is for. The agent's own jobs have one as well, of itself
// alone where nobody stands by. Its fields belong to the loop's goroutine.
type group struct {
	*loop

	a     *Agent
	owner grid.SiteID
	id    standby.MemberID

	member *standby.Group
	store  *store.Store
	duty   duty

	term    uint64                     // of the machine that acts here; 0: none does
	idle    bool                       // the group was told that it has nothing to do
	record  *store.Journal             // of that machine; nil: it has none
	first   bool                       // the machine that boots is the first one of this run
	waiting []step.Input               // while the group takes no more, or nobody acts yet
	missed  bool                       // inputs were dropped that a machine is to hear at its boot
	full    bool                       // the group takes no more
	saves   []standby.Save             // not on the disk yet
	todo    []standby.Effect           // not carried out yet
	busy    bool                       // todo is being carried out
	writing bool                       // Saves are just being brought to the disk
	dropped map[step.TimerKey]struct{} // timers that an input of the batch has set anew

	made    time.Time // when this agent became a member, or its loop was made
	leaving bool      // the lead was handed away, for this agent stops
	end     func()    // of a foreign owner's group: ends its loop

	forming  forming
	limit    limit
	assembly assembly
	parcels  parcels
}

// wakeKey is the timer of the group itself, among those of the machine.
func wakeKey() step.TimerKey { return step.TimerKey{Name: "group"} }

// mostWaiting bounds the inputs that wait for a machine to boot, or for the group.
const mostWaiting = queueLimit

// groupPrefix begins the names of the machines of other owners of jobs.
const groupPrefix = "standby"

// groupName is the machine's name in the store: that of the own jobs is the broker's.
func (a *Agent) groupName(owner grid.SiteID) string {
	if owner == a.mesh.Self() {
		return brokerName
	}
	sum := sha256.Sum256([]byte(owner))
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10])
	prefix := groupPrefix
	if owner == a.domainSite() {
		prefix = controlPrefix
	}
	return prefix + strings.ToLower(text)
}

// newGroup makes the loop of a member that the store has.
func (a *Agent) newGroup(m store.Member) (*group, error) {
	g := &group{
		a: a, made: a.clock.now(), owner: m.Owner, id: m.ID, store: a.store, first: true,
		dropped: make(map[step.TimerKey]struct{}), forming: newForming(),
	}
	g.loop = newLoop(m.Name, nil, nil, a.clock, a.log, nil)
	g.perform, g.turn, g.starved = g.release, g.work, a.disk.starved
	if strings.HasPrefix(m.Name, controlPrefix) {
		g.duty = newControl(g)
	} else {
		g.duty = newJobs(g)
	}
	facts, err := a.store.Load(m.Name)
	if err != nil {
		return nil, err
	}
	if c, certified := certificateIn(facts); certified {
		g.assemble(c) // a member that joins has no table of its own yet
	}
	return g, g.open(m.Stored)
}

// open makes the member of the group with what is on its disk.
func (g *group) open(stored standby.Stored) error {
	alone := len(stored.Conf.Voters) == 1 && len(stored.Conf.Outgoing) == 0
	if alone { // a disk that was restored must not use the terms again that it has used since
		stored.Ballot.Term = max(stored.Ballot.Term, g.store.Incarnation()-1)
	}
	cfg := standby.Default(g.id)
	cfg.Seed = g.a.cfg.Seed
	if timing := g.a.cfg.Standbys.ElectionTimeout; timing > 0 {
		cfg.ElectionTimeout, cfg.ElectionSpread = timing, timing*3/10
		cfg.ResignAfter, cfg.Rest = 3*timing, 2*timing
	}
	cfg.Rest = g.duty.rest(cfg.Rest)
	member, err := standby.New(cfg, g.clock.now(), &stored)
	if err != nil {
		return fmt.Errorf("group of %s: %w", g.owner, err)
	}
	g.member = member
	g.noteMembers()
	_ = g.push(task{member: standby.Woken{}}, false)
	return nil
}

// begin makes another member of this agent's, in place of the one that it was.
func (g *group) begin(m store.Member) error {
	if err := g.store.Enlist(m); err != nil {
		return err
	}
	g.id, g.saves, g.todo, g.assembly, g.parcels = m.ID, nil, nil, assembly{}, parcels{}
	return g.open(m.Stored)
}

// own reports whether the group keeps this agent's own jobs.
func (g *group) own() bool { return g.owner == g.a.mesh.Self() }

// acts reports whether the owner's broker runs here.
func (g *group) acts() bool { return g.term != 0 }

// alone reports whether nobody else is in the group.
func (g *group) alone() bool {
	conf := g.member.Members()
	return len(conf.Voters) == 1 && len(conf.Outgoing) == 0 && conf.Voters[0] == g.id
}

// work takes a batch. What the member wants on the disk is written when all of it is taken, so
// that Steps share entries and entries share a wait for the disk.
func (g *group) work(ctx context.Context, batch []task) error {
	clear(g.dropped)
	var questions []func()
	woken := false
	for _, t := range batch {
		switch {
		case t.ask != nil:
			questions = append(questions, t.ask)
		case t.input == step.TimerFired{Key: wakeKey()}:
			woken = true
		case t.member != nil:
			g.step(t.member)
		default:
			g.input(t.input)
		}
	}
	if err := g.write(ctx, false); err != nil {
		return err
	}
	for _, q := range questions {
		q()
	}
	if _, again := g.dropped[wakeKey()]; woken && !again {
		// Last: after a stall, as with a large table, a leader's heartbeats may wait in the queue,
		// or answers to one.
		g.step(standby.Woken{})
	}
	return g.write(ctx, false) // messages of other members are taken by questions
}

// input is one of the machine's, or of the group's own timer.
func (g *group) input(in step.Input) {
	if fired, is := in.(step.TimerFired); is {
		if _, again := g.dropped[fired.Key]; again {
			return
		}
		if fired.Key == sendKey() {
			g.sendOn()
			return
		}
	}
	switch {
	case g.acts() && !g.full:
		g.think(in)
	case !g.acts() && !g.alone() && !isCommand(in):
		g.missed = true
		g.a.reports.count("not_acting")
	case len(g.waiting) < mostWaiting:
		g.waiting = append(g.waiting, in)
	default:
		g.a.reports.count("message_dropped")
	}
}

// isCommand reports whether somebody waits for an answer.
func isCommand(in step.Input) bool {
	switch in.(type) {
	case step.Submit, step.Probe, step.CancelJob, step.HoldJob, step.ForgetJob:
		return true
	}
	return false
}

// think lets the machine take an input, and gives the group what it wants.
func (g *group) think(in step.Input) {
	if !g.duty.takes(in) {
		return
	}
	now := g.clock.now()
	wanted := g.machine.Step(now, in)
	if g.record != nil {
		g.heedJournal(g.record.Record(now, in, wanted))
	}
	g.step(standby.Stepped{Term: g.term, Effects: wanted})
	if idle := g.acts() && g.duty.isIdle(); idle != g.idle {
		g.idle = idle
		g.step(standby.Rest{On: idle})
	}
}

// thinkOn gives the machine what waited for it.
func (g *group) thinkOn() {
	waiting := g.waiting
	g.waiting = nil
	for i, in := range waiting {
		if g.full || !g.acts() {
			g.waiting = append(waiting[i:], g.waiting...)
			return
		}
		g.think(in)
	}
}

// step gives the member an input and carries out what it wants, in order. What comes from that
// follows behind.
func (g *group) step(in standby.Input) {
	g.todo = append(g.todo, g.member.Step(g.clock.now(), in)...)
	if g.busy {
		return
	}
	g.busy = true
	defer func() { g.busy = false }()
	for len(g.todo) > 0 {
		next := g.todo[0]
		g.todo = g.todo[1:]
		g.carry(next)
	}
}

func (g *group) carry(e standby.Effect) {
	switch e := e.(type) {
	case standby.Wake:
		g.setTimer(wakeKey(), e.At)
		g.dropped[wakeKey()] = struct{}{}
	case standby.Send:
		g.sendMember(e)
	case standby.Save:
		g.saves = append(g.saves, e)
		if e.Conf != nil || len(e.Facts) > 0 {
			g.noteMembers()
		}
	case standby.Boot:
		g.boot(e)
	case standby.Discard:
		g.discard(e)
	case standby.Release:
		for _, wanted := range e.Effects {
			g.carryOut(wanted)
		}
	case standby.Hold:
		g.full = e.On
		if !e.On && g.acts() {
			g.thinkOn()
		}
	case standby.Ended:
		g.fallen(e.Err)
	}
}

// carryOut is the loop's; a timer that was set anew is not due any more in this batch.
func (g *group) carryOut(e step.Effect) {
	switch e := e.(type) {
	case step.SetTimer:
		g.dropped[e.Key] = struct{}{}
	case step.StopTimer:
		g.dropped[e.Key] = struct{}{}
	}
	g.loop.carryOut(e)
}

// write brings Saves to the disk until none waits that has to be there; with all, also those
// that could wait for the next one.
func (g *group) write(ctx context.Context, all bool) error {
	if g.writing { // a question is answered while the disk takes nothing
		return nil
	}
	for len(g.saves) > 0 {
		saves := g.saves
		urgent := all
		for _, s := range saves {
			urgent = urgent || s.Sync
		}
		if !urgent && len(saves) < mostSaves {
			return nil
		}
		g.saves = nil
		save := func() error { return g.store.SaveMember(g.name, saves) }
		g.writing = true
		err := g.remember(ctx, save)
		g.writing = false
		if err != nil {
			g.saves = nil // none may be on the disk without those before
			return fmt.Errorf("log of the group of %s: %w", g.owner, err)
		}
		g.step(standby.Saved{Number: saves[len(saves)-1].Number})
	}
	return nil
}

// mostSaves bounds the Saves that wait and need not be on the disk soon.
const mostSaves = 64

// fallen notes that the member has ended, by a flaw of the library or of its log. What is on the
// disk is tried again later; the group goes on without it meanwhile.
func (g *group) fallen(err error) {
	g.log.Error("a member of a group has ended; it is started again",
		"owner", string(g.owner), "error", err)
	g.a.reports.count("group_ended")
	g.saves, g.todo = nil, nil
	g.a.spawn(func() {
		select {
		case <-time.After(startAgain):
			g.soon(g.openAgain)
		case <-g.a.ctx.Done():
		}
	})
}

// startAgain is the pause before a member that has ended is started again.
const startAgain = 5 * time.Second

func (g *group) openAgain() {
	members, err := g.store.Members()
	if err == nil {
		err = fmt.Errorf("%w: the member is gone", grid.ErrInvalid)
		for _, m := range members {
			if m.Name == g.name {
				err = g.open(m.Stored)
			}
		}
	}
	if err != nil {
		g.fallen(err)
	}
}
