package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// keyRecovered is the row of a group that its owner has made anew without those that are lost:
// the next certificate is far above any that they may have.
const (
	keyRecovered = "recovered"
	recoveredBy  = 1000 // terms and epochs that are left out
)

// Recover makes the group of the own jobs anew, of this agent alone, with the facts that it has:
// the standbys are lost for good, which is the owner's word. Nobody can check it: if they live,
// they act as well, and tasks may run twice (rule 16).
func (a *Agent) Recover(ctx context.Context, without []grid.SiteID) error {
	g := a.groups.of(a.mesh.Self())
	var failed error
	err := g.ask(ctx, func() { failed = g.recover(without) })
	if err != nil {
		return err
	}
	return failed
}

func (g *group) recover(without []grid.SiteID) error {
	if err := g.mayRecover(without); err != nil {
		return err
	}
	_, term := g.member.Leader()
	return g.renew(max(term, g.store.Incarnation()))
}

// renew makes the group anew, of this agent alone, with the facts that it has. Its terms begin
// above that one.
func (g *group) renew(term uint64) error {
	var table step.Facts
	facts, err := g.rescued()
	if err != nil {
		return err
	}
	for _, f := range append(facts, groupFact(keyRecovered, true)) {
		table.Apply(f)
	}
	table.Apply(step.Fact{Kind: broker.FactGroup, Key: keyTarget})
	id := newMemberID()
	return g.begin(store.Member{
		Name: g.name, ID: id, Owner: g.owner,
		Stored: standby.Founded(term+recoveredBy, table.All(), id),
	})
}

// rescued are the facts with which the owner goes on: all in the log, or what a lost log has left.
func (g *group) rescued() ([]step.Fact, error) {
	if err := g.write(g.a.ctx, true); err != nil {
		return nil, err
	}
	members, err := g.store.Members()
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Name == g.name && !m.Stored.Fresh {
			return m.Stored.Whole(), nil
		}
	}
	return g.store.Load(g.name)
}

// mayRecover wants that nobody acts, and that all are named who are given up.
func (g *group) mayRecover(without []grid.SiteID) error {
	leader, _ := g.member.Leader()
	acting := g.siteOf(leader)
	switch {
	case g.acts() || g.alone():
		return fmt.Errorf("%w: this agent acts for your jobs; there is nothing to recover",
			view.ErrConflict)
	case len(g.others()) == 0:
		return fmt.Errorf("%w: this agent has lost what it knew of your jobs; "+
			"only a standby has it", view.ErrConflict)
	case leader != 0 && g.a.around.has(acting):
		return fmt.Errorf("%w: %s acts for your jobs and hands over; wait for that",
			view.ErrConflict, acting)
	}
	for _, site := range g.others() {
		switch {
		case g.a.around.has(site):
			return fmt.Errorf("%w: %s is connected, so it is not lost; "+
				"with it all goes on by itself", view.ErrConflict, site)
		case !slices.Contains(without, site):
			return fmt.Errorf("%w: name each standby that is lost for good; %s is not named",
				grid.ErrInvalid, site)
		}
	}
	return nil
}
