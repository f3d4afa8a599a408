package grid

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The data that an attempt left: its outputs, and what it printed if it printed anything.
func TestDataThatAnAttemptLeft(t *testing.T) {
	e := Exit{Outputs: []Produced{{CID: "a"}, {CID: "b"}}}
	if got := e.CIDs(); !slices.Equal(got, []CID{"a", "b"}) {
		t.Errorf("nothing printed: %v", got)
	}
	e.Stdout.CID, e.Stderr.CID = "out", "err"
	if got := e.CIDs(); !slices.Equal(got, []CID{"a", "b", "out", "err"}) {
		t.Errorf("both printed: %v", got)
	}
}

// The tasks' own data is one source without a digest, of the mean size, if there is any.
func TestRequirementNamesItsData(t *testing.T) {
	j := validJob(func(j *Job) {
		j.Spec.Module.Bytes = 7
		j.Spec.Inputs = []Input{{Path: "/i", CID: "bcommon", Bytes: 9}}
		j.Items = []Item{{Inputs: []Input{{Bytes: 10}, {Bytes: 20}}}, {Inputs: []Input{{Bytes: 5}}}}
	})
	source := func(cid CID, n int64) DataSource {
		return DataSource{
			Digest: cid.Digest("home"), Bytes: n, Holders: []SiteID{"me"},
			UploadBps: 100, PotentialBps: 300,
		}
	}
	want := []DataSource{source(someCID, 7), source("bcommon", 9), source("", 35/2)}
	got := j.Requirement("home", "me", Capability{UpBps: 100}, 300).Sources
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, items := range [][]Item{nil, make([]Item, 2)} {
		j.Items = items
		got = j.Requirement("home", "me", Capability{UpBps: 100}, 300).Sources
		if diff := cmp.Diff(want[:2], got); diff != "" {
			t.Errorf("without data of their own: -want +got:\n%s", diff)
		}
	}
	j.Items = []Item{{Inputs: []Input{{Bytes: 1}}}}
	got = j.Requirement("home", "me", Capability{UpBps: 100}, 300).Sources
	if diff := cmp.Diff(append(want[:2], source("", 1)), got); diff != "" {
		t.Errorf("with a byte each: -want +got:\n%s", diff)
	}
	command := Job{Spec: Spec{Kind: KindCommand}}
	if got := command.Requirement("home", "me", Capability{}, 0).Sources; got != nil {
		t.Errorf("a command without inputs: %+v", got)
	}
}

func TestDefaultAxesWeighAlike(t *testing.T) {
	if got, want := DefaultWeights(), (Weights{C: 1, M: 1, F: 1, P: 1}); got != want {
		t.Errorf("weights %+v, want %+v", got, want)
	}
	for i, a := range DefaultAxes() {
		if want := (Axis{Computation + Dimension(i), 1}); a != want {
			t.Errorf("axis %d is %+v, want %+v", i, a, want)
		}
	}
	if n := len(DefaultAxes()); n != 3 {
		t.Errorf("%d axes, want 3", n)
	}
	for i, name := range DimensionNames() {
		d, err := ParseDimension(name)
		if d != Dimension(i+1) || err != nil || d.String() != name {
			t.Errorf("%q is read as %v, %v", name, d, err)
		}
		if own := d == Latency || d == Distrust; d.BySubmitter() != own {
			t.Errorf("the submitter knows %s: %t", d, d.BySubmitter())
		}
	}
	for _, d := range []Dimension{0, lastDimension + 1} {
		if d.BySubmitter() || d.String() == "" {
			t.Errorf("dimension %d: %q, known by the submitter: %t", d, d, d.BySubmitter())
		}
	}
	if d, err := ParseDimension("none"); d != 0 || err == nil {
		t.Errorf("no dimension is read as %v, %v", d, err)
	}
}

// Amounts are told in the unit that people use.
func TestRefusalsNameTheirAmounts(t *testing.T) {
	limit := int64(MaxRuntime / time.Second)
	for want, r := range map[string]Refusal{
		"(wants 4321.5 cores, has 1234.5)":                  {ReasonCPUs, false, 4_321_500, 1_234_500},
		"(wants 2 cores, has 1.96)":                         {ReasonCPUs, false, 2_000, 1_960},
		"(wants 5432.5 GFLOPS, has 0.5)":                    {ReasonComputation, false, 5432500, 500},
		"(wants 1.0 GiB, has 512 B)":                        {ReasonDisk, true, 1 << 30, 512},
		"(wants 2 Mbit/s, has 0.5 Mbit/s)":                  {ReasonBandwidth, false, 2e6, 5e5},
		"(wanted within 1m0s, could be promised in 1h0m0s)": {ReasonWindow, false, 60, 3600},
		"(asks for 2h0m0s, the limit is 1h0m0s)":            {ReasonAhead, true, 7200, 3600},
		"(wants 5 tasks, 3 are acceptable)":                 {ReasonAvailability, false, 5, 3},
		"(asks for 8784h0m0s, the limit is 1s)":             {ReasonAhead, true, limit + 1, 1},
	} {
		when := "not now: "
		if r.Never {
			when = "never fits: "
		}
		if got := r.Explain(); got != when+r.Reason.String()+" "+want {
			t.Errorf("%+v explains itself as %q", r, got)
		}
	}
	for _, reason := range []Reason{ReasonWindow, ReasonAhead, ReasonKind} {
		r := Refusal{Reason: reason, Want: 7}
		if got, want := r.Explain(), "not now: "+reason.String(); got != want {
			t.Errorf("without an amount: %q, want %q", got, want)
		}
	}
	if got := FormatRate(12_500_001); got != "12.500001 Mbit/s" {
		t.Errorf("a rate is written %q", got)
	}
}

// Each word names its own phase, cause or kind, and what is unknown reads so.
func TestWordsOfTasks(t *testing.T) {
	words := func(of func(uint8) string, from, to uint8) []string {
		var list []string
		for v := from; v <= to; v++ {
			list = append(list, of(v))
		}
		return list
	}
	phases := words(func(v uint8) string { return Phase(v).String() }, 0, uint8(PhaseRefused)+1)
	causes := words(func(v uint8) string { return ExitCause(v).String() }, 0, uint8(exitCauses)+1)
	kinds := words(func(v uint8) string { return WorkKind(v).String() }, 0, uint8(workKinds)+1)
	for _, list := range [][]string{phases, causes, kinds} {
		last := len(list) - 1
		if list[0] != "unknown" || list[last] != "unknown" {
			t.Errorf("what is unknown reads %q and %q", list[0], list[last])
		}
		seen := map[string]bool{"": true}
		for _, word := range list[:last] {
			if seen[word] {
				t.Errorf("%q stands there twice", word)
			}
			seen[word] = true
		}
	}
	for phase, want := range map[Phase]bool{
		PhaseWaiting: false, PhaseCollecting: false, PhaseDone: true, PhaseRefused: true,
	} {
		if phase.Ended() != want {
			t.Errorf("%s has ended: %t", phase, phase.Ended())
		}
	}
	for cause := CauseExited; cause <= exitCauses; cause++ {
		own := !slices.Contains([]ExitCause{
			CauseData, CauseSandbox, CauseSiteRestart, CauseStopped,
		}, cause)
		if cause.Final() != own {
			t.Errorf("%s is final: %t", cause, cause.Final())
		}
		want := map[ExitCause]int{CauseExited: 9, CauseSignal: 137}[cause]
		if want == 0 {
			want = 125
		}
		if got := (Exit{Cause: cause, Code: 9}).Status(); got != want {
			t.Errorf("%s has status %d, want %d", cause, got, want)
		}
	}
	if MapThesis.String() != "thesis" || MapSeconds.String() != "seconds" {
		t.Errorf("maps: %s, %s", MapThesis, MapSeconds)
	}
}

// A window's open sides stay open, and its earliest start is the fixed one if there is one.
func TestWindowsMove(t *testing.T) {
	one, two := time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range []struct {
		w, moved Window
		promised bool
		earliest time.Time
	}{
		{Window{}, Window{}, false, time.Time{}},
		{Window{NotBefore: one}, Window{NotBefore: two}, false, one},
		{Window{At: one}, Window{At: two}, true, one},
		{Window{Deadline: one}, Window{Deadline: two}, true, time.Time{}},
	} {
		if got := c.w.Shift(time.Second); got != c.moved || c.w.Promised() != c.promised ||
			!c.w.Earliest().Equal(c.earliest) {
			t.Errorf("%+v: moved %+v, promised %t, earliest %v",
				c.w, got, c.w.Promised(), c.w.Earliest())
		}
	}
}

// A task is its job's template with the item's words filled in.
func TestTasksAreExpanded(t *testing.T) {
	s := Spec{
		Kind: KindWasm, Module: Input{CID: someCID}, Args: []string{"{{index}}", "x{{item}}"},
		Env:     []EnvVar{{"K", "{{item}}"}},
		Inputs:  []Input{{Path: "/{{index}}", CID: "ba", Bytes: 3}},
		Outputs: []Output{{"/o{{index}}", "{{item}}.out"}},
		Need:    Resources{MilliCPUs: 5}, TimeLimit: time.Minute,
	}
	item := Item{Value: "v", Inputs: []Input{{Path: "/own", CID: "bb"}}}
	want := Task{
		ID: TaskID{someJob, math.MaxUint32}, Kind: KindWasm, Module: someCID,
		Args: []string{"4294967295", "xv"}, Env: []EnvVar{{"K", "v"}},
		Inputs:  []Input{{Path: "/4294967295", CID: "ba", Bytes: 3}, {Path: "/own", CID: "bb"}},
		Outputs: []Output{{"/o4294967295", "v.out"}},
		Need:    Resources{MilliCPUs: 5}, TimeLimit: time.Minute,
	}
	if diff := cmp.Diff(want, s.Expand(someJob, math.MaxUint32, item)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
