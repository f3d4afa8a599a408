package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestTimesAreUTC(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("x", 3600)
	data, err := json.Marshal(view.JobView{
		Submitted: view.At(time.Date(2026, 1, 2, 3, 4, 5, 0, zone)),
	})
	want := `{"id":"","kind":"","phase":"","count":0,"tasks":null,` +
		`"submitted":"2026-01-02T02:04:05Z","moves":0,"offers":0}`
	if err != nil || string(data) != want {
		t.Errorf("got %s, %v\nwant %s", data, err, want)
	}
}

func TestDurationsSurvive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(
			rapid.Int64Range(0, int64(24*time.Hour/time.Microsecond)).Draw(t, "us"),
		) * time.Microsecond
		if got := view.Duration(want.Seconds()); got != want {
			t.Fatalf("Duration(%d in seconds) = %d", want, got)
		}
	})
	for in, want := range map[float64]time.Duration{
		math.Inf(1): math.MaxInt64, math.Inf(-1): math.MinInt64, 1e300: math.MaxInt64,
	} {
		if got := view.Duration(in); got != want {
			t.Errorf("Duration(%v) = %d, want %d", in, got, want)
		}
	}
	if got := view.Duration(math.NaN()); got != 0 {
		t.Errorf("Duration(NaN) = %d", got)
	}
}

func TestPhaseOfJob(t *testing.T) {
	t.Parallel()
	for want, counts := range map[view.Phase]view.PhaseCounts{
		view.PhaseRunning: {view.PhaseRunning: 1, view.PhaseFailed: 3, view.PhaseWaiting: 2},
		view.PhaseWaiting: {view.PhaseWaiting: 1, view.PhaseDone: 5},
		view.PhaseFailed:  {view.PhaseDone: 5, view.PhaseFailed: 1},
		view.PhaseRefused: {view.PhaseRefused: 1, view.PhaseDone: 1},
		view.PhaseDone:    {view.PhaseDone: 1},
	} {
		if got := counts.Phase(); got != want {
			t.Errorf("%v.Phase() = %s, want %s", counts, got, want)
		}
	}
}

func TestCounterfactuals(t *testing.T) {
	t.Parallel()
	memory := func(want, have int64) grid.Refusal {
		return grid.Refusal{Reason: grid.ReasonMemory, Never: true, Want: want << 30, Have: have << 30}
	}
	got := view.Counterfactuals([]grid.Refusal{
		memory(4, 2), memory(4, 3), memory(4, 2),
		{Reason: grid.ReasonCPUs, Want: 2000, Have: 500},
		{Reason: grid.ReasonPaused},
		{Reason: grid.ReasonCPUs, Want: 2000}, // nothing is left: to ask for less is of no use
		{Reason: grid.ReasonBandwidth, Want: 20e6, Have: 12_500_000},
	})
	want := []string{
		"at most 2.0 GiB of memory: 3 more sites", "at most 0.5 cores: 1 more site",
		"at most 3.0 GiB of memory: 1 more site", "at most 12.5 Mbit/s of bandwidth: 1 more site",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Counterfactuals (-want +got):\n%s", diff)
	}
}

// TestEventLogAgainstAList reads a small ring and holds it against a list that
// forgets nothing.
func TestEventLogAgainstAList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 5).Draw(t, "capacity")
		first := rapid.Uint64Range(1, 9).Draw(t, "first")
		log := view.NewEventLog(capacity, first)
		n := rapid.IntRange(1, 12).Draw(t, "events")
		for range n {
			log.Append(view.Event{Kind: "x"})
		}
		last := first + uint64(n) - 1
		oldest := max(first, last+1-min(last, uint64(capacity)))
		after := rapid.Uint64Range(0, last-1).Draw(t, "after")
		events, err := log.EventsAfter(context.Background(), after, 100)
		if err != nil || log.Last() != last {
			t.Fatal(err, log.Last())
		}
		if gap := after > 0 && after+1 < oldest; gap != (events[0].Kind == "gap") {
			t.Fatalf("gap %v, events %v", gap, events)
		}
		if events[0].Kind == "gap" {
			events = events[1:]
		}
		for i, e := range events {
			if e.ID != max(after+1, oldest)+uint64(i) {
				t.Fatalf("after %d: %v", after, events)
			}
		}
		if events[len(events)-1].ID != last {
			t.Fatalf("the newest is missing: %v", events)
		}
	})
}

func TestEventLogWaits(t *testing.T) {
	t.Parallel()
	log := view.NewEventLog(4, 1)
	got := make(chan uint64)
	go func() {
		events, err := log.EventsAfter(context.Background(), 0, 1)
		if err != nil || len(events) != 1 {
			t.Errorf("EventsAfter = %v, %v", events, err)
			close(got)
			return
		}
		got <- events[0].ID
	}()
	log.Append(view.Event{Kind: "x"})
	if id := <-got; id != 1 {
		t.Errorf("event %d, want 1", id)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := log.EventsAfter(ctx, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("EventsAfter with a context that ended: %v", err)
	}
}

func TestEventsFromNow(t *testing.T) {
	t.Parallel()
	log := view.NewEventLog(4, 7)
	for range 3 {
		log.Append(view.Event{Kind: "old"})
	}
	events, err := log.EventsAfter(t.Context(), view.FromNow, 100)
	if err != nil || len(events) != 1 || events[0].ID != 9 || events[0].Kind != "now" {
		t.Fatalf("EventsAfter(FromNow) = %v, %v, want one of kind now with the newest ID, 9", events, err)
	}
	log.Append(view.Event{Kind: "new"})
	if events, err = log.EventsAfter(t.Context(), events[0].ID, 100); err != nil || len(events) != 1 ||
		events[0].Kind != "new" {
		t.Errorf("then %v, %v, want what is new", events, err)
	}
}

func TestProblemsAreKnown(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		400: grid.ErrInvalid, 401: view.ErrDenied, 403: view.ErrDenied, 404: view.ErrNotFound,
		409: view.ErrConflict, 413: view.ErrTooLarge, 503: view.ErrBusy,
	} {
		if err := error(&view.Problem{Status: status}); !errors.Is(err, want) {
			t.Errorf("%d is not %v", status, want)
		}
	}
	p := &view.Problem{Status: 400, Detail: "too long", Field: "name", Remedy: "shorten it"}
	if got, want := p.Error(), "name: too long (shorten it)"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	free := func(n int64) *view.MachineView { return &view.MachineView{FreeDiskBytes: &n} }
	for _, c := range []struct {
		name    string
		machine *view.MachineView
		want    bool
	}{
		{"nobody looked", nil, false},
		{"unknown", &view.MachineView{}, false},
		{"full", free(0), true},
		{"nearly full", free(1 << 20), true},
		{"enough", free(1 << 30), false},
	} {
		if got := c.machine.DiskFull(); got != c.want {
			t.Errorf("%s: full %t, want %t", c.name, got, c.want)
		}
	}
}
