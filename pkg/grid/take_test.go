package grid

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// exitsOf are the ends of all tasks of a job, each with all its outputs.
func exitsOf(j Job, id JobID) []*Exit {
	exits := make([]*Exit, j.Count)
	for i := range exits {
		e := &Exit{Cause: CauseExited}
		for _, out := range j.Spec.Expand(id, uint32(i), Item{}).Outputs {
			e.Outputs = append(e.Outputs, Produced{
				Path: out.Path, CID: "bleft", Bytes: 5, Dir: true,
			})
		}
		exits[i] = e
	}
	return exits
}

// What is taken is as large as was planned with, and sorts as the tasks do.
func TestTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := Job{Count: rapid.Uint32Range(1, maxArgs).Draw(t, "count")}
		job.Spec.Outputs = []Output{{Path: "/out/a"}, {Path: "/out/{{index}}"}}
		take := Take{
			Path: "/in/x", Job: "aaaaaaaaaaaaaaaa", Each: rapid.Bool().Draw(t, "each"),
			Output: rapid.SampledFrom(job.Spec.Outputs).Draw(t, "output").Path,
		}
		planned, err := job.Taken(take, nil)
		if err != nil {
			t.Fatal(err)
		}
		taken, err := job.Taken(take, exitsOf(job, take.Job))
		if err != nil || len(taken) != int(job.Count) || len(planned) != len(taken) {
			t.Fatalf("%d of %d tasks, planned %d: %v", len(taken), job.Count, len(planned), err)
		}
		byName := func(a, b Input) int { return strings.Compare(a.Path, b.Path) }
		if !slices.IsSortedFunc(taken, byName) {
			t.Fatalf("the names do not sort as the tasks do: %+v", taken)
		}
		for i, in := range taken {
			if in.Path != planned[i].Path || in.CID != "bleft" || in.Bytes != 5 || !in.Dir {
				t.Fatalf("task %d: planned %+v, taken %+v", i, planned[i], in)
			}
			if take.Each != (in.Path == take.Path) && job.Count > 1 {
				t.Fatalf("each %v: task %d is %s", take.Each, i, in.Path)
			}
			if err := validateInputs([]Input{in, planned[i]}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestTakenThatIsNotThere(t *testing.T) {
	job := Job{Count: 2, Spec: Spec{Outputs: []Output{{Path: "/out/a"}}}}
	take := Take{Path: "/in/x", Job: "aaaaaaaaaaaaaaaa", Output: "/out/a"}
	short := exitsOf(job, take.Job)
	short[1] = &Exit{}
	for want, taken := range map[string]func() ([]Input, error){
		"leaves no /out/b; it leaves /out/a": func() ([]Input, error) {
			other := take
			other.Output = "/out/b"
			return job.Taken(other, nil)
		},
		"task 1 of job aaaaaaaaaaaaaaaa has not left /out/a": func() ([]Input, error) {
			return job.Taken(take, short)
		},
		"task 0 of job aaaaaaaaaaaaaaaa has not left": func() ([]Input, error) {
			return job.Taken(take, make([]*Exit, 2))
		},
	} {
		if _, err := taken(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTakesAreChecked(t *testing.T) {
	good := validJob(func(*Job) {})
	good.After = []JobID{"aaaaaaaaaaaaaaaa"}
	good.Takes = []Take{{Path: "/in/x", Job: "aaaaaaaaaaaaaaaa", Output: "/out/a"}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Job){
		"too many":        func(j *Job) { j.Takes = slices.Repeat(j.Takes, maxArgs+1) },
		"a path inside":   func(j *Job) { j.Takes[0].Path = "in/x" },
		"an output of it": func(j *Job) { j.Takes[0].Output = "/out/../a" },
		"another job":     func(j *Job) { j.Takes[0].Job = "bbbbbbbbbbbbbbbb" },
	} {
		bad := good
		bad.Takes = slices.Clone(good.Takes)
		if spoil(&bad); !errors.Is(bad.Validate(), ErrInvalid) {
			t.Errorf("%s: %v", name, bad.Validate())
		}
	}
}
