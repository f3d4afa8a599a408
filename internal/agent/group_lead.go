package agent

import (
	"context"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// How long others are waited for.
const (
	handOverWithin = 1500 * time.Millisecond // an agent that stops waits so long for a successor
	returnAgain    = 30 * time.Second        // the lead is offered to its owner again
	returnAfter    = time.Second             // an owner is back when it was seen for so long
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
	g.form()
	g.admit()
	g.duty.tick()
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

// tellGroups tells all groups of a peer's coming and going.
func (a *Agent) tellGroups(in step.Input) {
	for _, g := range a.groups.list() {
		switch in := in.(type) {
		case step.PeerSeen:
			g.soon(func() { g.duty.met(in.Site) })
		case step.PeerGone:
			g.soon(func() { g.onGone(in.Site, in.Refusing) })
		}
	}
}
