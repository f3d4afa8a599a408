package site

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// What a submitter was told once may be lost, and it gives up what does not start: it is
// told again from time to time that an attempt runs.
func TestSubmittersAreToldAgainWhatRuns(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	told := 0
	for range 4 * int(tellAgain/time.Second) {
		out := r.advance(time.Second)
		for _, msg := range sent[protocol.Progress](out, alice) {
			if msg.Attempt != id || msg.Phase != grid.PhaseRunning || msg.StartedAgo <= 0 {
				t.Fatalf("told %+v", msg)
			}
			told++
		}
		if asked := sent[protocol.Renew](out, alice); len(asked) > 0 {
			r.receive(alice, protocol.Lease{
				Renewal: asked[len(asked)-1].Renewal, Attempts: []grid.AttemptID{id}, Duration: lease,
			})
		}
	}
	if told < 3 || told > 4 {
		t.Errorf("told %d times within four minutes, want each minute", told)
	}
}

// An attempt that waits for its owner says so before it was started, too: its submitter does
// not take it for one that never starts.
func TestOwnerBusyIsToldBeforeTheStart(t *testing.T) {
	r := newRig(t)
	id := r.accepted(job1, alice, 1)[0]
	out := r.step(ownerBusy())
	want := protocol.Progress{
		Attempt: id, Phase: grid.PhaseStaging, Reason: grid.ReasonOwnerBusy,
	}
	if got := sent[protocol.Progress](out, alice); !slices.Contains(got, want) {
		t.Errorf("told %+v, want %+v", got, want)
	}
}
