package main

import (
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A flow of which one job cannot be submitted leaves nothing behind, and nothing of it starts.
func TestARefusedFlowStartsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *apitest.Agent, _ grid.JobID, job grid.Job) {
		t.Errorf("job %s was started", job.Spec.Name)
	})
	b.write(t, "flow.yaml", `jobs:
  first: {command: [x], runtime: 1s}
  other: {command: [x], runtime: 1s, after: first, inputs: [{path: /in/x, from: "cid:bgone"}]}
`)
	exit, stdout, stderr := b.run(t, "", "job", b.path("flow.yaml"), "--wait")
	if exit != exitUsage || stdout != "" ||
		!strings.Contains(stderr, "nothing of the flow was started") ||
		!strings.Contains(stderr, "job other: input cid:bgone: the agent no longer holds it") {
		t.Errorf("a flow with data that is gone = %d %s\n%s", exit, stdout, stderr)
	}
	if left, err := b.jobs(t); err != nil || len(left) > 0 {
		t.Errorf("it has left %v, %v", left, err)
	}
}

// The code is that of the first job in the file that failed by itself.
func TestCodeOfAFlow(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(a *apitest.Agent, id grid.JobID, job grid.Job) {
		codes := map[string]map[uint32]int{"b": {0: 7}, "c": {0: 9}}
		ends(codes[job.Spec.Name])(a, id, job)
	})
	b.write(t, "flow.yaml", `jobs:
  a: {command: [x], runtime: 1s, after: c}
  b: {command: [x], runtime: 1s}
  c: {command: [x], runtime: 1s}
`)
	exit, stdout, stderr := b.run(t, "", "job", b.path("flow.yaml"), "--wait", "--parsable")
	if exit != 7 || strings.Count(stdout, "\n") != 3 || !strings.Contains(stderr, "b  failed") {
		t.Errorf("a flow that fails = %d %s\n%s", exit, stdout, stderr)
	}
}

func TestFlagsThatAFlowHasNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.write(t, "flow.yaml", "jobs: {a: {command: [x]}}")
	for _, args := range [][]string{
		{"job", b.path("flow.yaml"), "--no-wait"},
		{"job", b.path("flow.yaml"), "--hold"},
		{"plan", b.path("flow.yaml")},
	} {
		if exit, _, stderr := b.run(t, "", args...); exit != exitUsage {
			t.Errorf("%v = %d %s", args, exit, stderr)
		}
	}
}

func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t, ends(nil))
	b.write(t, "job.yaml", "{name: one, command: [x], runtime: 1s}")
	exit, stdout, stderr := b.run(t, "", "job", b.path("job.yaml"), "--hold", "--parsable")
	id := strings.TrimSpace(stdout)
	if exit != 0 {
		t.Fatalf("job --hold = %d %s", exit, stderr)
	}
	list := func(args ...string) string {
		t.Helper()
		code, ids, said := b.run(t, "", append([]string{"list", "-o", "name"}, args...)...)
		if code != 0 {
			t.Fatalf("list %v = %d %s", args, code, said)
		}
		return strings.TrimSpace(ids)
	}
	if list("--state", "held") != id || list("--state", "ended") != "" ||
		list("--name", "o*") != id {
		t.Error("it is not listed as held")
	}
	if exit, _, stderr = b.run(t, "", "release", "one"); exit != 0 {
		t.Fatalf("release = %d %s", exit, stderr)
	}
	b.agent.Wait()
	if list("--state", "held") != "" || list("--state", string(view.PhaseDone)) != id {
		t.Error("it has not gone on")
	}
	for _, args := range [][]string{
		{"release", "one"}, {"list", "--state", "odd"}, {"list", "--name", "["},
	} {
		if exit, _, stderr = b.run(t, "", args...); exit != exitUsage {
			t.Errorf("%v = %d %s", args, exit, stderr)
		}
	}
}
