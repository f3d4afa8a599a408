package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// perform carries out what the border's machine wants.
func (g *gateway) perform(e step.Effect) {
	a := g.a
	switch e := e.(type) {
	case step.SendBorder:
		g.lends(e)
		if err := a.mesh.SendBorder(e.Domain, e.Message); err != nil {
			a.reports.count("send_failed")
			a.log.Debug("a message could not be sent to a linked domain",
				"domain", string(e.Domain), "type", fmt.Sprintf("%T", e.Message), "error", err)
		}
	case step.Send:
		a.send(e.To, e.Message)
	case step.SendAs:
		if end, is := e.Message.(protocol.Exited); is { // its submitter comes for the outputs
			a.readers.belong(borderOwner(end.Attempt), e.To)
		}
		a.sendAs(e.As, e.To, e.Message)
	case step.Order:
		g.order(e)
	case step.Sign:
		signed := step.Signed{ID: e.ID}
		var err error
		if signed.Signature, signed.Mandate, err = a.links.Sign(e.Text); err != nil {
			signed.Signature, signed.Problem = nil, err.Error()
		}
		g.tell(signed)
	case step.Stage:
		g.stage(e)
	case step.Collect:
		g.collect(e)
	case step.Discard:
		a.pins.release(borderOwner(e.Attempt))
		a.readers.forget(borderOwner(e.Attempt))
	case step.Report:
		a.perform(e)
	default:
		a.reports.count("border_overstepped")
	}
}

// lends lets a neighbour have what it is told of: the inputs of an order, and what one of its own
// has left, which is no job's any more once the history has that.
func (g *gateway) lends(e step.SendBorder) {
	switch m := e.Message.(type) {
	case protocol.BorderOrder:
		g.a.readers.admit(borderOwner(m.Attempt), e.Domain)
	case protocol.BorderEnd:
		g.a.pins.hold(borderOwner(m.Attempt), m.Exit.CIDs()...)
		g.a.readers.admit(borderOwner(m.Attempt), e.Domain)
	}
}

// order hands an input to this site's broker under a number of its own, as a user's is.
func (g *gateway) order(e step.Order) {
	a, in := g.a, e.Input
	if _, ceiling := in.(step.Ceiling); ceiling {
		a.broker.tell(in)
		return
	}
	answered := func(r step.Reply) {
		if submit, is := in.(step.Submit); is && r.Err == nil { // whose gateway gets the outputs
			a.readers.admit(jobOwner(r.Job), submit.Ordered.Domain)
		}
		reply := step.Replied{Command: e.Command, Job: r.Job}
		if r.Err != nil {
			reply.Err = r.Err.Error()
		}
		g.tell(reply)
	}
	n := a.commands.follow(answered)
	switch v := in.(type) {
	case step.Submit:
		v.Command, in = n, v
	case step.Probe:
		v.Command, in = n, v
	case step.CancelJob:
		v.Command, in = n, v
	case step.ForgetJob:
		v.Command, in = n, v
	}
	if err := a.broker.offer(in); err != nil {
		a.commands.answer(step.Reply{Command: n, Err: err})
	}
}

// stage brings what a task needs to this gateway, from its submitter or from the other gateway.
func (g *gateway) stage(e step.Stage) {
	need := e.Inputs
	if e.Module.CID != "" {
		need = append([]grid.Input{e.Module}, need...)
	}
	g.a.spawn(func() {
		staged := step.Staged{Attempt: e.Attempt}
		for _, in := range need {
			if err := g.bring(g.a.ctx, e.Attempt, in.CID, e.From, nil); err != nil {
				staged.Problem, staged.Local = err.Error(), g.a.disk.lacked(err)
				break
			}
			staged.Bytes += in.Bytes
		}
		g.tell(staged)
	})
}

// collect brings what a task has left to this gateway.
func (g *gateway) collect(e step.Collect) {
	g.a.spawn(func() {
		ctx, cancel := context.WithTimeout(g.a.ctx, collectTimeout)
		defer cancel()
		collected := step.Collected{Attempt: e.Attempt}
		ctx, bounded := newBound(ctx, e.MostBytes)
		defer bounded.stop()
		for _, cid := range e.Outputs {
			err := g.bring(ctx, e.Attempt, cid, e.From, bounded.progress())
			if err = bounded.verdict(err); err != nil {
				collected.Problem, collected.Local = err.Error(), g.a.disk.lacked(err)
				break
			}
		}
		g.tell(collected)
	})
}

// bring fetches data and keeps it for an attempt. It counts for whom it comes from, as a
// submitter's does.
func (g *gateway) bring(
	ctx context.Context, id grid.AttemptID, cid grid.CID, from grid.SiteID, progress data.Progress,
) error {
	tenant, sources := g.a.work.tenant(from), g.a.heeding.members(from)
	if gate := g.at(from); gate != "" {
		sources = []grid.SiteID{gate}
	}
	if _, err := g.a.data.FetchFor(ctx, tenant, cid, sources, progress); err != nil {
		return fmt.Errorf("fetch %s: %w", cid, err)
	}
	g.a.pins.charged(borderOwner(id), tenant, cid)
	g.a.pins.hold(borderOwner(id), cid)
	return nil
}

// at is the gateway of a linked domain, as far as it is connected; empty for all others.
func (g *gateway) at(domain grid.SiteID) grid.SiteID {
	for _, n := range g.a.mesh.Neighbours() {
		if n.Site == domain && n.Connected {
			return n.Gateway
		}
	}
	return ""
}

// isBeyond reports whether a site is the gateway of a linked domain.
func (g *gateway) isBeyond(site grid.SiteID) bool {
	return slices.ContainsFunc(g.a.mesh.Neighbours(), func(n p2p.Neighbour) bool {
		return n.Gateway == site && n.Connected
	})
}

// sendAs sends what a neighbour says to a submitter, to who acts for it.
func (a *Agent) sendAs(as, owner grid.SiteID, m protocol.Message) {
	sites, behalf := a.heeding.route(owner)
	if behalf {
		m = protocol.OnBehalf{Behalf: protocol.Behalf{Owner: owner}, Message: m}
	}
	for _, site := range sites {
		a.send(site, protocol.ByGateway{Domain: as, Message: m})
	}
}
