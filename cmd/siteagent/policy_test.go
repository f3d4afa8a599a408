package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// serveAgent is an agent in memory behind a socket, and a configuration that names it.
func serveAgent(t *testing.T, agent *apitest.Agent) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mrs") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s.sock")
	server, err := api.New(agent, api.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := server.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	file := filepath.Join(t.TempDir(), "siteagent.yaml")
	if err := os.WriteFile(file, []byte("api: {socket: "+socket+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestPolicyIsShownAndChanged(t *testing.T) {
	agent := apitest.New(time.Now)
	file := serveAgent(t, agent)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"policy"}, "policy    fcfs\nbackfill  conservative\n"},
		{[]string{"policy", "edf"}, "policy    edf\nbackfill  conservative\n"},
		{[]string{"policy", "--backfill", "easy"}, "policy    edf\nbackfill  easy\n"},
		{
			[]string{"policy", "sjf", "--backfill", "none", "-o", "json"},
			`{"policy":"sjf","backfill":"none"}` + "\n",
		},
	} {
		if got, err := command(t, append(c.args, "--config", file)...); err != nil || got != c.want {
			t.Errorf("%v: %q, %v, want %q", c.args, got, err, c.want)
		}
	}
	if p, err := agent.Planning(t.Context()); err != nil ||
		p != (view.Planning{Policy: "sjf", Backfill: "none"}) {
		t.Errorf("the agent plans by %+v, %v", p, err)
	}
	for _, args := range [][]string{
		{"policy", "best"}, {"policy", "--backfill", "all"}, {"policy", "-o", "xml"},
	} {
		if _, err := command(t, append(args, "--config", file)...); err == nil || exitCode(err) != 2 {
			t.Errorf("%v: %v, want a mistake of usage", args, err)
		}
	}
}

func TestStatusShowsThePlan(t *testing.T) {
	now := time.Now()
	at := time.Date(now.Year(), now.Month(), now.Day(), 14, 0, 30, 0, time.Local)
	need := view.Resources{MilliCPUs: 2000}
	plan := &view.PlanView{
		Planning: view.Planning{Policy: "edf", Backfill: "easy"},
		Promised: view.Resources{MilliCPUs: 3000, MemoryBytes: 1 << 30},
		Limit:    view.Resources{MilliCPUs: 4000, MemoryBytes: 2 << 30},
		Entries: []view.PlanEntry{
			{
				Task: "a.0", State: "runs", Class: "best-effort", Start: view.At(at),
				End: view.At(at.Add(time.Minute)), Need: need, SubmitterName: "ben",
			},
			{
				Task: "b.0", State: "waits", Class: "deadline", Start: view.At(at),
				End: view.At(at.Add(time.Minute)), Need: need,
			},
			{
				Task: "c.0", State: "held", Class: "reservation", Start: view.At(at.AddDate(0, 0, 1)),
				End: view.At(at.AddDate(0, 0, 2)), Need: need,
				Within: grid.JobID("r"),
			},
		},
	}
	got := printed(t, view.AgentStatus{Plan: plan})
	for _, want := range []string{
		"plan edf, backfill easy",
		"promised at most 3.0 of 4.0 cores and 1.0 GiB of 2.0 GiB memory at one time",
		"plan a.0 runs, best-effort, 14:00:30 to 14:01:30, 2.0 cores, for ben",
		"plan b.0 waits, deadline, 14:00:30 to 14:01:30, 2.0 cores",
		"plan c.0 held, reservation, " + at.AddDate(0, 0, 1).Format(time.DateTime), ", in reservation r",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	for len(plan.Entries) < maxPlanLines+5 {
		plan.Entries = append(plan.Entries, plan.Entries[0])
	}
	if got = printed(t, view.AgentStatus{Plan: plan}); !strings.Contains(
		got, "and 5 more; -o json shows all",
	) {
		t.Errorf("a long plan:\n%s", got)
	}
}

func TestPlanningIsTheOwners(t *testing.T) {
	c := config.Default(config.PresetTest, os.LookupEnv)
	c.Planning.Policy, c.Planning.Promised, c.Planning.Submitter = "edf", 80, 25
	got := planningOf(c)
	if got.Policy != "edf" || got.Promised != 80 || got.Submitter != 25 || got.Strangers != 0 ||
		got.Ahead != c.Planning.Ahead {
		t.Errorf("planning %+v", got)
	}
	if c.Accept = "anyone"; planningOf(c).Strangers != 10 {
		t.Errorf("strangers may hold %d %%", planningOf(c).Strangers)
	}
}
