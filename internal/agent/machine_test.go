package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

func TestPlanningReachesTheMachine(t *testing.T) {
	t.Parallel()
	c := site.Default("12D3KooWself", grid.Capability{})
	owner := Planning{
		Policy: "lst", Backfill: "easy", Horizon: time.Hour, Promised: 80, Strangers: 10, Submitter: 25,
		Project: 50,
		Ahead:   2 * time.Hour, Longest: 3 * time.Hour, Fairshare: true, Overestimate: 0.5,
	}
	if err := owner.apply(&c); err != nil {
		t.Fatal(err)
	}
	want := site.Default("12D3KooWself", grid.Capability{})
	want.Planning = site.Planning{
		Policy: grid.PolicyLST, Backfill: grid.BackfillEASY, Horizon: time.Hour,
		Promised: 80, Strangers: 10, Submitter: 25, Project: 50,
		Ahead: 2 * time.Hour, Longest: 3 * time.Hour, Fairshare: true, Overestimate: 0.5,
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	for _, wrong := range []Planning{{Policy: "best"}, {Backfill: "all"}} {
		if err := wrong.apply(&c); err == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
	before := c
	if err := (Planning{}).apply(&c); err != nil || cmp.Diff(before, c) != "" {
		t.Errorf("nothing said, something changed: %v", err)
	}
}
