package eval

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

const smallOne = "grid n=4 nodes=16 spread=.8 largest=8 memspread=.2 rate=8Mbps ratespread=.5\n" +
	"jobs procs=8 time=.02 longest=5m load=.9 for=30m mem=.1..0.3 data=1MiB dataspread=1 out=.1 " +
	"local=.3 estimate=1..2\n" + `strategy name=BACKFILL on=queue
strategy name=REP on=queue copies=2 order=random
strategy name=MRS on=mesh split=greedy
strategy name=EACH on=mesh split=never by=each
expect   ratio=MRS/BACKFILL of=wait from=0 to=100
expect   ratio=REP/BACKFILL of=utilization from=50 to=100 paper=60
seeds    n=3
`

func mustParse(t *testing.T, text string) scenario.Experiment {
	t.Helper()
	e, err := scenario.ParseExperiment(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The results of an experiment do not depend on the number of workers, and each part of them not
// depend on the others.
func TestResultsDoNotDependOnWorkers(t *testing.T) {
	var texts []string
	for _, workers := range []int{1, 3} {
		told := 0
		c := Compare{
			Name: "small", Experiment: mustParse(t, smallOne), First: 7, Workers: workers,
			Progress: func(done int) { told = done },
		}
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil || told != c.Runs() || c.Runs() != 12 {
			t.Fatalf("%v, %d of %d runs were told", err, told, c.Runs())
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Errorf("with one worker %s\nwith three %s", texts[0], texts[1])
	}
	c := Compare{
		Name: "small", Experiment: mustParse(t, smallOne), First: 8, Seeds: 1, Only: []string{"MRS"},
	}
	alone, err := c.Run(t.Context())
	if err != nil || len(alone.Strategies) != 1 || len(alone.Claims) != 0 {
		t.Fatalf("%+v, %v", alone, err)
	}
	c.Only = nil
	whole, err := c.Run(t.Context())
	if err != nil || whole.Strategies["MRS"]["wait"] != alone.Strategies["MRS"]["wait"] {
		t.Errorf("alone %+v, beside others %+v: %v",
			alone.Strategies["MRS"]["wait"], whole.Strategies["MRS"]["wait"], err)
	}
}

// All measures of all strategies are there and make sense; ratios are by seed.
func TestCompare(t *testing.T) {
	c := Compare{Name: "small", Experiment: mustParse(t, smallOne), First: 1}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Names, []string{"BACKFILL", "REP", "MRS", "EACH"}) || r.Seeds != 3 ||
		len(r.Ratios) != 12 {
		t.Errorf("%v, %d seeds, %d ratios", r.Names, r.Seeds, len(r.Ratios))
	}
	for _, name := range r.Names {
		m := r.Strategies[name]
		onMesh := name == "MRS" || name == "EACH"
		for _, measure := range scenario.ExperimentMeasures() {
			if _, known := m[measure]; measure == "decision" && !onMesh && !known {
				continue // a queue announces nothing
			}
			if x, known := m[measure]; !known || math.IsNaN(x.Mean) || x.Mean < 0 || x.CI95 < 0 {
				t.Errorf("%s of %s: %+v, %t", measure, name, x, known)
			}
		}
		if m["utilization"].Mean <= 0 || m["utilization"].Mean > 1 || m["slowdown"].Mean < 1 ||
			m["completion"].Mean < m["wait"].Mean || m["completion95"].Mean < m["completion50"].Mean {
			t.Errorf("%s: %+v", name, m)
		}
		if onMesh != (m["messages"].Mean > 0) || onMesh != (m["replies"].Mean > 0) {
			t.Errorf("%s sends %v messages a job, %v of them replies", name, m["messages"], m["replies"])
		}
	}
	twice, once := r.Ratios["REP/BACKFILL"]["makespan"], r.Ratios["BACKFILL/REP"]["makespan"]
	if twice.Mean < 1 || once.Mean > 1 {
		t.Errorf("who runs all twice takes %v as long, the other way %v", twice, once)
	}
	if len(r.Claims) != 2 || !r.Claims[0].Holds || r.Claims[1].Holds ||
		r.Claims[0].Interval != r.Ratios["MRS/BACKFILL"]["wait"] || r.Claims[1].Paper != 60 {
		t.Errorf("%+v", r.Claims)
	}
}

func TestCompareEndsEarly(t *testing.T) {
	c := Compare{Experiment: mustParse(t, smallOne), Only: []string{"MSR"}}
	if _, err := c.Run(t.Context()); !errors.Is(err, ErrUsage) {
		t.Errorf("a strategy that there is not: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Only = nil
	if _, err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	// An error of one run ends all.
	c.Experiment.Strategies[1].Copies = 9
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "REP, seed 0: ") {
		t.Errorf("more copies than sites: %v", err)
	}
}

// The grid is as its line says, and the same for all who ask.
func TestDrawGrid(t *testing.T) {
	m := mustParse(t, smallOne).Grid
	m.Sites, m.Nodes, m.Largest = 16, 128, 64
	for seed := range uint64(20) {
		g := drawGrid(m, seed)
		sum, largest := int64(0), int64(0)
		for i, s := range g.Sites {
			sum, largest = sum+s.MilliCPUs, max(largest, s.MilliCPUs)
			if s.MemoryBytes <= 0 || g.Bps[i][i] != m.Disk || g.Bps[i][(i+1)%16] == m.Rate {
				t.Errorf("seed %d, site %d: %+v, %v", seed, i, s, g.Bps[i])
			}
		}
		if sum < 128_000-16 || sum > 128_000 || largest != 64_000 || g.Sites[0].MilliCPUs != largest {
			t.Errorf("seed %d: %d thousandths, the largest site %d", seed, sum, largest)
		}
	}
	m.Largest, m.Spread = 0, 0
	for _, s := range drawGrid(m, 1).Sites {
		if s.MilliCPUs != 8000 {
			t.Errorf("without a spread a site has %d", s.MilliCPUs)
		}
	}
}

// Jobs have the work and the time that are asked for.
func TestDrawJobs(t *testing.T) {
	e := mustParse(t, smallOne)
	e.Jobs.For *= 20
	for seed := range uint64(5) {
		jobs := drawJobs(e.Jobs, e.Grid, e.Grid.Nodes, seed)
		work, local := 0.0, 0
		for i, j := range jobs {
			work += float64(j.Need.MilliCPUs) / 1000 * j.Run.Seconds()
			if j.Source == j.Home {
				local++
			}
			memory := float64(j.Need.MemoryBytes) / float64(j.Need.MilliCPUs) * 1000 / (1 << 30)
			if j.Run > e.Jobs.Longest || j.Estimate < j.Run || j.Estimate > 2*j.Run || memory < .0999 ||
				memory > .3001 || j.Out > j.In/9 || i > 0 && j.Submit < jobs[i-1].Submit {
				t.Fatalf("seed %d: %+v", seed, j)
			}
		}
		wanted := e.Jobs.Load * e.Grid.Nodes * e.Jobs.For.Seconds()
		last := jobs[len(jobs)-1]
		most := wanted + float64(last.Need.MilliCPUs)/1000*last.Run.Seconds()
		if work < wanted || work > most || jobs[0].Submit != 0 || last.Submit != e.Jobs.For {
			t.Errorf("seed %d: work %v of %v, from %v to %v",
				seed, work, wanted, jobs[0].Submit, last.Submit)
		}
		share := float64(local) / float64(len(jobs))
		if want := .3 + .7/4; math.Abs(share-want) > .12 {
			t.Errorf("seed %d: %.3f of %d are submitted where their input is, want %.3f",
				seed, share, len(jobs), want)
		}
	}
}

// The first site has the most inputs: 1, 1/2, 1/3 and 1/4 of its share.
func TestZipf(t *testing.T) {
	chance := workload.Stream(1, "test")
	counts := make([]int, 4)
	for range 25_000 {
		counts[zipf(chance, 4)]++
	}
	for i, want := range []float64{12000, 6000, 4000, 3000} {
		if math.Abs(float64(counts[i])-want) > 300 {
			t.Errorf("site %d has %d, want %v", i, counts[i], want)
		}
	}
}

func TestBuiltInExperiments(t *testing.T) {
	for _, b := range BuiltIns() {
		e, err := loadExperiment(b.Name)
		claims := len(e.Claims)
		if e.Failing != nil {
			claims += len(e.Failing.Claims)
		}
		if e.Remapping != nil {
			claims += len(e.Remapping.Claims)
		}
		if err != nil || b.Title == "" || strings.Contains(b.Title, "#") || claims == 0 {
			t.Errorf("%s: %q, %v", b.Name, b.Title, err)
		}
	}
	if _, err := loadExperiment("thesis-0"); !errors.Is(err, ErrUsage) {
		t.Errorf("what there is not: %v", err)
	}
	dir := t.TempDir()
	for text, want := range map[string]string{
		"sites n=3\nrun for=1m\n": "it has no line that begins with grid, resources or machines",
		"grid n=x\n":              "line 1: grid n=x: want a whole number",
	} {
		file := filepath.Join(dir, "mine.txt")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadExperiment(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := loadExperiment(dir); err == nil || errors.Is(err, ErrUsage) {
		t.Errorf("a directory: %v", err)
	}
}

// A job waits for the first of its copies to execute, ends for its user when the first one has
// brought its output, and for the grid when the last one has.
func TestWhatCopiesCount(t *testing.T) {
	e := mustParse(t, smallOne)
	g := drawGrid(e.Grid, 1)
	jobs := drawJobs(e.Jobs, e.Grid, e.Grid.Nodes, 1)[:1]
	ends := queueOutcomes(jobs, []baseline.Run{
		runOf(0, 0, 2, 3, 10), runOf(0, 1, 4, 4, 20),
	})
	if end := ends[0]; end.start.Seconds() != 3 || end.finish.Seconds() != 10 ||
		end.ended.Seconds() != 20 || end.held != 8+16 {
		t.Errorf("%+v", end)
	}
	m, err := measure(g, jobs, ends)
	if err != nil || m["wait"] != 3 || m["makespan"] != 20 || m["completion"] != 10 {
		t.Errorf("%v, %v", m, err)
	}
	m, err = measure(g, jobs, make([]ending, 1))
	if _, known := m["wait"]; err != nil || known || m["messages"] != 0 {
		t.Errorf("nothing ran: %v, %v", m, err)
	}
}

// runOf is a copy on one node, with times in seconds.
func runOf(job, number, begin, start, end int) baseline.Run {
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	return baseline.Run{
		Job: job, Copy: number, Took: grid.Resources{MilliCPUs: 1000}, Begin: at(begin), Start: at(start),
		End: at(end),
	}
}
