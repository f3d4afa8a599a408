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
	for want, how := range map[string][]Redundancy{
		"": {
			{},
			{Replicas: 1, Agreement: 1},
			{Replicas: MaxReplicas, Agreement: MaxReplicas},
			{Auto: true},
			{Verify: 1},
		},
		"replicas: want at most 8":   {{Replicas: MaxReplicas + 1}},
		"replicas: auto and a":       {{Auto: true, Replicas: 2}},
		"agreement: 3 copies":        {{Replicas: 2, Agreement: 3}},
		"agreement: 2 copies":        {{Auto: true, Agreement: 2}, {Agreement: 2}},
		"verify: replicas are":       {{Verify: .1, Replicas: 2}, {Verify: .1, Auto: true}},
		"verify: want a part from 0": {{Verify: 1.01}, {Verify: -.01}, {Verify: math.NaN()}},
	} {
		for _, r := range how {
			wantRefused(t, copiedJob(r), want)
		}
	}
}

// Not every job can run in copies.
func TestJobsThatRunOnce(t *testing.T) {
	for want, change := range map[string]func(*Job){
		"the parts of a split job": func(j *Job) { j.Split = SplitNever },
		"not with placing: flood":  func(j *Job) { j.Flood = true },
		"a promise is made by one": func(j *Job) { j.Spec.Window.Deadline = time.Unix(1, 0) },
		"which holds places for":   func(j *Job) { j.Spec.Reservation = "aaaaaaaaaaaaaaaa" },
		"":                         func(j *Job) { j.Count = MaxTasks / 2 },
		"has at most 50000 tasks":  func(j *Job) { j.Count = MaxTasks/2 + 1 },
		"has at most 20000 tasks t": func(j *Job) {
			j.Count, j.Redundancy = 20_001, Redundancy{Auto: true}
		},
	} {
		job := copiedJob(Redundancy{Replicas: 2})
		change(&job)
		wantRefused(t, job, want)
	}
}

// wantRefused wants an error that says so; none if there is nothing to say.
func wantRefused(t *testing.T, job Job, want string) {
	t.Helper()
	err := job.Validate()
	is := errors.Is(err, ErrInvalid) && strings.Contains(err.Error(), want)
	if want == "" && err != nil || want != "" && !is {
		t.Errorf("%+v: %v, want %q", job.Redundancy, err, want)
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
		word := rapid.SampledFrom([]string{
			"", "x", "{{index}}", "{{item}}", "{{index}}{{item}}", "{{", "}}",
		})
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
