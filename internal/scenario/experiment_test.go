package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const smallExperiment = "# a small one\n" +
	"grid n=4 nodes=16 spread=.5 largest=8 mem=2GiB memspread=.1 rate=1Mbps ratespread=.2 " +
	"disk=1Gbps latency=5ms latencyspread=.3 ways=fair\n" +
	"jobs procs=8 time=.5 longest=1h load=.6 for=2h mem=.1..0.5 data=4MiB dataspread=1 out=.5 " +
	"local=.25 estimate=1..2\n" + `strategy name=MRS on=mesh split=greedy by=each grain=.5
strategy name=REP on=queue copies=2 order=random fill=first
expect   ratio=MRS/REP of=wait from=.5 to=1 paper=.75
seeds    n=3
`

func TestParseExperiment(t *testing.T) {
	got, err := ParseExperiment(smallExperiment)
	if err != nil {
		t.Fatal(err)
	}
	want := Experiment{
		Grid: GridModel{
			Sites: 4, Nodes: 16, Spread: .5, Largest: 8, Memory: 2 << 30, MemSpread: .1, Rate: 1e6,
			RateSpread: .2, Disk: 1e9, Latency: 5 * time.Millisecond, LatSpread: .3, Ways: "fair",
		},
		Jobs: JobModel{
			Procs: 8, Time: .5, Longest: time.Hour, Load: .6, For: 2 * time.Hour, Burst: 1,
			MemLow: .1, MemHigh: .5,
			Data: 4 << 20, DataSpread: 1, Out: .5, Local: .25, EstLow: 1, EstHigh: 2,
		},
		Strategies: []Strategy{
			{
				Name: "MRS", Copies: 1, Split: true, Each: true, Grain: .5,
				Mesh: MeshRules{Data: 1, TTL: time.Second},
			},
			{
				Name: "REP", Queue: true, Copies: 2, Random: true, First: true, Grain: 1,
				Mesh: MeshRules{Data: 1, TTL: time.Second},
			},
		},
		Claims: []Claim{{
			Line: 6, Strategy: "MRS", Beside: "REP", Measure: "wait", From: .5, To: 1, Paper: .75,
		}},
		Seeds: 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !IsExperiment(smallExperiment) || IsExperiment("sites n=3\nrun for=1m\n# grid n=3\n") {
		t.Error("what has a line grid is an experiment, and nothing else")
	}
}

func TestMistakesInExperiments(t *testing.T) {
	const grid, jobs = "grid n=2 nodes=8\n", "jobs procs=4 for=1h\n"
	const strategy, fast = "strategy name=a on=mesh\n", "grid n=2 cores=4..8 speed=.3\n"
	for text, want := range map[string]string{
		"":                                    "a line that says what the grid is drawn from",
		grid + strategy:                       "jobs: want a line that says what the jobs are",
		grid + jobs:                           "strategy: want a line for each strategy",
		grid + grid + jobs + strategy:         "line 2: grid: want one such line",
		"gird n=2\n" + jobs + strategy:        "did you mean grid?",
		"grid n=2 nods=8\n" + jobs + strategy: "did you mean nodes?",
		"grid n=2 nodes=8 largest=8\n" + jobs + strategy:               "less than all nodes",
		"grid n=2 nodes=8 mem=0B\n" + jobs + strategy:                  "rate and disk above 0",
		"grid n=2 nodes=2\n" + jobs + strategy:                         "procs of at most",
		grid + "jobs procs=4 estimate=.5\n" + strategy:                 "a range a..b from 1 on",
		grid + "jobs procs=4 mem=2..1\n" + strategy:                    "a..b, at most 1000",
		grid + "jobs procs=4 load=many\n" + strategy:                   "from 1e-05 to 100",
		grid + jobs + strategy + strategy:                              "no other strategy has",
		grid + jobs + "strategy name=a/b on=mesh\n":                    "a name without /",
		grid + jobs + "strategy name=a on=cloud\n":                     "mesh or queue",
		grid + jobs + "strategy name=a copies=2\n":                     "1 on the mesh",
		grid + jobs + "strategy name=a on=mesh order=random":           "and fill=... with",
		grid + jobs + "strategy name=a on=queue order=best policy=naa": "an order of their own",
		grid + jobs + "strategy name=a on=queue order=near policy=nsa": "an order of their own",
		grid + jobs + strategy + "expect ratio=a/b of=wait to=1\n":     "ratio=b: want the name",
		grid + jobs + strategy + "expect ratio=a of=wait to=1\n":       "NAME/NAME",
		grid + jobs + strategy + "expect ratio=a/a of=weight to=1\n":   "weight: want one of wait",
		grid + jobs + strategy + "expect ratio=a/a of=wait from=2\n":   "a number above from",
		grid + jobs + strategy + "seeds n=0\n":                         "a whole number from 1",
		"grid n=2 cores=0..4\n" + jobs + strategy:                      "a..b of whole numbers",
		"grid n=2 cores=4..2\n" + jobs + strategy:                      "a..b of whole numbers",
		"grid n=2 cores=1.5..2\n" + jobs + strategy:                    "a..b of whole numbers",
		"grid n=2 cores=1..5000\n" + jobs + strategy:                   "a..b of whole numbers",
		"grid n=2 cores=2..4 nodes=8\n" + jobs + strategy:              "no nodes, spread and",
		"grid n=2 nodes=8 speed=.3\n" + jobs + strategy:                "want cores=... beside it",
		"grid n=1001 nodes=9 ratespread=1\n" + jobs + strategy:         "at most 1000 sites with",
		"grid n=100001 nodes=9\n" + jobs + strategy:                    "number from 1 to 100000",
		grid + jobs + "strategy name=a on=mesh ttl=0s\n":               "a time above 0",
		"grid n=1 cores=2..3\n" + jobs + strategy:                      "at most the grid's 3",
		grid + "jobs procs=4 n=5 for=1h\n" + strategy:                  "no for beside it",
		grid + "jobs procs=4 n=0\n" + strategy:                         "a whole number from 1",
		grid + "jobs procs=4 for=0s\n" + strategy:                      "a time above 0",
		grid + jobs + "strategy name=a on=queue hold=all\n":            "map, requote, choice",
		grid + jobs + "strategy name=a on=mesh rivals=yes\n":           "grain of at least 4 nodes",
		grid + jobs + "strategy name=a on=mesh wait=-1\n":              "a number from 0 to 1e+06",
		fast + jobs + "strategy name=a on=queue\n":                     "no speed where",
		grid + jobs + strategy + strings.Repeat("#", maxText) + "\n":   "at most 1 MiB",
	} {
		_, err := ParseExperiment(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrSyntax) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
	if e, err := ParseExperiment(grid + jobs + strategy); err != nil || e.Seeds != 30 {
		t.Errorf("without seeds there are %d: %v", e.Seeds, err)
	}
}

func TestMeshRules(t *testing.T) {
	e, err := ParseExperiment("grid n=2 cores=4..8 speed=.35\njobs procs=4 n=50 burst=10\n" +
		"strategy name=a on=mesh map=seconds requote=no choice=softmin hold=all replies=16 " +
		"delay=none rivals=yes grain=4 data=10 wait=16 ttl=500ms\n" +
		"strategy name=b on=mesh map=thesis\n")
	if err != nil {
		t.Fatal(err)
	}
	want := MeshRules{
		Seconds: true, NoQuote: true, SoftMin: true, HoldAll: true, Replies: 16, Instant: true,
		Rivals: true, Data: 10, Wait: 16, TTL: 500 * time.Millisecond,
	}
	plain := MeshRules{Data: 1, TTL: time.Second}
	if e.Strategies[0].Mesh != want || e.Strategies[1].Mesh != plain {
		t.Errorf("%+v", e.Strategies)
	}
	if (e.Grid.Cores != Range{4, 8}) || e.Grid.Speed != .35 || e.Jobs.Count != 50 ||
		e.Jobs.Burst != 10 || e.Jobs.For != 0 {
		t.Errorf("%+v, %+v", e.Grid, e.Jobs)
	}
}

func FuzzParseExperiment(f *testing.F) {
	f.Add(smallExperiment)
	f.Add(smallFailing)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExperiment(text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatal(err)
			}
			return
		}
		if e.Failing != nil {
			of := e.Failing
			if len(of.Cases) == 0 || len(of.Rules) == 0 || of.Tasks.Shortest <= 0 {
				t.Fatalf("%+v", of)
			}
			return
		}
		if e.Grid.Sites < 1 || len(e.Strategies) == 0 || e.Seeds < 1 || e.Jobs.EstLow < 1 {
			t.Fatalf("%+v", e)
		}
	})
}
