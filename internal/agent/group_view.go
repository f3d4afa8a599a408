package agent

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Groups shows the groups of jobs that this agent has a part in, that of its own among them.
func (a *Agent) Groups(ctx context.Context) ([]view.Group, error) {
	shown := []view.Group{}
	for _, g := range a.groups.list() {
		j, is := g.duty.(*jobs)
		if !is || !g.own() && !a.groups.runs(g) {
			continue // it does not run yet
		}
		err := g.ask(ctx, func() { shown = append(shown, j.viewJobs()) })
		if errors.Is(err, errEnded) && !g.own() {
			continue // it was dismissed meanwhile
		}
		if err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// Bring fetches data of own jobs that standbys keep and this agent has not yet. It does nothing
// where nobody stands by, or the data is no job's.
func (a *Agent) Bring(ctx context.Context, cid grid.CID) error {
	if a.data.Has(cid) {
		return nil
	}
	g := a.groups.of(a.mesh.Self())
	if g == nil {
		return nil
	}
	var from []grid.SiteID
	if err := g.ask(ctx, func() { from = g.others() }); err != nil || len(from) == 0 {
		return err
	}
	if _, err := a.data.Fetch(ctx, cid, from, nil); err != nil && ctx.Err() == nil {
		a.log.Debug("no standby has the data that is asked for", "cid", cid, "error", err)
	}
	return ctx.Err()
}

// view is the group as people see it.
func (g *group) view() view.Group {
	leader, term := g.member.Leader()
	conf := g.member.Members()
	v := view.Group{
		Owner: g.owner, Here: g.acts(), Term: term, Members: []view.GroupMember{},
		Changing: len(conf.Outgoing)+len(conf.Learners) > 0 || g.target() != nil,
		Facts:    g.member.TableBytes(),
	}
	if leader != 0 {
		v.Acting = g.siteOf(leader)
	}
	for _, id := range conf.Voters {
		v.Members = append(v.Members, g.a.groupMember(g.siteOf(id)))
	}
	if g.duty.holds() {
		v.Wanted, v.Refusals = g.duty.wanted(), g.refusals()
	}
	return v
}

// viewJobs is the group with its jobs.
func (j *jobs) viewJobs() view.Group {
	v := j.view()
	if m := j.seen(); m != nil {
		for _, id := range m.Jobs() {
			v.Jobs++
			if job, known := m.Job(id); known && job.Ended.IsZero() {
				v.Open++
			}
		}
	}
	return v
}

// refusals lists the sites that have lately said that they do not stand by, ascending.
func (g *group) refusals() (all []view.GroupRefusal) {
	for _, site := range slices.Sorted(maps.Keys(g.forming.refused)) {
		said := g.forming.refused[site]
		peer, connected := g.a.around.peer(site)
		if connected && g.clock.now().Sub(said.at) < refusedFor {
			all = append(all, view.GroupRefusal{Site: site, Name: peer.Name, Reason: said.why})
		}
	}
	return all
}

// Replica tells how far this agent has come in the log of an owner's group, and about how many
// bytes of facts it has. Equal numbers of the log, equal facts; 0: it has no part in the group.
func (a *Agent) Replica(ctx context.Context, owner grid.SiteID) (applied uint64, facts int64) {
	g := a.groups.of(owner)
	if g == nil || !g.own() && !a.groups.runs(g) {
		return 0, 0
	}
	_ = g.ask(ctx, func() { applied, facts = g.member.Applied(), g.member.TableBytes() })
	return applied, facts
}

// others are the sites of the other members.
func (g *group) others() []grid.SiteID {
	return slices.DeleteFunc(g.assembly.certificate.Sites(), func(s grid.SiteID) bool {
		return s == g.a.mesh.Self()
	})
}
