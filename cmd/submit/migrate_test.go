package main

import (
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What a user reads while a task moves: nothing until it is known where it goes on.
func TestMoveOutcome(t *testing.T) {
	before := view.TaskView{ID: "j.0", Token: 4, Site: "a", Phase: view.PhaseRunning}
	at := func(token grid.Token, site grid.SiteID, phase view.Phase) view.TaskView {
		return view.TaskView{ID: "j.0", Token: token, Site: site, Phase: phase}
	}
	moving := at(4, "a", view.PhaseRunning)
	moving.Move = &view.MoveView{Phase: "saving"}
	stays := moving
	stays.Move = &view.MoveView{Phase: view.MoveStays, Reason: "no other site offers"}
	for name, c := range map[string]struct {
		task          view.TaskView
		looks         int
		want          string // of what is said when it is settled
		went, settled bool
	}{
		"asked just now":    {at(4, "a", view.PhaseRunning), 0, "", false, false},
		"its state is due":  {moving, 100, "", false, false},
		"it has left":       {at(4, "", view.PhaseWaiting), 100, "", false, false},
		"another is told":   {at(5, "b", view.PhaseAwarded), 9, "", true, false},
		"runs elsewhere":    {at(5, "b", view.PhaseRunning), 9, "moved from a to b", true, true},
		"back where it was": {at(5, "a", view.PhaseRunning), 9, "goes on at a again", false, true},
		"nobody offers":     {stays, 1, "no other site offers", false, true},
		"nothing is shown":  {at(4, "a", view.PhaseRunning), 5, "stays on a", false, true},
		"it has ended":      {at(4, "a", view.PhaseDone), 0, "has ended on a", true, true},
	} {
		text, went, settled := moveOutcome(before, c.task, c.looks)
		if settled != c.settled || settled && (went != c.went || !strings.Contains(text, c.want)) {
			t.Errorf("%s: %q, went %t, settled %t", name, text, went, settled)
		}
	}
}
