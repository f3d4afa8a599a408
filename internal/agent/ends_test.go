package agent_test

import (
	"context"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// However a job ends, an event says so by its kind, and a look then finds that it has ended.
func TestTheEndOfAJobIsTold(t *testing.T) {
	t.Parallel()
	a, _ := pair(t)
	for _, c := range []struct {
		args []string
		want view.Phase
	}{
		{[]string{"exit=0"}, view.PhaseDone},
		{[]string{"exit=3"}, view.PhaseFailed},
		{[]string{"run=100s"}, view.PhaseCancelled},
		{nil, view.PhaseRefused},
	} {
		job := a.job(t, c.args...)
		if c.want == view.PhaseRefused {
			job.Spec.Need.MilliCPUs = 1_000_000
		}
		id := a.submit(t, job)
		if c.want == view.PhaseCancelled {
			a.await(t, id, view.PhaseRunning)
			if err := a.Cancel(t.Context(), id.Job); err != nil {
				t.Fatal(err)
			}
		}
		a.hearEnd(t, id.Job)
		got, err := a.Job(t.Context(), id.Job)
		if err != nil || got.Status.Phase != c.want {
			t.Errorf("%q: when its end is told it is %s, %v; want %s", c.args, got.Status.Phase,
				err, c.want)
		}
	}
}

// hearEnd waits until an event tells that a job has ended.
func (n *node) hearEnd(t *testing.T, id grid.JobID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), agent.Patience)
	defer cancel()
	for last := uint64(0); ; {
		events, err := n.EventsAfter(ctx, last, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if last = e.ID; e.Job == id && e.EndsJob() {
				return
			}
		}
	}
}
