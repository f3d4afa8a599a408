package play

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
)

var update = flag.Bool("update", false, "write the golden summaries anew")

const (
	scenarios = "../../testdata/scenarios"
	graveyard = "../../testdata/graveyard" // scenarios that once failed
)

func load(t *testing.T, path string) scenario.Scenario {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(string(text))
	if err != nil {
		t.Fatalf("%s:\n%v", path, err)
	}
	return s
}

// simulate plays a scenario with another configuration, and records nothing.
func simulate(s scenario.Scenario, tune func(*sim.Config)) (scenario.Outcome, error) {
	return newSimulation(s).play(context.Background(), tune)
}

// mustHold plays a scenario and judges it.
func mustHold(t *testing.T, s scenario.Scenario) scenario.Outcome {
	t.Helper()
	o, err := simulate(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Expect.Check(o); err != nil {
		t.Errorf("%v\n%s", err, o.Summary())
	}
	return o
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// What has failed once is played before anything else.
func TestGraveyard(t *testing.T) {
	for _, path := range files(t, graveyard) {
		t.Run(filepath.Base(path), func(t *testing.T) { mustHold(t, load(t, path)) })
	}
}

// Every scenario meets its expectations, gives the summary that is stored beside
// it, and the same events when it is played again.
func TestScenarios(t *testing.T) {
	paths := files(t, scenarios)
	if len(paths) == 0 {
		t.Fatal("no scenario was found")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := load(t, path)
			o, told, err := Play(t.Context(), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Expect.Check(o); err != nil {
				t.Errorf("%v\n%s", err, o.Summary())
			}
			golden(t, strings.TrimSuffix(path, ".txt")+".golden", counters(o)+told.Text(false))
			unchecked := func(c *sim.Config) { c.CheckEvery = 1 << 30 }
			if again, err := simulate(s, unchecked); err != nil || again.Hash != o.Hash {
				t.Errorf("played again: hash %x and %v, want %x", again.Hash, err, o.Hash)
			}
		})
	}
}

// counters is the summary as a section of a golden file. The headings alone begin a
// line: so git's diff names the section that a change is in.
func counters(o scenario.Outcome) string {
	lines := strings.Split(strings.TrimSpace(o.Summary()), "\n")
	return "counters\n  " + strings.Join(lines, "\n  ") + "\n"
}

func golden(t *testing.T, path, have string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(have), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with go test ./internal/play -update", err)
	}
	diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(have, "\n"))
	if diff != "" {
		t.Errorf("the summary differs (-stored +now); if this is intentional, go test"+
			" ./internal/play -update\n%s", diff)
	}
}
