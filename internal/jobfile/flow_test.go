package jobfile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const wholeFlow = `
name: words
defaults:
  runtime: 1m
  resources: {memory: 32MiB, cpus: 0.5}
jobs:
  sum:
    command: [cat, /in/n]
    inputs: [{path: /in/n, from: {job: count, output: /out/n}}]
    outputs: [{path: /out/sum, to: sum.txt}]
    resources: {memory: 64MiB}
  count:
    command: [wc, "{{index}}"]
    count: 2
    inputs: [{path: /in/words, from: {job: split, output: "/out/{{index}}", each: true}}]
    outputs: [{path: /out/n, to: "n.{{index}}"}]
  split:
    command: [split, /in/text]
    count: 2
    inputs: [{path: /in/text, from: text}]
    outputs: [{path: "/out/{{index}}", to: "part.{{index}}"}]
  tell:
    name: told
    after: [sum]
    command: [echo]
    hold: true
`

// idOf names the jobs of a flow as an agent might.
func idOf(name string) grid.JobID { return grid.JobID(strings.Repeat(name[:1], 16)) }

func TestFlow(t *testing.T) {
	t.Parallel()
	if !jobfile.IsFlow([]byte(wholeFlow)) || jobfile.IsFlow([]byte(full)) ||
		jobfile.IsFlow([]byte("- a")) {
		t.Error("a flow is not told from a job")
	}
	dir := folder(t, map[string]string{"text": "x"})
	flow, err := jobfile.LoadFlow([]byte(wholeFlow), dir, options())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, i := range flow.Order() {
		order = append(order, flow.Jobs[i].Name)
	}
	if want := []string{"split", "count", "sum", "tell"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	jobs := map[string]grid.Job{}
	for _, j := range flow.Jobs {
		find := func(ref jobfile.Ref) (grid.JobID, error) { return idOf(ref.Text), nil }
		if err = j.Plan.Complete(find); err != nil {
			t.Fatal(err)
		}
		if jobs[j.Name], err = j.Plan.Job(fakeStore(j.Plan.Sources)); err != nil {
			t.Fatal(err)
		}
	}
	want := []grid.Take{
		{Path: "/in/words", Job: idOf("split"), Output: "/out/{{index}}", Each: true},
	}
	if diff := cmp.Diff(want, jobs["count"].Takes); diff != "" {
		t.Errorf("count takes (-want +got):\n%s", diff)
	}
	if after := jobs["sum"].After; !slices.Equal(after, []grid.JobID{idOf("count")}) {
		t.Errorf("sum comes after %v", after)
	}
	for name, want := range map[string]string{"sum": "words/sum", "tell": "told"} {
		if got := jobs[name].Spec.Name; got != want {
			t.Errorf("job %s is called %q, want %q", name, got, want)
		}
	}
	need := jobs["sum"].Spec.Need
	if need.MemoryBytes != 64<<20 || need.MilliCPUs != 500 || !jobs["tell"].Held ||
		jobs["sum"].Held {
		t.Errorf("sum needs %+v; tell held %v, sum %v", need, jobs["tell"].Held, jobs["sum"].Held)
	}
}

// A job whose inputs others leave reads the same when it is written as a job file.
func TestTakesComeBack(t *testing.T) {
	t.Parallel()
	const text = `{command: [cat], hold: true, count: 2, inputs: [{path: /in/a,
  from: {job: aaaaaaaaaaaaaaaa, output: /out/a, each: true}}]}`
	read := func(text string) grid.Job {
		t.Helper()
		plan, err := jobfile.Load([]byte(text), t.TempDir(), options())
		if err != nil {
			t.Fatal(err)
		}
		err = plan.Complete(func(ref jobfile.Ref) (grid.JobID, error) {
			return grid.JobID(ref.Text), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		job, err := plan.Job(nil)
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	job := read(text)
	written, err := jobfile.Format(job).JSON()
	if err != nil {
		t.Fatal(err)
	}
	diff := cmp.Diff(job, read(string(written)))
	if diff != "" || !job.Held || len(job.Takes) != 1 {
		t.Errorf("it comes back as another one (-want +got):\n%s", diff)
	}
}

func TestFlowMistakes(t *testing.T) {
	t.Parallel()
	const a = "jobs:\n  a: {command: [x], outputs: [{path: /out/a, to: a}], count: 1}\n"
	second := func(keys string) string { return a + "  b: {command: [x], " + keys + "}" }
	takes := func(from string) string {
		return second("inputs: [{path: /i, from: {" + from + "}}]")
	}
	for text, want := range map[string]string{
		second("after: [aa]"): "3: jobs.b.after[0]: no job of this flow is called \"aa\"; " +
			"did you mean a?",
		takes("job: a, output: /out/b"): "3: jobs.b.inputs[0].from.output: job a has no " +
			"output /out/b; name it as that job does: /out/a",
		second("count: 2, inputs: [{path: /i, from: {job: a, output: /out/a, each: true}}]"): "" +
			"3: jobs.b.inputs[0].from.each: job a has 1 tasks and this one 2; give both",
		takes("job: a, output: /out/a, each: true"): "3: jobs.b.inputs[0].from.each: this job " +
			"has one task",
		"jobs:\n  b: {command: [x]}\n" +
			"  c: {command: [x], inputs: [{path: /i, from: {job: b, output: /o}}]}": "" +
			"3: jobs.c.inputs[0].from.output: job b has no outputs; add outputs to that job",
		"jobs:\n  a: {command: [x], after: [c]}\n  b: {command: [x], after: [a]}\n" +
			"  c: {command: [x], after: [b]}": "2: jobs.a: needs itself: a -> c -> b -> a",
		second("outputs: [{path: /out/b, to: a}]"): "3: jobs.b.outputs[0].to: job a writes a, " +
			"too; choose another one",
		"jobs: {}":                     "1: jobs: want 1 to 256 jobs, have 0",
		"name: a":                      "1: jobs: missing; write jobs: {name:",
		"jobs:\n  a b: {command: [x]}": "2: jobs.a b: want at most 64 letters",
		"job: 1\njobs: {a: {command: [x]}}": "1: job: no such key; " +
			"did you mean jobs?",
		second("lmit: 1h"): "3: jobs.b.lmit: no such key; did you mean limit?",
		second("inputs: [{path: /i, from: gone}]"): "3: jobs.b.inputs[0].from: no such " +
			"file or folder: gone",
		second("reservation: r"): "3: jobs.b.reservation: the jobs of a flow cannot name",
		"defaults: {runtime: x}\njobs: {a: {command: [x]}, b: {command: [x]}}": "" +
			"1: jobs.a.runtime: want a number with a unit",
		"defaults: x\njobs: {a: {command: [x]}}": "1: defaults: want keys of a job file",
		"jobs:\n  a: {command: [x], count: 2000, outputs: [{path: /o, to: \"{{index}}\"}]}\n" +
			"  b: {command: [x], inputs: [{path: /i, from: {job: a, output: /o}}]}": "" +
			"3: jobs.b.inputs[0].from.job: job a has 2000 tasks, and a task has at most 1024",
	} {
		want = "job.yaml:" + want
		_, err := jobfile.LoadFlow([]byte(text), t.TempDir(), options())
		var all jobfile.Errors
		if !errors.As(err, &all) || len(all) != 1 || !strings.HasPrefix(all[0].Error(), want) {
			t.Errorf("%v\nwant one mistake: %s", err, want)
		}
	}
}

// Whatever a flow says: it is refused, or its order is one.
func FuzzLoadFlow(f *testing.F) {
	f.Add([]byte(wholeFlow))
	f.Add([]byte(`{"jobs": {"a": {"command": ["x"], "after": ["b"]},
		"b": {"command": ["x"], "after": "a"}}}`))
	f.Add([]byte("defaults: {env: {A: 1}}\njobs: {a: {command: [x], env: {B: 2}}, a: null}"))
	f.Add([]byte("name: a\ndefaults: {}"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		flow, err := jobfile.LoadFlow(data, dir, options())
		if err != nil {
			return
		}
		order := flow.Order()
		if len(order) != len(flow.Jobs) || len(order) == 0 {
			t.Fatalf("order %v of %d jobs", order, len(flow.Jobs))
		}
		placed := map[string]bool{}
		for _, i := range order {
			for _, need := range flow.Jobs[i].Needs {
				if !placed[need] {
					t.Fatalf("%s comes before %s, which it needs", flow.Jobs[i].Name, need)
				}
			}
			placed[flow.Jobs[i].Name] = true
		}
	})
}
