package agent

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Another owner's facts that cannot be read, be it on purpose, end the part in that group and
// nothing else.
func TestAnotherOwnersFactsEndNothingElse(t *testing.T) {
	b := newBenchOf(t, plans(t, 2)[1])
	const owner = grid.SiteID("12D3KooWA4DjUqW9N15ubWMGTmsZA7HNko2A5vnvtn83qYhffUa7")
	wrong := []step.Fact{{Kind: "nonsense/9", Key: "a", Value: []byte(`1`)}}
	m := store.Member{
		Name: b.groupName(owner), ID: 7, Owner: owner, Stored: standby.Founded(0, wrong, 7),
	}
	if err := b.Agent.store.Enlist(m); err != nil {
		t.Fatal(err)
	}
	g, err := b.newGroup(m)
	if err != nil {
		t.Fatal(err)
	}
	b.groups.add(g)
	b.runGroup(g)
	eventually(t, "the part in the group has ended", func() bool {
		members, err := b.Agent.store.Members()
		return err == nil && len(members) == 1 && b.groups.of(owner) == nil
	})
	if b.Known().Counters["group_unreadable"] != 1 {
		t.Errorf("counted %v", b.Known().Counters)
	}
	if err := b.broker.ask(t.Context(), func() {}); err != nil {
		t.Errorf("the agent's own broker: %v", err)
	}
}

// An owner whose agent hands over as it stops is connected for a moment more. It is not given the
// lead back in that moment, however long it was there when this agent acted the last time.
func TestAnOwnerThatStopsIsNotGivenTheLeadBack(t *testing.T) {
	b := newBenchOf(t, plans(t, 2)[1])
	const owner = grid.SiteID("12D3KooWA4DjUqW9N15ubWMGTmsZA7HNko2A5vnvtn83qYhffUa7")
	m := store.Member{
		Name: b.groupName(owner), ID: 7, Owner: owner, Stored: standby.Founded(0, nil, 7),
	}
	if err := b.Agent.store.Enlist(m); err != nil {
		t.Fatal(err)
	}
	g, err := b.newGroup(m)
	if err != nil {
		t.Fatal(err)
	}
	for batch := g.gather(); len(batch) > 0; batch = g.gather() {
		if err := g.work(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	b.around.note(step.PeerSeen{Site: owner})
	j, is := g.duty.(*jobs)
	if !is {
		t.Fatalf("its duty is %T", g.duty)
	}
	j.giveBack()
	if !g.acts() || j.ownerSince.IsZero() {
		t.Fatalf("acts: %t; the owner is seen since %s", g.acts(), j.ownerSince)
	}
	g.discard(standby.Discard{Term: g.term, Why: "the lead is handed over"})
	if !j.ownerSince.IsZero() {
		t.Errorf("a machine that boots next counts the owner's presence from %s on", j.ownerSince)
	}
}

// A group that ends while somebody asks for all groups is not shown, and hides no other.
func TestAGroupThatEndsIsNotShown(t *testing.T) {
	b := newBenchOf(t, plans(t, 2)[1])
	const owner = grid.SiteID("12D3KooWA4DjUqW9N15ubWMGTmsZA7HNko2A5vnvtn83qYhffUa7")
	g, err := b.newGroup(store.Member{
		Name: b.groupName(owner), ID: 7, Owner: owner, Stored: standby.Founded(0, nil, 7),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.end = func() {}
	b.groups.add(g)
	close(g.ended) // its loop has returned, and nobody has removed it yet
	shown, err := b.Groups(t.Context())
	if err != nil || len(shown) != 1 || shown[0].Owner != b.Self() {
		t.Errorf("%+v, %v", shown, err)
	}
}
