package supervise

import (
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What nothing could end is named, so that somebody can: how many, and the first one with
// its process. Where nothing is left there is no error.
func TestWhatCouldNotBeEnded(t *testing.T) {
	t.Parallel()
	if err := stillThere(nil); err != nil {
		t.Error("nothing is left:", err)
	}
	left := []lrm.Record{
		{
			Attempt:    grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 7},
			Supervisor: lrm.Identity{PID: 4711},
		},
		{Supervisor: lrm.Identity{PID: 12}},
	}
	for n := 1; n <= len(left); n++ {
		err := stillThere(left[:n])
		if err == nil {
			t.Fatalf("no error with %d left", n)
		}
		for _, want := range []string{
			[]string{"1 attempts", "2 attempts"}[n-1],
			left[0].Attempt.String(), "process 4711", "kill it",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%d left: %q does not say %q", n, err, want)
			}
		}
	}
}
