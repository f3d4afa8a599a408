package backend

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestPhasesAsPeopleSeeThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase  grid.Phase
		reason grid.Reason
		want   view.Phase
	}{
		{grid.PhaseRunning, grid.ReasonNone, view.PhaseRunning},
		{grid.PhaseRunning, grid.ReasonPreparing, view.PhasePreparing},
		{grid.PhaseCollecting, grid.ReasonNone, view.PhaseRunning},
		{grid.PhaseFrozen, grid.ReasonNone, view.PhaseFrozen},
		{grid.PhaseFrozen, grid.ReasonPaused, view.PhaseSuspended},
	} {
		if got := phaseOf(broker.TaskState{Phase: c.phase, Standing: c.reason}); got != c.want {
			t.Errorf("phase %s for reason %q: %s, want %s", c.phase, c.reason, got, c.want)
		}
	}
}
