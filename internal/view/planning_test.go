package view_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestJobsSurvive(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	need := grid.Resources{MilliCPUs: 1000, MemoryBytes: 1, DiskBytes: 1, MFLOPS: 1}
	for name, want := range map[string]grid.Job{
		"placed": {
			Spec: grid.Spec{
				Kind: grid.KindCommand, Args: []string{"x"}, Need: need, Runtime: time.Minute,
				Weights: grid.DefaultWeights(),
				Window:  grid.Window{At: at, Deadline: at.Add(time.Hour)}, Priority: -3, Project: "p",
				Reservation: "aaaaaaaaaaaaaaaa", Overrun: grid.OverrunStop,
			},
			Count: 3, TTL: time.Second, After: []grid.JobID{"bbbbbbbbbbbbbbbb"}, Split: grid.SplitIfNeeded,
			CommBytes: 7,
		},
		"flooded": {
			Spec: grid.Spec{
				Kind: grid.KindCommand, Args: []string{"x"}, Need: need, Runtime: time.Minute,
				Weights: grid.DefaultWeights(),
			},
			Count: 1, TTL: time.Second, Flood: true,
		},
		"reservation": {
			Spec: grid.Spec{
				Kind: grid.KindReservation, Need: need, Runtime: time.Hour, Weights: grid.DefaultWeights(),
				Window: grid.Window{At: at},
			},
			Count: 2, TTL: time.Second,
		},
	} {
		got, err := view.FromJob(want).Job()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, wrong := range []view.JobSpec{
		{Kind: "wish"}, {Kind: "command", Overrun: "pause"}, {Kind: "command", Split: "always"},
	} {
		if _, err := wrong.Job(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%+v was taken: %v", wrong, err)
		}
	}
}

func TestPhasesOfReservations(t *testing.T) {
	t.Parallel()
	for phase, want := range map[view.Phase]view.Phase{
		view.PhaseWaiting: view.PhaseWaiting, view.PhaseAwarded: view.PhaseAwarded,
		view.PhaseStaging: view.PhaseHeld,
		view.PhaseRunning: view.PhaseOpen, view.PhaseFrozen: view.PhaseOpen,
		view.PhaseDone:   view.PhaseOver,
		view.PhaseFailed: view.PhaseLost, view.PhaseCancelled: view.PhaseReleased,
		view.PhaseRefused: view.PhaseRefused,
	} {
		if got := phase.OfReservation(); got != want {
			t.Errorf("%s.OfReservation() = %s, want %s", phase, got, want)
		}
		if phase.Ended() != want.Ended() {
			t.Errorf("%s has ended: %v, %s: %v", phase, phase.Ended(), want, want.Ended())
		}
	}
	for want, counts := range map[view.Phase]view.PhaseCounts{
		view.PhaseOpen:     {view.PhaseOpen: 1, view.PhaseHeld: 2, view.PhaseReleased: 1},
		view.PhaseHeld:     {view.PhaseHeld: 1, view.PhaseAwarded: 1, view.PhaseLost: 1},
		view.PhaseLost:     {view.PhaseLost: 1, view.PhaseOver: 1},
		view.PhaseReleased: {view.PhaseReleased: 1, view.PhaseOver: 1},
	} {
		if got := counts.Phase(); got != want {
			t.Errorf("%v.Phase() = %s, want %s", counts, got, want)
		}
	}
}

func TestKeptTogether(t *testing.T) {
	t.Parallel()
	half, most := 0.5, 0.9
	place := func(site grid.SiteID, kept *float64) view.ReservedPlace {
		return view.ReservedPlace{Site: site, Kept: kept}
	}
	for name, c := range map[string]struct {
		places []view.ReservedPlace
		want   *float64
	}{
		"none":      {nil, nil},
		"one":       {[]view.ReservedPlace{place("a", &most)}, &most},
		"same site": {[]view.ReservedPlace{place("a", &half), place("a", &half)}, &half},
		"two sites": {
			[]view.ReservedPlace{place("a", &half), place("b", &half)},
			func() *float64 { q := 0.25; return &q }(),
		},
		"not known":  {[]view.ReservedPlace{place("a", &half), place("b", nil)}, nil},
		"not placed": {[]view.ReservedPlace{place("a", &half), {}}, nil},
	} {
		if diff := cmp.Diff(c.want, view.KeptTogether(c.places)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

func TestTimesOfAnswers(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	offer := grid.Offer{
		Site:  "s",
		Parts: grid.Parts{Z: 0.25, Wait: 20 * time.Second, StageIn: 10 * time.Second, Run: time.Minute},
	}
	row := view.FromOffer(offer, "s", 1).Timed(made, true)
	if !row.Start.Equal(made.Add(30*time.Second)) || !row.Finish.Equal(made.Add(90*time.Second)) ||
		row.Kept == nil || *row.Kept != 0.75 {
		t.Errorf("offer %+v", row)
	}
	if row = view.FromOffer(offer, "s", 1).Timed(made, false); row.Kept != nil {
		t.Errorf("best effort is kept with %v", *row.Kept)
	}
	refusal := grid.Refusal{Reason: grid.ReasonWindow, Want: 30, Have: 90}
	if row = view.FromRefusal("s", "s", refusal).Timed(made, true); !row.Start.IsZero() ||
		!row.Finish.IsZero() {
		t.Errorf("refusal %+v", row)
	}
	for r, want := range map[grid.Refusal]time.Time{
		refusal:                               made.Add(90 * time.Second),
		{Reason: grid.ReasonWindow, Want: 30}: {},
		{Reason: grid.ReasonMemory, Want: 30, Have: 20}:      {},
		{Reason: grid.ReasonWindow, Want: 30, Have: 1 << 62}: made.Add(grid.MaxRuntime),
	} {
		if got := view.CouldPromise(r, made); !got.Equal(want) {
			t.Errorf("CouldPromise(%+v) = %s, want %s", r, got, want)
		}
	}
}

func TestPlanningWords(t *testing.T) {
	t.Parallel()
	for _, policy := range grid.Policies() {
		for _, backfill := range grid.Backfills() {
			if err := (view.Planning{Policy: policy, Backfill: backfill}).Validate(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, p := range []view.Planning{
		{Policy: "fcfs"}, {Backfill: "easy"}, {Policy: "FCFS", Backfill: "easy"},
	} {
		if err := p.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%+v was taken: %v", p, err)
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for p, want := range map[float64]string{
		0: "0 %", 0.97: "97 %", 0.9949: "99.4 %", 0.9999: "99.9 %", 1: "100 %",
	} {
		if got := view.Percent(&p); got != want {
			t.Errorf("percent(%v) = %q, want %q", p, got, want)
		}
	}
	if got := view.Percent(nil); got != "" {
		t.Errorf("percent(nil) = %q", got)
	}
}
