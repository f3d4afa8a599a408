package baseline

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan/batch"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// nodes gives so many processors.
func nodes(n int64) grid.Resources { return grid.Resources{MilliCPUs: 1000 * n} }

// near is a grid of sites with so many processors, between which data take no time.
func near(processors ...int64) Grid {
	var g Grid
	for _, n := range processors {
		g.Sites = append(g.Sites, nodes(n))
		g.Bps = append(g.Bps, slices.Repeat([]float64{math.Inf(1)}, len(processors)))
	}
	return g
}

// job is one that runs for as many seconds as its user says.
func job(submit, processors, run int64) Job {
	length := time.Duration(run) * time.Second
	return Job{
		Submit: time.Duration(submit) * time.Second, Need: nodes(processors), Run: length,
		Estimate: length,
	}
}

func backfill() Policy { return Policy{Copies: 1} }

func replicate(seed uint64) Policy { return Policy{Copies: 2, Random: true, Seed: seed} }

func mustSchedule(t testing.TB, g Grid, p Policy, jobs ...Job) []Run {
	t.Helper()
	runs, err := Schedule(g, p, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// row is a run in whole seconds and processors.
type row struct{ job, copy, site, processors, begin, start, end int }

func rows(runs []Run) []row {
	var all []row
	for _, r := range runs {
		all = append(all, row{
			r.Job, r.Copy, r.Site, int(r.Took.MilliCPUs / 1000), int(r.Begin.Seconds()),
			int(r.Start.Seconds()), int(r.End.Seconds()),
		})
	}
	return all
}

func wantRows(t *testing.T, runs []Run, want ...row) {
	t.Helper()
	if got := rows(runs); !slices.Equal(got, want) {
		t.Errorf("it ran %v\nwant   %v", got, want)
	}
}

// The first site that a job fits on takes it. The head of the queue is promised the earliest place
// on any site; others overtake it where they do not delay that.
func TestBackfill(t *testing.T) {
	runs := mustSchedule(t, near(2, 4), backfill(),
		job(0, 2, 10), // the first site
		job(0, 3, 20), // the second one
		job(1, 4, 10), // waits for all of the second
		job(2, 1, 18), // fits there until 20
		job(2, 1, 19), // does not: it waits for the first site
		job(3, 2, 5),  // the same, behind it
	)
	wantRows(t, runs,
		row{0, 0, 0, 2, 0, 0, 10}, row{1, 0, 1, 3, 0, 0, 20}, row{3, 0, 1, 1, 2, 2, 20},
		row{4, 0, 0, 1, 10, 10, 29}, row{2, 0, 1, 4, 20, 20, 30}, row{5, 0, 0, 2, 29, 29, 34},
	)
}

// Without a promise to the head of the queue every job that fits goes.
func TestFirstFit(t *testing.T) {
	p := backfill()
	p.FirstFit = true
	runs := mustSchedule(t, near(4), p, job(0, 3, 20), job(1, 4, 10), job(2, 1, 30))
	wantRows(t, runs,
		row{0, 0, 0, 3, 0, 0, 20}, row{2, 0, 0, 1, 2, 2, 32}, row{1, 0, 0, 4, 32, 32, 42},
	)
}

// Input is sent to where a job runs, output to where it was submitted, and both are part of the
// time for which it holds its place. One transfer at a time is on each way.
func TestTransfersTakeTheirTurns(t *testing.T) {
	g := near(4, 4)
	g.Bps[0][1], g.Bps[1][0], g.Bps[1][1] = 8, 80, 4
	sent := job(0, 1, 10)
	sent.Need, sent.In, sent.Out = nodes(4), 5, 10
	local := sent
	local.Source, local.Home = 1, 1
	first := job(0, 4, 100) // takes the first site
	second := sent
	second.Need = nodes(2)
	third := second
	runs := mustSchedule(t, g, backfill(), first, second, third)
	wantRows(t, runs,
		row{0, 0, 0, 4, 0, 0, 100},
		row{1, 0, 1, 2, 0, 5, 16},
		row{2, 0, 1, 2, 0, 10, 21}, // its input waits for that of the one before
	)
	runs = mustSchedule(t, g, backfill(), first, local)
	wantRows(t, runs, row{0, 0, 0, 4, 0, 0, 100}, row{1, 0, 1, 4, 0, 10, 40})
}

// A way is booked when something is sent on it, not before: an output that comes later lets an
// input go first.
func TestOutputsAreSentWhenTheyAreThere(t *testing.T) {
	g := near(1, 1, 1)
	g.Bps[0][1] = 8
	out := job(0, 1, 50) // runs on the first site, its output goes to the second
	out.Out, out.Home = 10, 1
	in := job(10, 1, 5) // runs on the second, with input from the first
	in.In = 10
	wantRows(t, mustSchedule(t, g, backfill(), out, in),
		row{0, 0, 0, 1, 0, 0, 60}, row{1, 0, 1, 1, 10, 20, 25})
}

// All first copies are ahead of all second ones; the copies of a job are on different sites, unless
// there is but one that is large enough; none is called off.
func TestReplicate(t *testing.T) {
	for seed := range uint64(20) {
		runs := mustSchedule(t, near(2, 2, 4), replicate(seed),
			job(0, 4, 10), job(0, 2, 10), job(1, 2, 10), job(2, 2, 10))
		sites := make(map[int][]int)
		var copies []int
		for _, r := range runs {
			sites[r.Job] = append(sites[r.Job], r.Site)
			if r.Job > 0 {
				copies = append(copies, r.Copy)
			}
			if r.End-r.Begin != 10*time.Second {
				t.Errorf("seed %d: job %d copy %d ran for %v", seed, r.Job, r.Copy, r.End-r.Begin)
			}
		}
		if !slices.Equal(sites[0], []int{2, 2}) {
			t.Errorf("seed %d: the wide job ran on %v", seed, sites[0])
		}
		for n := 1; n < 4; n++ {
			if s := sites[n]; len(s) != 2 || s[0] == s[1] {
				t.Errorf("seed %d: the copies of job %d ran on %v", seed, n, s)
			}
		}
		if !slices.Equal(copies, []int{0, 1, 0, 0, 1, 1}) && !slices.IsSorted(copies) {
			t.Errorf("seed %d: copies began in the order %v", seed, copies)
		}
	}
}

// A job that is cut takes what is free in the order of the sites; its shares run together, each
// with its part of memory and data.
func TestSplit(t *testing.T) {
	g := near(3, 2, 5)
	for i := range g.Sites {
		g.Sites[i].MemoryBytes = 1000
	}
	g.Bps[0][2] = 8
	wide := job(0, 8, 10)
	wide.Need.MemoryBytes, wide.In = 1600, 8
	runs := mustSchedule(t, g, Policy{Copies: 1, Split: true}, wide, job(1, 3, 10), job(2, 2, 3))
	wantRows(t, runs,
		row{0, 0, 0, 3, 0, 3, 13}, row{0, 0, 1, 2, 0, 3, 13}, row{0, 0, 2, 3, 0, 3, 13},
		row{2, 0, 2, 2, 2, 2, 5}, row{1, 0, 0, 3, 13, 13, 23},
	)
	memory := int64(0)
	for _, r := range runs[:3] {
		memory += r.Took.MemoryBytes
	}
	if memory != 1600 {
		t.Errorf("its shares have %d bytes of memory, want 1600", memory)
	}
	tight := job(0, 4, 10)
	tight.Need.MemoryBytes = 2000 // 500 for each processor: two a site
	wantRows(t, mustSchedule(t, g, Policy{Copies: 1, Split: true}, tight),
		row{0, 0, 0, 2, 0, 0, 10}, row{0, 0, 1, 2, 0, 0, 10})
	tight.Need.MemoryBytes = 3001
	if runs := mustSchedule(t, g, Policy{Copies: 1, Split: true}, tight); len(runs) > 0 {
		t.Errorf("a job that is larger than the grid ran: %v", rows(runs))
	}
}

// The best fit is the site that a job fills most; a job that is wider than what is free on any
// takes as few as it can.
func TestBestFit(t *testing.T) {
	g := near(6, 4, 8, 4)
	runs := mustSchedule(t, g, Policy{Copies: 1, Split: true, BestFit: true},
		job(0, 4, 100), job(0, 3, 100), job(0, 2, 100), job(0, 10, 100), job(0, 2, 100),
	)
	wantRows(t, runs,
		row{0, 0, 1, 4, 0, 0, 100}, row{1, 0, 3, 3, 0, 0, 100}, row{2, 0, 0, 2, 0, 0, 100},
		row{3, 0, 2, 8, 0, 0, 100}, row{3, 0, 0, 2, 0, 0, 100}, row{4, 0, 0, 2, 0, 0, 100},
	)
	wantRows(t, mustSchedule(t, near(6, 4), Policy{Copies: 1, BestFit: true}, job(0, 4, 1)),
		row{0, 0, 1, 4, 0, 0, 1})
}

// The nearest site is the one to which the input comes, and from which the output goes home,
// fastest; what has no place there goes to the next.
func TestNearestToTheData(t *testing.T) {
	g := near(4, 4, 4)
	g.Bps[2][0], g.Bps[2][1], g.Bps[2][2] = 8, 80, 1
	g.Bps[0][1], g.Bps[2][1], g.Bps[1][1] = 8000, 80, 800
	j := job(0, 3, 100)
	j.In, j.Out, j.Source, j.Home = 20, 1, 2, 1
	runs := mustSchedule(t, g, Policy{Copies: 1, Split: true, Near: true}, j, j)
	var took [3]int64
	for _, r := range runs {
		if took[r.Site] += r.Took.MilliCPUs / 1000; r.Job == 0 && r.Site != 1 {
			t.Errorf("the first job runs at site %d, want 1", r.Site)
		}
	}
	if took != [3]int64{2, 4, 0} {
		t.Errorf("processors of the sites: %v, want 2, 4 and 0", took)
	}
}

// A random order is drawn for each job, the same for the same seed.
func TestRandomOrder(t *testing.T) {
	g := near(8, 8, 8, 8)
	var jobs []Job
	for n := range int64(8) {
		jobs = append(jobs, job(n, 1, 1000))
	}
	sites := func(seed uint64) (all []int) {
		for _, r := range mustSchedule(t, g, Policy{Copies: 1, Random: true, Seed: seed}, jobs...) {
			all = append(all, r.Site)
		}
		return all
	}
	if !slices.Equal(sites(1), sites(1)) || slices.Equal(sites(1), sites(2)) {
		t.Errorf("sites with seed 1: %v, with seed 2: %v", sites(1), sites(2))
	}
	for _, r := range mustSchedule(t, g, backfill(), jobs...) {
		if r.Site != 0 {
			t.Errorf("job %d ran on site %d, want the first one it fits on", r.Job, r.Site)
		}
	}
}

func TestWhatMakesNoSense(t *testing.T) {
	good := job(0, 1, 1)
	with := func(change func(*Job)) []Job {
		j := good
		change(&j)
		return []Job{j}
	}
	hole := near(1, 1)
	hole.Bps[0][1] = 0
	short := near(1, 1)
	short.Bps[1] = short.Bps[1][:1]
	less := near(1, 1)
	less.Bps = less.Bps[:1]
	broken := near(1)
	broken.Sites[0].MilliCPUs = -1
	for name, c := range map[string]struct {
		grid   Grid
		policy Policy
		jobs   []Job
	}{
		"two orders":           {near(1), Policy{Copies: 1, BestFit: true, Random: true}, nil},
		"best and near":        {near(1), Policy{Copies: 1, BestFit: true, Near: true}, nil},
		"near and random":      {near(1), Policy{Copies: 1, Near: true, Random: true}, nil},
		"copies tried again":   {near(1, 1), Policy{Copies: 2, Retry: RetryLast}, nil},
		"an unknown retry":     {near(1), Policy{Copies: 1, Retry: 9}, nil},
		"outages of others":    {failing(near(1, 1), nil), backfill(), nil},
		"outages that overlap": {failing(near(1), []Outage{{1, 3}, {3, 4}}), backfill(), nil},
		"an outage of no time": {failing(near(1), []Outage{{1, 1}}), backfill(), nil},
		"a past outage":        {failing(near(1), []Outage{{-1, 1}}), backfill(), nil},
		"an end in the past":   {ending(near(1), -1), backfill(), nil},
		"no sites":             {Grid{}, backfill(), nil},
		"a rate of 0":          {hole, backfill(), nil},
		"too few rates":        {short, backfill(), nil},
		"too few lists":        {less, backfill(), nil},
		"less than nothing":    {broken, backfill(), nil},
		"no copy":              {near(1), Policy{}, nil},
		"more copies than can": {near(1), Policy{Copies: 2}, nil},
		"no order":             {near(1), backfill(), []Job{job(1, 1, 1), job(0, 1, 1)}},
		"before the start":     {near(1), backfill(), with(func(j *Job) { j.Submit = -1 })},
		"no run":               {near(1), backfill(), with(func(j *Job) { j.Run = 0 })},
		"too low an estimate":  {near(1), backfill(), with(func(j *Job) { j.Estimate-- })},
		"endless":              {near(1), backfill(), with(func(j *Job) { j.Estimate = math.MaxInt64 })},
		"bytes below 0":        {near(1), backfill(), with(func(j *Job) { j.Out = -1 })},
		"from nowhere":         {near(1), backfill(), with(func(j *Job) { j.Source = 1 })},
		"to nowhere":           {near(1), backfill(), with(func(j *Job) { j.Home = -1 })},
		"no processor":         {near(1), backfill(), with(func(j *Job) { j.Need = grid.Resources{} })},
		"memory below 0":       {near(1), backfill(), with(func(j *Job) { j.Need.MemoryBytes = -1 })},
	} {
		if _, err := Schedule(c.grid, c.policy, c.jobs); err == nil {
			t.Errorf("%s: it is scheduled", name)
		} else if !errors.Is(err, argument.ErrInvalid) && !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: %v is not called invalid", name, err)
		}
	}
}

// On one site, and with data that take no time, BACKFILL is EASY backfilling as pkg/plan/batch
// has it.
func TestOneSiteIsEASY(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []Job
		var log []workload.Job
		submit := int64(0)
		for n := range rapid.IntRange(0, 30).Draw(t, "jobs") {
			submit += rapid.Int64Range(0, 4).Draw(t, "gap")
			run := rapid.Int64Range(1, 12).Draw(t, "run")
			estimate := run + rapid.Int64Range(0, 12).Draw(t, "margin")
			procs := rapid.Int64Range(1, 8).Draw(t, "procs")
			j := job(submit, procs, run)
			j.Estimate = time.Duration(estimate) * time.Second
			jobs = append(jobs, j)
			log = append(log, workload.Job{
				ID: int64(n), Submit: workload.Seconds(submit), Run: workload.Seconds(run),
				Estimate: workload.Seconds(estimate), Procs: int(procs),
			})
		}
		twin, err := batch.New(log, batch.Config{Procs: 8, Policy: batch.EASY})
		if err != nil {
			t.Fatal(err)
		}
		for twin.Step() {
		}
		runs, err := Schedule(near(8), backfill(), jobs)
		if err != nil || len(runs) != len(jobs) {
			t.Fatalf("%d of %d ran: %v", len(runs), len(jobs), err)
		}
		starts := make([]workload.Seconds, len(jobs))
		for _, r := range runs {
			starts[r.Job] = workload.Seconds(r.Begin / time.Second)
		}
		if want := twin.Starts(); !slices.Equal(starts, want) {
			t.Fatalf("starts %v, want %v", starts, want)
		}
	})
}

// Whatever the policy, no site gives more than it has, all that can run runs, as often as it
// should, for as long as it takes.
func TestSchedulesKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 8), 2, 5).Draw(t, "sites")
		g := near(sizes...)
		for i := range g.Sites {
			g.Sites[i].MemoryBytes = rapid.Int64Range(50, 200).Draw(t, "memory")
			for k := range g.Bps[i] {
				g.Bps[i][k] = rapid.Float64Range(8, 800).Draw(t, "rate")
			}
		}
		jobs := someJobs(t, len(sizes))
		p := rapid.SampledFrom([]Policy{
			backfill(), replicate(1),
			{Copies: 1, Split: true},
			{Copies: 2, Split: true, Random: true},
			{Copies: 1, Split: true, Random: true},
			{Copies: 1, FirstFit: true},
			{Copies: 1, FirstFit: true, Split: true},
		}).Draw(t, "policy")
		runs, err := Schedule(g, p, jobs)
		if err != nil {
			t.Fatal(err)
		}
		took := make(map[[2]int]int64)
		for _, r := range runs {
			j := jobs[r.Job]
			took[[2]int{r.Job, r.Copy}] += r.Took.MilliCPUs
			if r.Begin < j.Submit || r.Start < r.Begin || r.End < r.Start+j.Run {
				t.Fatalf("job %d, submitted at %v for %v: %+v", r.Job, j.Submit, j.Run, r)
			}
			var used grid.Resources
			for _, o := range runs {
				if o.Site == r.Site && o.Begin <= r.Begin && r.Begin < o.End {
					used = used.Add(o.Took)
				}
			}
			if !g.Sites[r.Site].Fits(used) {
				t.Fatalf("at %v site %d gives %+v of %+v", r.Begin, r.Site, used, g.Sites[r.Site])
			}
		}
		for n, j := range jobs {
			fits := slices.ContainsFunc(g.Sites, func(s grid.Resources) bool { return s.Fits(j.Need) })
			if p.Split {
				fits = hold(g.Sites, j.Need)
			}
			for c := range p.Copies {
				want := int64(0)
				if fits {
					want = j.Need.MilliCPUs
				}
				if have := took[[2]int{n, c}]; have != want {
					t.Fatalf("job %d copy %d took %d, want %d", n, c, have, want)
				}
			}
		}
	})
}

func someJobs(t *rapid.T, sites int) []Job {
	var jobs []Job
	submit := int64(0)
	for range rapid.IntRange(0, 25).Draw(t, "jobs") {
		submit += rapid.Int64Range(0, 10).Draw(t, "gap")
		j := job(submit, rapid.Int64Range(1, 9).Draw(t, "procs"), rapid.Int64Range(1, 30).Draw(t, "run"))
		j.Need.MemoryBytes = rapid.Int64Range(0, 220).Draw(t, "memory")
		j.Estimate += time.Duration(rapid.Int64Range(0, 20).Draw(t, "margin")) * time.Second
		j.In, j.Out = rapid.Int64Range(0, 500).Draw(t, "in"), rapid.Int64Range(0, 100).Draw(t, "out")
		j.Source = rapid.IntRange(0, sites-1).Draw(t, "source")
		j.Home = rapid.IntRange(0, sites-1).Draw(t, "home")
		jobs = append(jobs, j)
	}
	return jobs
}
