//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

// agentsAtOnce bounds the agents that run at the same time in scenarios.
const agentsAtOnce = 16

// Processes may take slowness times what a scenario says, and the allowance more: on
// a busy machine they wait for the processor and the disk, in exact time nobody
// does. What never comes is still noticed.
const (
	slowness  = 2
	allowance = 5 * time.Second
)

// allScenarios names the variable that chooses scenarios: all, or file names with
// commas. Without it those are played that are not on demand.
const allScenarios = "MRS_SCENARIOS"

// notAsProcesses says which scenarios real processes cannot play.
func notAsProcesses() map[string]string {
	return map[string]string{
		"burst.txt": "a thousand sandboxes together take tens of GiB; the simulator and the real " +
			"stack in virtual time play it",
		"clocks.txt": "processes of one machine share its wall clock; the simulator and the real " +
			"stack in virtual time play it",

		"owner-busy.txt": "it takes half an hour; TestTheOwnerComesFirst has an owner who comes back " +
			"right away",
	}
}

// onDemand says which scenarios are played only when all are wanted, and why.
func onDemand() map[string]string {
	const less = "the others show the same of real processes in less time"
	const other = " shows it of real processes in less time"
	const long = "it takes minutes; the simulator and the real stack in virtual time play it each time"
	return map[string]string{
		"deadline.txt":    "TestDeadlinesAreKeptOrRefusedAtOnce shows it in less time",
		"reservation.txt": "TestReservationIsKept shows it in less time",
		"fixed-start.txt": long, "split.txt": long, "flood.txt": long, "after.txt": less,
		"isolated.txt": "its 27 tasks at a time starve a small machine; make chaos cuts off real " +
			"processes, the short form each time",
		"array.txt": "it wants more processors than a small machine has: attempts that starve freeze, " +
			"and move",
		"crowd.txt": less, "full.txt": less, "submitter-killed.txt": less,
		"site-killed.txt": "TestSiteKilled" + other, "migrate.txt": "TestMigrate" + other,
		"submitter-away.txt": "TestTheOwnerIsAway" + other,
		"silent.txt": "a job must have ended 4 s after it was submitted, which wants a machine that " +
			"does nothing else",
	}
}

// notJudged lists expectations that hold in exact time alone.
func notJudged() map[string]string {
	const exact = "a real site is not silent in just the 10 ms between its offer and the award"
	return map[string]string{
		"silent.txt: job=gone first=s1": exact, "silent.txt: job=gone moves=1": exact,
	}
}

// TestScenariosAsProcesses plays the files that the simulator and the real stack
// in virtual time play, with the same expectations: each site is a process in a
// network namespace, killed, cut off and slowed down in real time.
func TestScenariosAsProcesses(t *testing.T) {
	t.Parallel()
	lab, err := netlab.New(t.Context())
	if errors.Is(err, netlab.ErrUnsupported) {
		t.Skip(err)
	}
	if err = errors.Join(err, lab.Close()); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("../testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario was found: %v", err)
	}
	places := semaphore.NewWeighted(agentsAtOnce)
	plays := make(map[string]*played)
	for _, path := range paths {
		p := &played{done: make(chan struct{})}
		plays[path] = p
		p.read(t, path)
		go func() { // the subtests of a package wait for each other; plays do not
			defer close(p.done)
			if p.skip == "" {
				p.play(t, places)
			}
		}()
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), plays[path].report)
	}
}

// played is a scenario and what came of it.
type played struct {
	s       scenario.Scenario
	skip    string
	notes   []string
	done    chan struct{}
	outcome scenario.Outcome
	took    time.Duration
	told    string
	err     error
}

func (p *played) read(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if p.s, err = scenario.Parse(string(text)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(path)
	p.skip = notAsProcesses()[name]
	if word := p.s.OnlySimulated(); word != "" {
		p.skip = "only the simulation knows " + word
	}
	want := os.Getenv(allScenarios)
	switch named := slices.Contains(strings.Split(want, ","), name); {
	case p.skip != "" || want == "all" || named:
	case want != "":
		p.skip = allScenarios + " names others"
	case onDemand()[name] != "":
		p.skip = onDemand()[name] + "; " + allScenarios + "=all plays it"
	}
	p.s.Expect = slices.DeleteFunc(p.s.Expect, func(e scenario.Expectation) bool {
		why := notJudged()[name+": "+e.String()]
		if why != "" {
			p.notes = append(p.notes, fmt.Sprintf("not judged: %s: %s", e, why))
		}
		return why != ""
	})
	for i := range p.s.Expect {
		p.relax(&p.s.Expect[i])
	}
}

// relax makes of exact time what real processes can hold. A site that waits too
// long for the processor freezes its attempts once more, or loses one.
func (p *played) relax(e *scenario.Expectation) {
	switch {
	case e.Measure == "within":
		e.Value = slowness*e.Value + allowance.Seconds()
	case e.Measure == "latest" || e.Measure == "spread":
		e.Value += allowance.Seconds()
	case e.Op == "=" && (e.Measure == "frozen" || e.Measure == "resumed" ||
		e.Value > 1 && (e.Measure == "moves" || e.Measure == "token")):
		e.Op = ">="
		p.notes = append(p.notes, fmt.Sprintf("judged as %s", e))
	}
}

// play plays the scenario, and once more while no other one is played if that went
// wrong: leases are real time, so on a machine that starves attempts freeze and
// move for no reason of ours. What is wrong twice is wrong.
func (p *played) play(t *testing.T, places *semaphore.Weighted) {
	p.playAmong(t, places, int64(min(len(p.s.Sites), agentsAtOnce)))
	if p.err != nil && t.Context().Err() == nil {
		p.notes = append(
			p.notes,
			fmt.Sprintf("played again alone, for the first time: %v\n%s", p.err, p.outcome.Summary()),
		)
		p.playAmong(t, places, agentsAtOnce)
	}
}

func (p *played) playAmong(t *testing.T, places *semaphore.Weighted, n int64) {
	if p.err = places.Acquire(t.Context(), n); p.err != nil {
		return
	}
	defer places.Release(n)
	began := time.Now()
	if p.outcome, p.told, p.err = act(t.Context(), p.s); p.err == nil {
		p.err = p.s.Expect.Check(p.outcome)
	}
	p.took = time.Since(began)
}

func (p *played) report(t *testing.T) {
	if p.skip != "" {
		t.Skip(p.skip)
	}
	<-p.done
	for _, note := range p.notes {
		t.Log(note)
	}
	t.Logf("%d agents, %s in all\n%s", len(p.s.Sites), p.took.Round(time.Second), p.outcome.Summary())
	if p.err != nil {
		t.Errorf("%v\n%s", p.err, p.told)
	}
}
