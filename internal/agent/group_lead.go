package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// How long others are waited for.
const (
	commandPatience = 5 * time.Second         // a command waits so long for who acts
	handOverWithin  = 1500 * time.Millisecond // an agent that stops waits so long for a successor
	returnAgain     = 30 * time.Second        // the lead is offered to its owner again
	returnAfter     = time.Second             // an owner is back when it was seen for so long
	// An owner whose machine has just fallen asleep is still connected. One that is awake has
	// answered a heartbeat within this time.
	awake = 600 * time.Millisecond
)

// look does what a group does with each tick.
func (g *group) look() {
	if err := g.write(g.a.ctx, true); err != nil {
		g.a.leave(err)
		return
	}
	g.guard()
	g.expireCommands()
	if leader, _ := g.member.Leader(); !g.own() && g.siteOf(leader) == g.owner {
		g.returnedAt = time.Time{} // the owner has taken it; the next time it is offered again
	}
	g.form()
	g.admit()
	g.giveBack()
	g.content.look(g)
}

// expireCommands refuses commands for which nobody acts.
func (g *group) expireCommands() {
	if g.acts() || len(g.waiting) == 0 {
		g.waitsSince = time.Time{}
		return
	}
	now := g.clock.now()
	if g.waitsSince.IsZero() {
		g.waitsSince = now
	}
	if now.Sub(g.waitsSince) < commandPatience || !g.own() {
		return
	}
	g.waiting, g.waitsSince = nil, time.Time{}
	g.a.commands.fail(fmt.Errorf("%w: %w", view.ErrBusy, g.whyIdle()))
}

// whyIdle says why a command cannot be taken.
func (g *group) whyIdle() error {
	leader, _ := g.member.Leader()
	if site := g.siteOf(leader); leader != 0 && site != "" {
		return fmt.Errorf("%w: %s acts for you and hands over; try again", errNotActing, site)
	}
	var missing []grid.SiteID
	for _, site := range g.assembly.certificate.Sites() {
		if site != g.owner && !g.a.around.has(site) {
			missing = append(missing, site)
		}
	}
	if len(missing) == 0 {
		return fmt.Errorf("%w: this agent and its standbys agree on the one that does; try again",
			errNotActing)
	}
	return fmt.Errorf("%w: a majority of this agent and its standbys is needed, and %v cannot be "+
		"reached; wait for one of them, or submit recover --help", errNotActing, missing)
}

// giveBack hands the lead to the owner's agent when that is back and has all.
func (g *group) giveBack() {
	if g.own() || !g.acts() {
		return
	}
	now := g.clock.now()
	if !g.a.around.has(g.owner) {
		g.ownerSince = time.Time{}
		return
	}
	if g.ownerSince.IsZero() {
		g.ownerSince = now
	}
	if now.Sub(g.newsAt) > silentFor/6 {
		g.newsAt = now
		g.tellNews(g.owner)
	}
	id := g.memberOf(g.owner)
	back := mayReturn(now, g.ownerSince, g.returnedAt, g.member.Heard(id), g.idle)
	if id != 0 && back && g.member.CanLead(id) && g.content.given(g) {
		g.returnedAt = now
		g.step(standby.Transfer{To: id})
	}
}

// mayReturn reports whether an owner may have the lead back: it has been there for a moment, was
// not offered it just before, and is awake. A group that rests hears nobody for longer, and there
// is nothing to lose.
func mayReturn(now, since, offered, heard time.Time, rests bool) bool {
	return now.Sub(since) >= returnAfter && now.Sub(offered) >= returnAgain &&
		(rests || now.Sub(heard) <= awake)
}

// memberOf is the voter at a site, 0 if there is none.
func (g *group) memberOf(site grid.SiteID) standby.MemberID {
	for _, id := range g.member.Members().Voters {
		if g.siteOf(id) == site {
			return id
		}
	}
	return 0
}

// onGone heeds that a site is gone: if its host refuses, its agent has died, and nobody need
// wait to act in its place.
func (g *group) onGone(site grid.SiteID, refusing bool) {
	g.dropFor(site)
	if !refusing {
		return
	}
	for _, id := range g.member.Members().Voters {
		if g.siteOf(id) == site {
			g.step(standby.Refusing{Member: id})
		}
	}
}

// onSeen tells an owner that is back who has acted for it. It may have the lead back as soon as it
// has been there for a moment, whatever became of it when it was offered before.
func (g *group) onSeen(site grid.SiteID) {
	if site == g.owner && !g.own() {
		g.returnedAt = time.Time{}
		g.tellNews(site)
	}
}

// HandOver lets others act for the owners for whom this agent does, and waits for that: an agent
// that stops in order, or whose machine is about to sleep, leaves no gap.
func (a *Agent) HandOver() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), handOverWithin)
	defer cancel()
	for _, g := range a.groups.list() {
		_ = g.ask(ctx, g.transferAway)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil && slices.ContainsFunc(a.groups.list(), func(g *group) bool {
		open := false
		err := g.ask(ctx, func() { open = g.leaving && !g.replaced() })
		return err == nil && open
	}) {
		<-tick.C
	}
}

// transferAway begins to hand the lead to the voter that was heard last.
func (g *group) transferAway() {
	g.leaving = false
	if !g.acts() || g.alone() {
		return
	}
	var next standby.MemberID
	for _, id := range g.member.Members().Voters {
		if id != g.id && g.member.CanLead(id) && g.a.around.has(g.siteOf(id)) &&
			(next == 0 || g.member.Heard(id).After(g.member.Heard(next))) {
			next = id
		}
	}
	if next != 0 {
		g.leaving = true
		g.step(standby.Transfer{To: next})
	}
}

// replaced reports whether another member leads.
func (g *group) replaced() bool {
	leader, _ := g.member.Leader()
	return leader != 0 && leader != g.id
}

// shown is the owner's broker as people see it where it does not run: as the group's table has it.
type shown struct {
	machine *broker.Machine
	applied uint64 // of the table
}

// show makes the machine that runs here the one that is seen.
func (g *group) show(m *broker.Machine) {
	g.shown = shown{machine: m}
	if g.own() && m != nil {
		g.a.brokerMachine = m
	}
}

// seen is the owner's broker for those who only look.
func (g *group) seen() *broker.Machine {
	if g.acts() || g.shown.machine != nil && g.shown.applied == g.member.Applied() {
		return g.shown.machine
	}
	facts, applied := g.member.Table()
	m, _, _ := g.making()
	if m != nil {
		if err := m.Restore(facts); err != nil {
			g.log.Warn("the jobs of an owner cannot be shown",
				"owner", string(g.owner), "error", err)
			m, _, _ = g.making()
		}
	}
	g.shown = shown{machine: m, applied: applied}
	return m
}

// isAbout reports whether a peer's coming and going concerns groups.
func (a *Agent) tellGroups(in step.Input) {
	for _, g := range a.groups.list() {
		switch in := in.(type) {
		case step.PeerSeen:
			g.soon(func() { g.onSeen(in.Site) })
		case step.PeerGone:
			g.soon(func() { g.onGone(in.Site, in.Refusing) })
		}
	}
}
