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

// A moment has its day where that is not the day of the clock, in whose zone it is told.
func TestTheClock(t *testing.T) {
	east := time.FixedZone("east", 2*60*60)
	now := time.Date(2026, 3, 2, 1, 0, 0, 0, east)
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, ""},
		{time.Date(2026, 3, 1, 22, 0, 1, 0, time.UTC), "00:00:01"},
		{time.Date(2026, 3, 1, 21, 59, 59, 0, time.UTC), "2026-03-01 23:59:59"},
	} {
		if got := view.At(c.at).Clock(now); got != c.want {
			t.Errorf("%s is told as %q, want %q", c.at, got, c.want)
		}
	}
}

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

func TestTimesThatJSONCannotSay(t *testing.T) {
	t.Parallel()
	if text, err := view.At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)).MarshalJSON(); err == nil ||
		text != nil {
		t.Errorf("the year 10000 is %q, %v", text, err)
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
		-1e300: math.MinInt64, (1 << 63) / 1e9: math.MaxInt64, // the first that is too long
		0.6e-9: 1, 0.4e-9: 0, -0.6e-9: -1,
	} {
		if got := view.Duration(in); got != want {
			t.Errorf("Duration(%v) = %d, want %d", in, got, want)
		}
	}
	if got := view.Duration(math.NaN()); got != 0 {
		t.Errorf("Duration(NaN) = %d", got)
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

// A reader gets what it has not seen, as much as it asks for, and is told of what is gone.
func TestWhatAReaderGets(t *testing.T) {
	t.Parallel()
	log := view.NewEventLog(3, 7) // of 7 to 11, 9 to 11 are kept
	for range 5 {
		log.Append(view.Event{Kind: "x"})
	}
	gap := view.Event{ID: 8, Kind: "gap", Text: "some events are no longer kept"}
	x := func(id uint64) view.Event { return view.Event{ID: id, Kind: "x"} }
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name  string
		after uint64
		limit int
		want  []view.Event
	}{
		{"a new reader", 0, 10, []view.Event{x(9), x(10), x(11)}},
		{"one that is behind", 7, 10, []view.Event{gap, x(9), x(10), x(11)}},
		{"a gap counts, too", 1, 2, []view.Event{gap, x(9)}},
		{"one that misses nothing", 8, 10, []view.Event{x(9), x(10), x(11)}},
		{"few at a time", 9, 1, []view.Event{x(10)}},
		{"at least one", 8, -1, []view.Event{x(9)}},
		{"the last", 10, 10, []view.Event{x(11)}},
		{"one that has seen all", 11, 10, nil},
		{"one that comes from a newer log", 12, 10, []view.Event{x(9), x(10), x(11)}},
	} {
		got, err := log.EventsAfter(ended, c.after, c.limit)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

// A log keeps one event at least, and numbers from 1 at least.
func TestSmallestEventLog(t *testing.T) {
	t.Parallel()
	log := view.NewEventLog(0, 0)
	if last := log.Last(); last != 0 {
		t.Errorf("the last of no events is %d", last)
	}
	for id := range uint64(2) {
		log.Append(view.Event{Kind: "x"})
		got, err := log.EventsAfter(t.Context(), id, 10)
		if diff := cmp.Diff([]view.Event{{ID: id + 1, Kind: "x"}}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
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
		409: view.ErrConflict, 413: view.ErrTooLarge, 503: view.ErrBusy, 500: nil,
	} {
		if got := errors.Unwrap(&view.Problem{Status: status}); !errors.Is(got, want) {
			t.Errorf("%d is %v, want %v", status, got, want)
		}
	}
	for _, c := range []struct {
		problem view.Problem
		want    string
	}{
		{view.Problem{Title: "Bad Request"}, "Bad Request"},
		{view.Problem{Title: "Bad Request", Detail: "too long"}, "too long"},
		{view.Problem{Detail: "too long", Field: "name"}, "name: too long"},
		{view.Problem{Detail: "too long", Remedy: "shorten it"}, "too long (shorten it)"},
		{
			view.Problem{Detail: "too long", Field: "name", Remedy: "shorten it"},
			"name: too long (shorten it)",
		},
	} {
		if got := c.problem.Error(); got != c.want {
			t.Errorf("Error() = %q, want %q", got, c.want)
		}
	}
}

// Of changes that win as many sites the reason with the lower number comes first, and each
// change is listed once.
func TestOrderOfWhatCouldBeChanged(t *testing.T) {
	t.Parallel()
	got := view.Counterfactuals([]grid.Refusal{
		{Reason: grid.ReasonDisk, Want: 9, Have: 4},
		{Reason: grid.ReasonDisk, Want: 9, Have: 5},
		{Reason: grid.ReasonMemory, Want: 9, Have: 4},
		{Reason: grid.ReasonMemory, Want: 9, Have: 3},
		{Reason: grid.ReasonMemory, Want: 9, Have: 9}, // this one does not refuse for want of it
		{Reason: grid.ReasonComputation, Want: 2000, Have: 1000},
		{Reason: grid.ReasonBandwidth, Want: 4e6, Have: 2e6},
		{Reason: grid.ReasonBandwidth, Want: 6e6, Have: 4e6},
		{Reason: grid.ReasonBandwidth, Want: 4e6, Have: 2e6},
	})
	want := []string{
		"at most 2 Mbit/s of bandwidth: 3 more sites", "at most 4 Mbit/s of bandwidth: 3 more sites",
		"at most 3 B of memory: 2 more sites", "at most 4 B of disk: 2 more sites",
		"at most 4 B of memory: 1 more site", "at most 5 B of disk: 1 more site",
		"at most 1 GFLOPS: 1 more site",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := view.Counterfactuals(nil); got == nil || len(got) != 0 {
		t.Errorf("of no refusals: %#v, want an empty list", got)
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
		{"nearly full", free(view.FullDisk - 1), true},
		{"just enough", free(view.FullDisk), false},
		{"enough", free(1 << 30), false},
	} {
		if got := c.machine.DiskFull(); got != c.want {
			t.Errorf("%s: full %t, want %t", c.name, got, c.want)
		}
	}
}
