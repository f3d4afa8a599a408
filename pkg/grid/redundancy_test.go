package grid

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func copiedJob(r Redundancy) Job {
	return Job{
		Spec: Spec{
			Kind: KindCommand, Args: []string{"x"}, Runtime: time.Second, Weights: DefaultWeights(),
			Need: Resources{MilliCPUs: 1, MemoryBytes: 1, DiskBytes: 1},
		},
		Count: 1, TTL: time.Second, Redundancy: r,
	}
}

// What contradicts itself, or the kind of the job, is refused, with the field and the reason.
func TestRedundancyIsChecked(t *testing.T) {
	two := Redundancy{Replicas: 2}
	for name, test := range map[string]struct {
		how    Redundancy
		change func(*Job)
		want   string // empty: it is taken
	}{
		"none":             {},
		"one":              {how: Redundancy{Replicas: 1, Agreement: 1}},
		"most":             {how: Redundancy{Replicas: MaxReplicas, Agreement: MaxReplicas}},
		"auto":             {how: Redundancy{Auto: true}},
		"all":              {how: Redundancy{Verify: 1}},
		"too many":         {how: Redundancy{Replicas: MaxReplicas + 1}, want: "replicas: want at most 8"},
		"auto and two":     {how: Redundancy{Auto: true, Replicas: 2}, want: "replicas: auto and a number"},
		"three of two":     {how: Redundancy{Replicas: 2, Agreement: 3}, want: "agreement: 3 copies"},
		"two of auto":      {how: Redundancy{Auto: true, Agreement: 2}, want: "agreement: 2 copies"},
		"verify and two":   {how: Redundancy{Verify: .1, Replicas: 2}, want: "verify: replicas are"},
		"verify and auto":  {how: Redundancy{Verify: .1, Auto: true}, want: "verify: replicas are"},
		"more than all":    {how: Redundancy{Verify: 1.01}, want: "verify: want a part"},
		"less than none":   {how: Redundancy{Verify: -.01}, want: "verify: want a part"},
		"no number":        {how: Redundancy{Verify: math.NaN()}, want: "verify: want a part"},
		"parts":            {two, func(j *Job) { j.Split = SplitNever }, "the parts of a split job"},
		"queued":           {two, func(j *Job) { j.Flood = true }, "not with placing: flood"},
		"with a deadline":  {two, func(j *Job) { j.Spec.Window.Deadline = time.Unix(1, 0) }, "a promise"},
		"in a reservation": {two, func(j *Job) { j.Spec.Reservation = "aaaaaaaaaaaaaaaa" }, "places for one"},
		"as many as go":    {how: two, change: func(j *Job) { j.Count = MaxTasks / 2 }},
		"one more":         {two, func(j *Job) { j.Count = MaxTasks/2 + 1 }, "at most 50000 tasks"},
		"compared":         {Redundancy{Verify: .1}, func(j *Job) { j.Count = 20_001 }, "at most 20000 tasks"},
	} {
		job := copiedJob(test.how)
		if test.change != nil {
			test.change(&job)
		}
		switch err := job.Validate(); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestReplicasWords(t *testing.T) {
	for _, r := range []Redundancy{{}, {Replicas: 1}, {Replicas: 8}, {Auto: true}} {
		if got, err := ParseReplicas(r.ReplicasWord()); err != nil || got != r {
			t.Errorf("%q is read as %+v, %v", r.ReplicasWord(), got, err)
		}
	}
	for _, word := range []string{"0", "9", "-1", "2.5", "all", " 2"} {
		if got, err := ParseReplicas(word); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is read as %+v, %v", word, got, err)
		}
	}
}

// A template whose index is filled in makes the task that it would have made of itself, whatever
// place in the array it is given.
func TestAFilledTemplateMakesTheSameTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"", "x", "{{index}}", "{{item}}", "{{index}}{{item}}", "{{", "}}"})
		text := func(name string) string { return word.Draw(t, name) + word.Draw(t, name) }
		spec := Spec{
			Kind: KindCommand, Args: []string{text("arg"), text("arg")},
			Env:     []EnvVar{{Name: "A", Value: text("env")}},
			Inputs:  []Input{{Path: "/i" + text("in")}},
			Outputs: []Output{{Path: "/o" + text("out"), To: text("to")}},
		}
		item := Item{Value: rapid.SampledFrom([]string{"", "y", "{{index}}"}).Draw(t, "item")}
		index := rapid.Uint32Range(0, 99_999).Draw(t, "index")
		want := spec.Expand("aaaaaaaaaaaaaaaa", index, item)
		filled, found := spec.FillIndex(index)
		got := filled.Expand("aaaaaaaaaaaaaaaa", rapid.Uint32().Draw(t, "copy"), item)
		got.ID = want.ID
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if !found && fmt.Sprint(filled) != fmt.Sprint(spec) {
			t.Fatalf("nothing was found and something changed: %+v", filled)
		}
	})
}

// The digest is that of what was computed, whatever else differs.
func TestResultDigest(t *testing.T) {
	a := Exit{
		Cause: CauseExited, Outputs: []Produced{{Path: "/a", CID: "ba"}, {Path: "/b", CID: "bb"}},
		Stdout: Produced{CID: "bout"},
	}
	same := a
	same.Outputs = []Produced{{Path: "/b", CID: "bb", Bytes: 3}, {Path: "/a", CID: "ba"}}
	same.Text, same.Wall, same.Stderr = "words", time.Second, Produced{CID: "berr"}
	if a.ResultDigest() != same.ResultDigest() {
		t.Error("order, sizes, words, times or standard error count")
	}
	for name, change := range map[string]func(*Exit){
		"cause": func(e *Exit) { e.Cause = CauseSignal }, "code": func(e *Exit) { e.Code = 1 },
		"output": func(e *Exit) { e.Outputs = e.Outputs[:1] },
		"stdout": func(e *Exit) { e.Stdout.CID = "bother" },
		"content": func(e *Exit) {
			e.Outputs = []Produced{{Path: "/a", CID: "ba"}, {Path: "/b", CID: "bx"}}
		},
	} {
		other := a
		if change(&other); other.ResultDigest() == a.ResultDigest() {
			t.Errorf("the %s does not count", name)
		}
	}
}
