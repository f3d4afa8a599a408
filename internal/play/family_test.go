package play

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
)

var (
	seeds    = flag.Int("seeds", 2, "how many stories TestFamilies plays of each family")
	first    = flag.Uint64("first", 0, "the seed of the first of them")
	family   = flag.String("family", "", "the only family that TestFamilies plays")
	troubled = flag.String("troubles", "", "the only troubles that TestFamilies draws, with commas")
)

// families are the kinds of jobs; each draws what sets a submission apart.
func families() map[string]func(*rand.Rand, *scenario.Event) {
	return map[string]func(*rand.Rand, *scenario.Event){
		"plain": func(r *rand.Rand, e *scenario.Event) { e.Submit.Count = uint32(1 + r.IntN(2)) },
		"array": func(r *rand.Rand, e *scenario.Event) { e.Submit.Count = uint32(4 + r.IntN(16)) },
		"unattended": func(_ *rand.Rand, e *scenario.Event) {
			e.Submit.Unattended, e.Submit.Run = grid.UnattendedFinish, 2*e.Submit.Run
		},
		"fixed": func(r *rand.Rand, e *scenario.Event) { e.Submit.Start = e.At + ahead(r) },
		"deadline": func(r *rand.Rand, e *scenario.Event) {
			e.Submit.Deadline = e.At + 2*e.Submit.Run + ahead(r)
		},
		"reservation": func(r *rand.Rand, e *scenario.Event) {
			e.Submit.Reserve, e.Submit.Start = true, e.At+ahead(r)
			e.Submit.Run += 10 * time.Second
		},
		"split": func(r *rand.Rand, e *scenario.Event) {
			modes := []grid.Split{grid.SplitIfNeeded, grid.SplitGreedy, grid.SplitNever}
			e.Submit.Split = modes[r.IntN(len(modes))]
		},
		"flood": func(_ *rand.Rand, e *scenario.Event) {
			e.Submit.Map, e.Submit.Flood = grid.MapSeconds, true
		},
		"after": func(*rand.Rand, *scenario.Event) {},
	}
}

// ahead draws how long before its time a promise is asked for.
func ahead(r *rand.Rand) time.Duration { return time.Duration(10+r.IntN(110)) * time.Second }

// shares say how often which trouble is drawn. The words are those of the format.
func shares() map[string]int {
	return map[string]int{
		"crash": 4, "isolate": 3, "silent": 3, "busy": 1,
		"deaf": 2, "cut": 2, "part": 2, "drift": 2, "set": 1, "suspend": 2, "stick": 1, "full": 1,
		"broken": 1, "slow": 1, "batch": 1, "twin": 1, "kill": 1, "power": 1, "lose": 1,
		"backup": 1, "restore": 1, "tune": 1, "liar": 1,
	}
}

// withheld are the troubles that are not drawn unless they are asked for, each with what is
// known to go wrong.
func withheld() map[string]string {
	return map[string]string{}
}

// enabled lists the troubles to draw from, each as often as its share.
func enabled() []string {
	var all []string
	asked := strings.Split(*troubled, ",")
	for _, word := range slices.Sorted(maps.Keys(shares())) {
		_, out := withheld()[word]
		if *troubled == "" && out || *troubled != "" && !slices.Contains(asked, word) {
			continue
		}
		for range shares()[word] {
			all = append(all, word)
		}
	}
	return all
}

// tale is the story of a seed about jobs of one family: a few jobs within two minutes and
// much trouble within four. Afterwards all is well for long enough to look at what is left.
func tale(name string, seed uint64) scenario.Scenario {
	r := rand.New(rand.NewPCG(seed, 4))
	s := storm(seed)
	s.Events = nil
	jobs := 1 + r.IntN(3)
	for n := range jobs {
		e := submissionTo(s, r, n)
		families()[name](r, &e)
		if name == "after" && n > 0 {
			e.Submit.By, e.Submit.After = s.Events[0].Submit.By, []string{s.Events[n-1].Submit.Name}
			e.At = max(e.At, s.Events[n-1].At+time.Second)
		}
		s.Events = append(s.Events, e)
		if name == "reservation" {
			bound := submissionTo(s, r, jobs+n)
			bound.At, bound.Submit.By = e.At+time.Second, e.Submit.By
			bound.Submit.Reservation, bound.Submit.Count = e.Submit.Name, 1
			bound.Submit.Run = e.Submit.Run / 3
			s.Events = append(s.Events, bound)
		}
	}
	if words := enabled(); len(words) > 0 {
		for range 3 + r.IntN(10) {
			e := draw(s, r, words[r.IntN(len(words))])
			if e.Trouble.Word == "restore" { // a backup from the middle of what was
				s.Events = append(s.Events, scenario.Event{
					Kind: scenario.Upset, Site: e.Site, At: e.At / 2,
					Trouble: scenario.Trouble{Word: "backup"},
				})
			}
			s.Events = append(s.Events, e)
		}
	}
	s.Events = append(s.Events, moves(s, r)...)
	for i := range s.Events {
		e := &s.Events[i]
		// What is not declared is not missed.
		e.Submit.Output = e.Kind == scenario.Submit && !e.Submit.Reserve
		if name == "unattended" && (e.Trouble.How == "hold" || e.Trouble.How == "idle") {
			e.Trouble.How = "forge" // a long lease is a promise, also to a liar
		}
	}
	s.Run.For = wellFrom(s) + 2*time.Hour + 20*time.Minute
	for _, e := range s.Events { // a start comes so much later
		if e.Trouble.Word == "set" {
			s.Run.For += max(0, -e.Trouble.By)
		}
	}
	if name == "unattended" && slices.ContainsFunc(s.Events, func(e scenario.Event) bool {
		return forgets(e.Trouble)
	}) {
		s.Run.For += patience
	}
	s.Expect = scenario.Expectations{{Measure: "flaws", Op: "="}}
	return s
}

// moves draws users that have their jobs moved.
func moves(s scenario.Scenario, r *rand.Rand) (moves []scenario.Event) {
	for _, e := range s.Events {
		if e.Kind == scenario.Submit && r.IntN(2) == 0 {
			after := time.Duration(r.IntN(600)) * 100 * time.Millisecond
			moves = append(moves, scenario.Event{
				Kind: scenario.Migrate, At: e.At + after, Job: e.Submit.Name,
			})
		}
	}
	return moves
}

// submission draws a job that each of the sites can run.
func submissionTo(s scenario.Scenario, r *rand.Rand, n int) scenario.Event {
	return scenario.Event{
		Kind: scenario.Submit, At: time.Second + time.Duration(r.IntN(120))*time.Second,
		Submit: scenario.Submission{
			Name: fmt.Sprintf("j%d", n), By: s.Sites[r.IntN(len(s.Sites))].Name, Jobs: 1,
			Count: uint32(1 + r.IntN(4)), TTL: time.Second,
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: 256 << 20, DiskBytes: 1 << 20, MFLOPS: 2000,
			},
			Run: time.Second + time.Duration(r.IntN(40))*time.Second,
		},
	}
}

// draw draws a trouble of a word.
func draw(s scenario.Scenario, r *rand.Rand, word string) scenario.Event {
	at := r.IntN(len(s.Sites))
	e := scenario.Event{
		Site: s.Sites[at].Name, At: 2*time.Second + time.Duration(r.IntN(2000))*100*time.Millisecond,
		For: time.Second + time.Duration(r.IntN(400))*100*time.Millisecond,
	}
	for kind := scenario.Crash; kind < scenario.Submit; kind++ {
		if kind.String() == word {
			e.Kind, e.Amid = kind, kind == scenario.Crash && r.IntN(2) == 0
			return e
		}
	}
	e.Kind, e.Trouble = scenario.Upset, scenario.Trouble{Word: word}
	if e.Trouble.Once() {
		e.For = 0
	}
	sign := []int64{-1, 1}[r.IntN(2)]
	switch t := &e.Trouble; word {
	case "cut":
		t.To = s.Sites[(at+1+r.IntN(len(s.Sites)-1))%len(s.Sites)].Name
	case "part":
		t.With = []string{s.Sites[(at+1)%len(s.Sites)].Name}
	case "drift":
		t.Fast = sign * int64(r.IntN(50_001))
	case "set":
		t.By = time.Duration(sign) * time.Duration(1+r.IntN(7200)) * time.Second
	case "stick":
		t.By = time.Duration(r.IntN(20)) * time.Second
	case "liar":
		t.How = scenario.Lies()[r.IntN(len(scenario.Lies()))]
	case "slow":
		t.By = time.Duration(1+r.IntN(300)) * time.Millisecond
	case "batch":
		t.By = time.Duration(1+r.IntN(200)) * time.Millisecond
	case "kill":
		t.By = time.Duration(1+r.IntN(3000)) * time.Millisecond
	case "tune":
		t.By = time.Duration(1+r.IntN(8)) * time.Second
	}
	return e
}

// judged plays a story as its text says it, and counts the troubles that there really were.
func judged(s scenario.Scenario) (scenario.Outcome, map[string]int, error) {
	read, err := scenario.Parse(s.String())
	if err != nil {
		return scenario.Outcome{}, nil, err
	}
	p := newSimulation(read)
	o, err := p.play(context.Background(), func(c *sim.Config) { c.CheckQuiet = checkQuiet })
	if err == nil {
		err = read.Expect.Check(o)
	}
	return o, p.troubles, err
}

// checkQuiet is after how many renewals and the like the machines of a story are checked: a
// promise that waits for hours makes nearly nothing else.
const checkQuiet = 16

// flawed reports whether a story can be read and goes wrong.
func flawed(s scenario.Scenario) bool {
	if _, err := scenario.Parse(s.String()); err != nil {
		return false
	}
	_, _, err := judged(s)
	return err != nil
}

// shrunk drops from a story that fails what it can do without.
func shrunk(s scenario.Scenario, fails func(scenario.Scenario) bool) scenario.Scenario {
	for smaller := true; smaller; {
		smaller = false
		for i := range slices.Backward(s.Events) {
			less := s
			less.Events = slices.Delete(slices.Clone(s.Events), i, i+1)
			if fails(less) {
				s, smaller = less, true
			}
		}
	}
	for _, calm := range []func(*scenario.Scenario){
		func(s *scenario.Scenario) { s.Net = scenario.Net{Latency: 5 * time.Millisecond} },
		func(s *scenario.Scenario) { s.Net.Loss = 0 },
		func(s *scenario.Scenario) { s.Net.Duplicate, s.Net.Reorder = 0, 0 },
		func(s *scenario.Scenario) {
			s.Sites = slices.Clone(s.Sites)
			for i := range s.Sites {
				s.Sites[i].Skew = 0
			}
		},
	} {
		less := s
		if calm(&less); fails(less) {
			s = less
		}
	}
	return s
}

// What a story can do without is dropped, and what it needs stays.
func TestStoriesShrink(t *testing.T) {
	s := tale("array", 1)
	needed := []scenario.Event{s.Events[0], s.Events[len(s.Events)-1]}
	fails := func(s scenario.Scenario) bool {
		for _, e := range needed {
			same := func(o scenario.Event) bool { return cmp.Equal(o, e) }
			if !slices.ContainsFunc(s.Events, same) {
				return false
			}
		}
		return true
	}
	if less := shrunk(s, fails); len(less.Events) != len(needed) || less.Net.Loss != 0 {
		t.Errorf("from %d events to %d, want %d:\n%s", len(s.Events), len(less.Events), len(needed), less)
	}
}

// Every trouble is read as it was written.
func TestTroublesAreReadAsWritten(t *testing.T) {
	s := tale("plain", 1)
	r := rand.New(rand.NewPCG(1, 1))
	for _, word := range slices.Sorted(maps.Keys(scenario.Troubles())) {
		for range 4 {
			s.Events = append(s.Events, draw(s, r, word))
		}
	}
	read, err := scenario.Parse(s.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Events, read.Events); diff != "" {
		t.Errorf("events (-written +read):\n%s", diff)
	}
	for word := range scenario.Troubles() {
		if shares()[word] == 0 {
			t.Errorf("no family meets %s", word)
		}
	}
}

// A site that is given a backup has made one before.
func TestARestoreFollowsABackup(t *testing.T) {
	restores := 0
	for seed := range uint64(40) {
		s := tale("plain", seed)
		for _, e := range s.Events {
			if e.Trouble.Word != "restore" {
				continue
			}
			restores++
			if !slices.ContainsFunc(s.Events, func(b scenario.Event) bool {
				return b.Trouble.Word == "backup" && b.Site == e.Site && b.At < e.At
			}) {
				t.Errorf("seed %d: %s is restored at %s, and there is no backup", seed, e.Site, e.At)
			}
		}
	}
	if restores == 0 {
		t.Error("nothing is restored")
	}
}
