package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A job whose command is to be saved whole goes only to a site that says that it can: an older one,
// which does not know of that, offers, and counts as one that never fits. Other jobs go there.
func TestOnlySitesThatSaveGetWhatIsSavedWhole(t *testing.T) {
	for _, whole := range []bool{true, false} {
		b := newBench(t, nil, "old")
		b.do(step.PeerSeen{Site: "saves", Capability: grid.Capability{Saves: true}})
		job := testJob(1)
		job.Spec.Kind, job.Spec.Module = grid.KindCommand, grid.Input{}
		job.Spec.Args, job.Spec.Checkpoint.Whole = []string{"x"}, whole
		id := b.submit(job)
		effects := append(b.offers(id, 1, "old", "saves"), b.pass(time.Second)...)
		to, award := one[protocol.Award](t, effects)
		want := grid.SiteID("old") // the nearer one
		if whole {
			want = "saves"
		}
		if to != want || award.Spec.Checkpoint.Whole != whole {
			t.Errorf("whole %v: %s got it, want %s", whole, to, want)
		}
		if got := b.m.asked(id).answers["old"].neverFits(); got != whole {
			t.Errorf("whole %v: the older site never fits: %v", whole, got)
		}
	}
}
