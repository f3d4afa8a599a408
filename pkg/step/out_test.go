package step

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestOutKeepsTheOrder(t *testing.T) {
	var o Out
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fact := NewFact("job/1", "j", 1)
	id := grid.AttemptID{Task: grid.TaskID{Job: "j"}, Token: 1}

	o.Persist(fact)
	o.Send("a", protocol.Cancel{Job: "j"})
	o.Broadcast(protocol.Clear{Job: "j"})
	o.SetTimer("ttl", "j", at)
	o.StopTimer("lease", "")
	o.Emit(StopAttempt{Attempt: id})
	o.Report(LevelWarn, "lost", Report{Event: "another", Level: LevelInfo, Attempt: id, Value: 2})

	want := []Effect{
		Persist{Fact: fact},
		Send{To: "a", Message: protocol.Cancel{Job: "j"}},
		Broadcast{Message: protocol.Clear{Job: "j"}},
		SetTimer{Key: TimerKey{Name: "ttl", ID: "j"}, At: at},
		StopTimer{Key: TimerKey{Name: "lease"}},
		StopAttempt{Attempt: id},
		Report{Event: "lost", Level: LevelWarn, Attempt: id, Value: 2},
	}
	if diff := cmp.Diff(want, o.Take()); diff != "" {
		t.Errorf("Take (-want +got):\n%s", diff)
	}
	if again := o.Take(); again != nil {
		t.Errorf("a second Take = %v, want nil", again)
	}
}

// Who wants reports from a level on gets no lower ones, and all else.
func TestOutLeavesReportsOut(t *testing.T) {
	o := Out{Level: LevelInfo}
	o.Report(LevelDebug, "detail", Report{})
	o.StopTimer("lease", "")
	o.Report(LevelInfo, "life", Report{})
	o.Report(LevelWarn, "loss", Report{})
	want := []Effect{
		StopTimer{Key: TimerKey{Name: "lease"}},
		Report{Event: "life", Level: LevelInfo},
		Report{Event: "loss", Level: LevelWarn},
	}
	if diff := cmp.Diff(want, o.Take()); diff != "" {
		t.Errorf("Take (-want +got):\n%s", diff)
	}
}

func TestOutTakenEffectsAreTheCallers(t *testing.T) {
	var o Out
	o.StopTimer("first", "")
	taken := o.Take()
	o.StopTimer("second", "")
	if want := []Effect{StopTimer{Key: TimerKey{Name: "first"}}}; !slices.Equal(taken, want) {
		t.Errorf("what was taken became %v", taken)
	}
}

func TestOutFactsAreWhatWasPersisted(t *testing.T) {
	var o Out
	if got := string(o.Facts().Encode()); got != "[]" {
		t.Errorf("facts of a new Out = %s", got)
	}
	o.Facts().Apply(NewFact("job/1", "restored", 1))
	if effects := o.Take(); effects != nil {
		t.Errorf("restoring emits %v", effects)
	}
	o.Persist(NewFact("job/1", "kept", 2))
	o.Persist(NewFact("job/1", "removed", 3))
	o.Persist(Fact{Kind: "job/1", Key: "removed"})
	o.Take()
	want := []Fact{NewFact("job/1", "kept", 2), NewFact("job/1", "restored", 1)}
	if diff := cmp.Diff(want, o.Facts().All()); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}
