package view_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
				Checkpoint: grid.Saving{Every: 5 * time.Minute},
			},
			Count: 3, TTL: time.Second, After: []grid.JobID{"bbbbbbbbbbbbbbbb"}, Split: grid.SplitIfNeeded,
			CommBytes: 7,
		},
		"flooded": {
			Spec: grid.Spec{
				Kind: grid.KindCommand, Args: []string{"x"}, Need: need, Runtime: time.Minute,
				Weights: grid.DefaultWeights(),
			},
			Count: 1, TTL: time.Second, Flood: true, Retries: 2, MaxFailures: 5,
		},
		"in copies": {
			Spec: grid.Spec{
				Kind: grid.KindCommand, Args: []string{"x"}, Need: need, Runtime: time.Minute,
				Weights: grid.DefaultWeights(),
			},
			Count: 1, TTL: time.Second, Redundancy: grid.Redundancy{Replicas: 3, Agreement: 2},
		},
		"compared now and then": {
			Spec: grid.Spec{
				Kind: grid.KindCommand, Args: []string{"x"}, Need: need, Runtime: time.Minute,
				Weights: grid.DefaultWeights(),
			},
			Count: 1, TTL: time.Second, Redundancy: grid.Redundancy{Verify: .02},
		},
		"reservation": {
			Spec: grid.Spec{
				Kind: grid.KindReservation, Need: need, Runtime: time.Hour, Weights: grid.DefaultWeights(),
				Window: grid.Window{At: at},
			},
			Count: 2, TTL: time.Second,
		},
		"with data": jobWithData(at),
	} {
		text, err := json.Marshal(view.FromJob(want))
		if err != nil {
			t.Fatal(err)
		}
		var sent view.JobSpec
		if err = json.Unmarshal(text, &sent); err != nil {
			t.Fatal(err)
		}
		got, err := sent.Job()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// jobWithData is an array of modules that asks for all that commands and reservations do not.
func jobWithData(at time.Time) grid.Job {
	return grid.Job{
		Spec: grid.Spec{
			Name: "n", Kind: grid.KindWasm, Module: grid.Input{CID: "m", Bytes: 9}, Args: []string{"x", ""},
			Env:     []grid.EnvVar{{Name: "A", Value: "1"}, {Name: "B"}},
			Inputs:  []grid.Input{{Path: "/in", CID: "i", Bytes: 3}, {Path: "/dir", CID: "d", Dir: true}},
			Outputs: []grid.Output{{Path: "/out", To: "{{item}}.txt"}, {Path: "/log"}},
			Need: grid.Resources{
				MilliCPUs: 1500, MemoryBytes: 1 << 30, DiskBytes: 1 << 20, MFLOPS: 7, NetBps: 8,
			},
			OS: "linux", Arch: "amd64", Runtime: time.Minute, TimeLimit: time.Hour,
			Window:  grid.Window{NotBefore: at, Deadline: at.Add(time.Hour)},
			Map:     grid.MapSeconds,
			Weights: grid.Weights{C: 1, M: 2, F: 3, P: 4},
			Axes: []grid.Axis{
				{Dimension: grid.Computation, Weight: 1}, {Dimension: grid.Latency, Weight: 0.5},
			},
			Unattended: grid.UnattendedFinish,
			Signature: grid.Signature{
				Of: grid.SignedTemplate, Digest: strings.Repeat("0f", 64), Text: "t",
				Items: 2, Root: strings.Repeat("f0", 32),
			},
		},
		Count: 2, TTL: 1500 * time.Millisecond,
		Items: []grid.Item{
			{Value: "one", Inputs: []grid.Input{{Path: "/one", CID: "o", Bytes: 1}}, Proof: "p"},
			{Value: "two"},
		},
	}
}

// What a user leaves out has its default, and a moment counts in whatever zone it is sent.
func TestShortestJob(t *testing.T) {
	t.Parallel()
	var sent view.JobSpec
	text := `{"kind": "command", "args": ["x"], "count": 1, "runtime_seconds": 60, "ttl_seconds": 1,
		"split": "", "at": "2026-05-01T13:00:00+01:00",
		"need": {"milli_cpus": 1, "memory_bytes": 1, "disk_bytes": 1, "mflops": 1}}`
	if err := json.Unmarshal([]byte(text), &sent); err != nil {
		t.Fatal(err)
	}
	got, err := sent.Job()
	want := grid.Job{
		Spec: grid.Spec{
			Kind: grid.KindCommand, Args: []string{"x"}, Runtime: time.Minute,
			Need:   grid.Resources{MilliCPUs: 1, MemoryBytes: 1, DiskBytes: 1, MFLOPS: 1},
			Window: grid.Window{At: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)},
			Map:    grid.MapThesis, Weights: grid.DefaultWeights(), Unattended: grid.UnattendedFreeze,
		},
		Count: 1, TTL: time.Second,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A job with a word that is not known is not taken, and the message names the word.
func TestUnknownWords(t *testing.T) {
	t.Parallel()
	for text, change := range map[string]func(*view.JobSpec){
		`kind "wish"`:        func(s *view.JobSpec) { s.Kind = "wish" },
		`map "moon"`:         func(s *view.JobSpec) { s.Map = "moon" },
		`unattended "go"`:    func(s *view.JobSpec) { s.Unattended = "go" },
		`overrun "pause"`:    func(s *view.JobSpec) { s.Overrun = "pause" },
		`auto, off, every`:   func(s *view.JobSpec) { s.Checkpoint = "never" },
		`split "always"`:     func(s *view.JobSpec) { s.Split = "always" },
		`have "many"`:        func(s *view.JobSpec) { s.Replicas = "many" },
		`dimension "depth"`:  func(s *view.JobSpec) { s.Dimensions[0].Dimension = "depth" },
		"check job: invalid": func(s *view.JobSpec) { s.Count = 0 },
	} {
		sent := view.FromJob(jobWithData(time.Time{}))
		sent.NotBefore, sent.Deadline = view.Time{}, view.Time{}
		change(&sent)
		got, err := sent.Job()
		if !errors.Is(err, grid.ErrInvalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, want one with %q", err, text)
		}
		if diff := cmp.Diff(grid.Job{}, got); diff != "" {
			t.Errorf("%s: beside the error there is %s", text, diff)
		}
	}
}

// A reservation's task has words of its own, and has ended where a job's task has.
func TestPhasesOfReservations(t *testing.T) {
	t.Parallel()
	own := map[view.Phase]view.Phase{
		view.PhaseStaging: view.PhaseHeld, view.PhasePreparing: view.PhaseOpen,
		view.PhaseRunning: view.PhaseOpen, view.PhaseFrozen: view.PhaseOpen,
		view.PhaseSuspended: view.PhaseOpen, view.PhaseDone: view.PhaseOver,
		view.PhaseFailed: view.PhaseLost, view.PhaseCancelled: view.PhaseReleased,
	}
	for _, phase := range view.Phases() {
		want, has := own[phase]
		if !has {
			want = phase
		}
		if got := phase.OfReservation(); got != want {
			t.Errorf("%s.OfReservation() = %s, want %s", phase, got, want)
		}
		if phase.Ended() != want.Ended() {
			t.Errorf("%s has ended: %v, %s: %v", phase, phase.Ended(), want, want.Ended())
		}
	}
}

// A job has the phase of its most telling task: of each two phases, the one named first here.
func TestPhaseOfJob(t *testing.T) {
	t.Parallel()
	order := []view.Phase{
		"open", "running", "preparing", "frozen", "suspended", "held", "staging", "awarded", "announced",
		"waiting",
		"refused", "lost", "failed", "released", "cancelled", "over", "done",
	}
	all := view.Phases()
	slices.Sort(all)
	if diff := cmp.Diff(all, slices.Sorted(slices.Values(order))); diff != "" {
		t.Errorf("the phases are others:\n%s", diff)
	}
	for i, first := range order {
		if i > slices.Index(order, view.PhaseWaiting) != first.Ended() {
			t.Errorf("%s has ended: %t", first, first.Ended())
		}
		for _, second := range order[i:] {
			counts := view.PhaseCounts{first: 1, second: 5}
			if got := counts.Phase(); got != first {
				t.Errorf("%v.Phase() = %s, want %s", counts, got, first)
			}
		}
	}
	for _, none := range []view.PhaseCounts{nil, {view.PhaseDone: 0}} {
		if got := none.Phase(); got != view.PhaseWaiting {
			t.Errorf("%v.Phase() = %s, want waiting", none, got)
		}
	}
}

// A job starts no more when one that it waits for has ended otherwise than well.
func TestWhatKeepsAJobFromStarting(t *testing.T) {
	t.Parallel()
	after := func(phases ...view.Phase) (all []view.Earlier) {
		for _, p := range phases {
			all = append(all, view.Earlier{ID: grid.JobID(p), Phase: p})
		}
		return all
	}
	for _, c := range []struct {
		name string
		job  view.JobView
		want view.Earlier
	}{
		{
			"the first that failed", view.JobView{
				Phase: view.PhaseCancelled, After: after("", "done", "over", "running", "failed", "lost"),
			}, view.Earlier{ID: "failed", Phase: view.PhaseFailed},
		},
		{
			"refused",
			view.JobView{Phase: view.PhaseRefused, After: after("cancelled")},
			view.Earlier{ID: "cancelled", Phase: view.PhaseCancelled},
		},
		{
			"all were done",
			view.JobView{Phase: view.PhaseCancelled, After: after("done", "over")},
			view.Earlier{},
		},
		{"it goes on", view.JobView{Phase: view.PhaseWaiting, After: after("failed")}, view.Earlier{}},
		{
			"it had started", view.JobView{
				Phase: view.PhaseCancelled, Started: view.At(time.Unix(1, 0)), After: after("failed"),
			}, view.Earlier{},
		},
	} {
		if got, kept := c.job.NotStarted(); got != c.want || kept != (c.want != view.Earlier{}) {
			t.Errorf("%s: %+v, %t, want %+v", c.name, got, kept, c.want)
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
		refusal:                                              made.Add(90 * time.Second),
		{Reason: grid.ReasonWindow, Want: 30}:                {},
		{Reason: grid.ReasonWindow, Have: 1}:                 made.Add(time.Second),
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
		0: "0 %", 0.004: "0 %", 0.006: "1 %", 0.97: "97 %", 0.99: "99 %", 0.991: "99.1 %",
		0.9949: "99.4 %", 0.9999: "99.9 %", 1: "100 %",
	} {
		if got := view.Percent(&p); got != want {
			t.Errorf("percent(%v) = %q, want %q", p, got, want)
		}
	}
	if got := view.Percent(nil); got != "" {
		t.Errorf("percent(nil) = %q", got)
	}
}

// Each number of an offer stands in its row, with what is not known of it.
func TestRowOfAnOffer(t *testing.T) {
	t.Parallel()
	p := func(v float64) *float64 { return &v }
	offer := grid.Offer{
		Site: "s", Firm: true, TasksNow: 3,
		Parts: grid.Parts{
			X: 1, Y: 2, Z: 0.5, Distance: 4, Wait: time.Second, StageIn: 20 * time.Second,
			Run: 5 * time.Minute, PotentialUnknown: true,
			Further: []grid.Coordinate{
				{Dimension: grid.Price, Value: 6, Known: true}, {Dimension: grid.Latency, Value: 7},
			},
		},
	}
	want := view.OfferRow{
		Site: "s", Name: "attic", Rank: 2, X: p(1), Y: p(2), Z: p(0.5), Distance: p(4), Seconds: p(321),
		WaitSeconds: 1, StageSeconds: 20, RunSeconds: 300, Firm: true, TasksNow: 3,
		Further: []view.Further{{Dimension: "price", Value: 6}},
		LeftOut: []string{"latency", "potential of the data's holder"},
	}
	if diff := cmp.Diff(want, view.FromOffer(offer, "attic", 2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	none := want.Timed(time.Time{}, true)
	none.Z = nil
	none.Kept = nil
	if none = none.Timed(time.Time{}, true); none.Kept != nil {
		t.Errorf("whether a site stays is not known, and still it says %v", *none.Kept)
	}
}

// A row says on which axis a site is farther than the nearest one.
func TestWhyASiteIsNotTheNearest(t *testing.T) {
	t.Parallel()
	for d, want := range map[grid.Dimension]string{
		0:                 "",
		grid.Computation:  "computation 0.25, the nearest has 0.125",
		grid.DataMoved:    "data 0.25, the nearest has 0.125",
		grid.Availability: "likely to leave: 25 %, the nearest: 12 %",
	} {
		if got := view.Behind(d, 0.25, 0.125); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A refusal's row has its sentence, and what to ask for where less would do.
func TestRowOfARefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason     grid.Reason
		want, have int64
		less       string
	}{
		{grid.ReasonCPUs, 2000, 500, "at most 0.5 cores"},
		{grid.ReasonCPUs, 2000, 1960, "at most 1.96 cores"}, // who asks for it is not refused again
		{grid.ReasonCPUs, 2000, 30, "at most 0.03 cores"},
		{grid.ReasonMemory, 2, 1, "at most 1 B of memory"},
		{grid.ReasonMemory, 2 << 30, 2<<30 - 1, "at most 1.9 GiB of memory"},
		{grid.ReasonMemory, 2 << 30, 1<<30 - 1, "at most 1023.9 MiB of memory"},
		{grid.ReasonDisk, 9 << 50, 8 << 50, "at most 8.0 PiB of disk"},
		{grid.ReasonDisk, 4 << 30, 3 << 30, "at most 3.0 GiB of disk"},
		{grid.ReasonBandwidth, 20e6, 12_500_000, "at most 12.5 Mbit/s of bandwidth"},
		{grid.ReasonComputation, 2000, 1500, "at most 1.5 GFLOPS"},
		{grid.ReasonMemory, 2, 2, ""}, // it is as much as was asked for
		{grid.ReasonMemory, 2, 0, ""}, // there is nothing that could be asked for
		{grid.ReasonWindow, 60, 30, ""},
	} {
		r := grid.Refusal{Reason: c.reason, Never: true, Want: c.want, Have: c.have}
		want := view.OfferRow{
			Site: "s", Name: "attic", Reason: c.reason, Never: true, Refusal: r.Explain(),
			Counterfactual: c.less,
		}
		if diff := cmp.Diff(want, view.FromRefusal("s", "attic", r)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", r, diff)
		}
	}
}

// What a site is said to have room for is asked for, and is no more than it has.
func TestCounterfactualsCanBeAskedFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		have := rapid.Int64Range(1, 8<<50).Draw(t, "bytes")
		said := view.Counterfactuals([]grid.Refusal{{
			Reason: grid.ReasonMemory, Want: 9 << 50, Have: have,
		}})
		text := strings.TrimPrefix(strings.TrimSuffix(said[0], " of memory: 1 more site"), "at most ")
		asked, err := grid.ParseBytes(strings.ReplaceAll(text, " ", ""))
		if err != nil || asked > have || float64(asked) < .9*float64(have)-1 {
			t.Fatalf("%q of %d bytes is %d, %v", text, have, asked, err)
		}
	})
}
