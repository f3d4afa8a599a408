package agent

import (
	"testing"
)

// What a question wants on the disk is there when its turn is over, and what waits for that has
// happened: the messages of other members are taken so, and the next turn may come with the next
// heartbeat.
func TestAQuestionsFactsAreWrittenInItsTurn(t *testing.T) {
	a, err := New(t.Context(), plans(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	g := a.groups.of(a.Self())
	turn := func(batch []task) {
		t.Helper()
		if err := g.work(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for batch := g.gather(); len(batch) > 0; batch = g.gather() {
		turn(batch)
	}
	if !g.acts() {
		t.Fatal("an agent alone does not act for itself")
	}
	committed := false
	turn([]task{{ask: func() { g.persist(func() { committed = true }, groupFact("row", 1)) }}})
	if !committed || len(g.saves) > 0 && g.saves[0].Sync {
		t.Errorf("committed: %t; %d Saves wait for another turn", committed, len(g.saves))
	}
}
