package play

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var storms = flag.Int("storms", 5, "how many random stories TestStorms plays")

// storm makes up a story: a lossy network, crashes between and amid steps,
// sites that are cut off or silent, all over after four minutes.
func storm(seed uint64) scenario.Scenario {
	r := rand.New(rand.NewPCG(seed, 1))
	s := scenario.Scenario{Run: scenario.Run{For: 30 * time.Minute, Seed: seed}}
	for i := range 3 + r.IntN(4) {
		s.Sites = append(s.Sites, stormSite(i, r))
	}
	s.Net = scenario.Net{
		Latency:   time.Duration(1+r.IntN(40)) * time.Millisecond,
		Jitter:    time.Duration(r.IntN(40)) * time.Millisecond,
		Loss:      float64(r.IntN(3)) / 20,
		Duplicate: float64(r.IntN(3)) / 20, Reorder: float64(r.IntN(3)) / 20,
	}
	second := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Second }
	site := func() string { return s.Sites[r.IntN(len(s.Sites))].Name }
	for n := range 1 + r.IntN(3) {
		sub := scenario.Submission{
			Name: fmt.Sprintf("j%d", n), By: site(), Jobs: 1,
			Count: uint32(1 + r.IntN(16)), TTL: time.Second,
			Need: grid.Resources{MilliCPUs: 1000, MemoryBytes: 256 << 20, DiskBytes: 1 << 20, MFLOPS: 2000},
			Run:  time.Second + second(40), Unattended: grid.Unattended(r.IntN(8) / 7),
		}
		s.Events = append(s.Events,
			scenario.Event{Kind: scenario.Submit, At: time.Second + second(60), Submit: sub})
	}
	kinds := []scenario.Kind{scenario.Crash, scenario.Crash, scenario.Isolate, scenario.Silent}
	for range 4 + r.IntN(16) {
		e := scenario.Event{
			Kind: kinds[r.IntN(4)], Site: site(), At: second(200), For: time.Second + second(40),
		}
		e.Amid = e.Kind == scenario.Crash && r.IntN(2) == 0
		s.Events = append(s.Events, e)
	}
	for _, name := range []string{"lost", "doubled"} {
		s.Expect = append(s.Expect, scenario.Expectation{Measure: name, Op: "="})
	}
	return s
}

func stormSite(i int, r *rand.Rand) scenario.Site {
	cores := int64(1+r.IntN(6)) * 1000
	return scenario.Site{
		Name: fmt.Sprintf("s%d", i), Domain: "a", Skew: time.Duration(r.IntN(600)-300) * time.Second,
		Capability: grid.Capability{
			Total: grid.Resources{
				MilliCPUs: cores, MemoryBytes: 4 << 30, DiskBytes: 64 << 30, MFLOPS: 2 * cores,
			},
			UpBps: 20e6, DownBps: 100e6, CoreMFLOPS: 2000, OS: "linux",
			Arch: "amd64", Kinds: []grid.WorkKind{grid.KindWasm},
		},
	}
}

// placedStorm is the storm of a seed whose jobs are promised, split, queued at
// several sites or come after each other.
func placedStorm(seed uint64) scenario.Scenario {
	r := rand.New(rand.NewPCG(seed, 2))
	s := storm(seed)
	events := s.Events
	s.Events = nil
	for _, e := range events {
		if e.Kind != scenario.Submit {
			s.Events = append(s.Events, e)
			continue
		}
		place(r, &e)
		s.Events = append(s.Events, e)
		if follower := e; r.IntN(3) == 0 || e.Submit.Reserve {
			follower.At += time.Duration(1+r.IntN(20)) * time.Second
			follower.Submit = scenario.Submission{
				Name: e.Submit.Name + "then", By: e.Submit.By, Jobs: 1, Count: 1 + e.Submit.Count/2,
				Need: e.Submit.Need, Run: e.Submit.Run / 2, TTL: time.Second,
			}
			if e.Submit.Reserve {
				follower.Submit.Reservation = e.Submit.Name
			} else {
				follower.Submit.After = []string{e.Submit.Name}
			}
			s.Events = append(s.Events, follower)
		}
	}
	return s
}

// place draws when or beside whom a submission runs.
func place(r *rand.Rand, e *scenario.Event) {
	sub := &e.Submit
	later := e.At + time.Duration(5+r.IntN(90))*time.Second
	sub.Count = 1 + sub.Count%6
	switch r.IntN(6) {
	case 0:
		sub.Start = later
	case 1:
		sub.Deadline = later + sub.Run
	case 2:
		sub.Reserve, sub.Start, sub.Unattended = true, later, grid.UnattendedFreeze
	case 3:
		sub.Split = []grid.Split{grid.SplitIfNeeded, grid.SplitGreedy, grid.SplitNever}[r.IntN(3)]
	case 4:
		sub.Map, sub.Flood = grid.MapSeconds, true
	default:
		sub.Map = grid.MapSeconds
	}
}

// tally sums up what came of many stories.
type tally struct {
	stories, jobs, ended, messages, doubled int
	tasks                                   map[string]int
	all, decisions                          uint64
}

func (sum *tally) add(o scenario.Outcome, told *Record) {
	sum.stories++
	for _, j := range o.Jobs {
		sum.jobs++
		if j.Took >= 0 {
			sum.ended++
		}
	}
	for _, measure := range []string{"done", "failed", "refused", "cancelled", "moves", "lost"} {
		sum.tasks[measure] += o.Total(measure)
	}
	sum.messages += o.Messages
	sum.doubled += o.Doubled
	sum.all = sum.all*1099511628211 ^ o.Hash
	sum.decisions = sum.decisions*1099511628211 ^ digest(told.decisions())
}

// String is one line, to compare with the one of another build.
func (sum *tally) String() string {
	n := sum.tasks
	return fmt.Sprintf("%d storms: %d jobs, %d ended; tasks: %d done, %d failed, %d refused, "+
		"%d cancelled, %d moved, %d lost, %d doubled; %d messages; decisions %016x, all effects %016x",
		sum.stories, sum.jobs, sum.ended, n["done"], n["failed"], n["refused"], n["cancelled"],
		n["moves"], n["lost"], sum.doubled, sum.messages, sum.decisions, sum.all)
}

// No storm loses or doubles a task, whatever the jobs are. One that does belongs
// into the graveyard. What came of all is logged in a line: so two builds can be
// compared on a thousand seeds, with
//
//	go test ./internal/play -run TestStorms -storms 1000 -v
func TestStorms(t *testing.T) {
	for _, kind := range []struct {
		name string
		draw func(uint64) scenario.Scenario
	}{{"plain", storm}, {"placed", placedStorm}} {
		t.Run(kind.name, func(t *testing.T) {
			sum := &tally{tasks: make(map[string]int)}
			for seed := range uint64(*storms) {
				s := kind.draw(seed)
				read, err := scenario.Parse(s.String())
				if err != nil {
					t.Fatalf("a storm that cannot be read: %v\n%s", err, s)
				}
				o, told, err := Play(t.Context(), read, nil)
				if err == nil {
					err = read.Expect.Check(o)
				}
				if err != nil {
					t.Errorf("storm %d: %v\nput this into testdata/graveyard/%s-%d.txt:\n%s",
						seed, err, kind.name, seed, s)
				}
				sum.add(o, told)
			}
			t.Log(sum)
		})
	}
}
