package baseline

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// failing lets the sites of a grid fail.
func failing(g Grid, outages ...[]Outage) Grid {
	g.Outages = outages
	return g
}

// ending lets nothing begin from a time on.
func ending(g Grid, end time.Duration) Grid {
	g.End = end
	return g
}

// down is an outage in seconds.
func down(from, to int) Outage {
	return Outage{time.Duration(from) * time.Second, time.Duration(to) * time.Second}
}

// wantFailed compares which runs failed.
func wantFailed(t *testing.T, runs []Run, want ...bool) {
	t.Helper()
	var got []bool
	for _, r := range runs {
		got = append(got, r.Failed)
	}
	if !slices.Equal(got, want) {
		t.Errorf("failed: %v, want %v", got, want)
	}
}

// A run on a site that fails is lost; one that ends at that instant is not; the site takes jobs
// again when it is back.
func TestSitesFail(t *testing.T) {
	g := failing(near(1), []Outage{down(10, 20), down(40, 50)})
	jobs := []Job{job(0, 1, 10), job(5, 1, 15), job(6, 1, 15), job(7, 1, 100)}
	runs := mustSchedule(t, g, backfill(), jobs...)
	wantRows(t, runs,
		row{0, 0, 0, 1, 0, 0, 10}, row{1, 0, 0, 1, 20, 20, 35}, row{2, 0, 0, 1, 35, 35, 40},
		row{3, 0, 0, 1, 50, 50, 150})
	wantFailed(t, runs, false, false, true, false)
	last, first := backfill(), backfill()
	last.Retry, first.Retry = RetryLast, RetryFirst
	runs = mustSchedule(t, g, last, jobs...)
	wantRows(t, runs[3:], row{3, 0, 0, 1, 50, 50, 150}, row{2, 0, 0, 1, 150, 150, 165})
	runs = mustSchedule(t, g, first, jobs...)
	wantRows(t, runs[3:], row{2, 0, 0, 1, 50, 50, 65}, row{3, 0, 0, 1, 65, 65, 165})
	wantFailed(t, runs, false, false, true, false, false)
}

// A site that never comes back is no reason to wait, and the head of the queue is promised no place
// on one that is down.
func TestNothingWaitsForTheDead(t *testing.T) {
	g := failing(near(4, 2), []Outage{{0, 3 * longest}}, nil)
	runs := mustSchedule(t, ending(g, time.Minute), backfill(),
		job(0, 4, 10), job(0, 2, 10), job(1, 1, 100), job(70, 1, 1))
	wantRows(t, runs, row{1, 0, 1, 2, 0, 0, 10}, row{2, 0, 1, 1, 10, 10, 110})
	if runs := mustSchedule(t, failing(near(4), []Outage{{0, 3 * longest}}), backfill(),
		job(0, 4, 10)); len(runs) != 1 || runs[0].Begin != 3*longest {
		t.Errorf("when its site is back after 30 years the job begins: %v", runs)
	}
}

// A copy in shares is lost with one of them, and its other sites are free again.
func TestSharesFailTogether(t *testing.T) {
	g := failing(near(2, 2), nil, []Outage{down(4, 6)})
	runs := mustSchedule(t, g, Policy{Copies: 1, Split: true}, job(0, 3, 10), job(1, 2, 10))
	wantRows(t, runs,
		row{0, 0, 0, 2, 0, 0, 4}, row{0, 0, 1, 1, 0, 0, 4}, row{1, 0, 0, 2, 4, 4, 14})
	wantFailed(t, runs, true, true, false)
}

// A job with two copies outlives the site of one of them.
func TestCopiesOutliveSites(t *testing.T) {
	g := failing(near(1, 1), []Outage{down(4, 6)}, nil)
	runs := mustSchedule(t, g, Policy{Copies: 2}, job(0, 1, 10))
	wantRows(t, runs, row{0, 0, 0, 1, 0, 0, 4}, row{0, 1, 1, 1, 0, 0, 10})
	wantFailed(t, runs, true, false)
}

// The copies of a job that is cut are on different sites if those suffice.
func TestCopiesOfShares(t *testing.T) {
	p := Policy{Copies: 2, Split: true}
	wantRows(t, mustSchedule(t, near(1, 1, 1, 1), p, job(0, 2, 10)),
		row{0, 0, 0, 1, 0, 0, 10}, row{0, 0, 1, 1, 0, 0, 10},
		row{0, 1, 2, 1, 0, 0, 10}, row{0, 1, 3, 1, 0, 0, 10})
	wantRows(t, mustSchedule(t, near(1, 1, 1), p, job(0, 2, 10)),
		row{0, 0, 0, 1, 0, 0, 10}, row{0, 0, 1, 1, 0, 0, 10},
		row{0, 1, 0, 1, 10, 10, 20}, row{0, 1, 1, 1, 10, 10, 20})
}

// A killed transfer does not make a run execute after its end.
func TestFailedBeforeTheInputCame(t *testing.T) {
	g := failing(near(1), []Outage{down(4, 6)})
	g.Bps[0][0] = 8
	j := job(0, 1, 10)
	j.In = 9
	wantRows(t, mustSchedule(t, g, backfill(), j), row{0, 0, 0, 1, 0, 4, 4})
}

// Jobs that the policy does not admit have no run, and the likeliest site is tried first.
func TestAvailabilityPolicies(t *testing.T) {
	p := backfill()
	p.Admit = func(j Job) bool { return j.Need.MilliCPUs <= 2000 }
	wantRows(t, mustSchedule(t, near(4), p, job(0, 3, 10), job(0, 2, 10)), row{1, 0, 0, 2, 0, 0, 10})
	p.Admit = nil
	var asked []time.Duration
	p.Likely = func(site int, at, ahead time.Duration) float64 {
		asked = append(asked, at, ahead)
		return []float64{.5, .9, .9}[site]
	}
	wantRows(t, mustSchedule(t, near(1, 1, 1), p,
		job(0, 1, 10), job(0, 1, 10), job(0, 1, 10), job(1, 1, 5)),
		row{0, 0, 1, 1, 0, 0, 10}, row{1, 0, 2, 1, 0, 0, 10}, row{2, 0, 0, 1, 0, 0, 10},
		row{3, 0, 1, 1, 10, 10, 15})
	if !slices.Equal(asked[:2], []time.Duration{0, 10 * time.Second}) {
		t.Errorf("first asked about %v", asked[:2])
	}
	p.Split = true
	wantRows(t, mustSchedule(t, near(1, 1, 1), p, job(0, 2, 10)),
		row{0, 0, 1, 1, 0, 0, 10}, row{0, 0, 2, 1, 0, 0, 10})
}

// One site and one processor, tried again: a twin that counts the seconds says when what ends.
func TestOneSiteFailsLikeItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outages := someOutages(t)
		var jobs []Job
		submit := int64(0)
		for range rapid.IntRange(0, 8).Draw(t, "jobs") {
			submit += rapid.Int64Range(0, 9).Draw(t, "gap")
			jobs = append(jobs, job(submit, 1, rapid.Int64Range(1, 12).Draw(t, "run")))
		}
		p := Policy{Copies: 1}
		p.Retry = rapid.SampledFrom([]Retry{RetryNever, RetryLast, RetryFirst}).Draw(t, "retry")
		end := rapid.IntRange(0, 80).Draw(t, "end")
		g := ending(failing(near(1), outages), time.Duration(end)*time.Second)
		runs, err := Schedule(g, p, jobs)
		if err != nil {
			t.Fatal(err)
		}
		got := rows(runs)
		for i := range got {
			if got[i].copy = 0; runs[i].Failed {
				got[i].copy = 1 // stands for having failed
			}
		}
		if want := countSeconds(outages, jobs, p.Retry, end); !slices.Equal(got, want) {
			t.Fatalf("runs %v, want %v", got, want)
		}
	})
}

// countSeconds plays one processor second by second. The second field of a row says that the run
// has failed.
func countSeconds(outages []Outage, jobs []Job, retry Retry, end int) (all []row) {
	var queue []int
	running, left, begun, next := -1, 0, 0, 0
	for second := range 1000 {
		at := time.Duration(second) * time.Second
		if running >= 0 && left == 0 {
			all, running = append(all, row{running, 0, 0, 1, begun, begun, second}), -1
		}
		up := !slices.ContainsFunc(outages, func(o Outage) bool { return o.From <= at && at < o.To })
		if running >= 0 && !up {
			all = append(all, row{running, 1, 0, 1, begun, begun, second})
			switch retry {
			case RetryLast:
				queue = append(queue, running)
			case RetryFirst:
				queue = append([]int{running}, queue...)
			case RetryNever:
			}
			running = -1
		}
		for ; next < len(jobs) && jobs[next].Submit <= at; next++ {
			queue = append(queue, next)
		}
		if running < 0 && up && len(queue) > 0 && (end == 0 || second < end) {
			running, begun, left = queue[0], second, int(jobs[queue[0]].Run.Seconds())
			queue = queue[1:]
		}
		left--
	}
	return all
}

func someOutages(t *rapid.T) (outages []Outage) {
	at := 0
	for range rapid.IntRange(0, 6).Draw(t, "outages") {
		from := at + rapid.IntRange(1, 20).Draw(t, "up")
		at = from + rapid.IntRange(1, 10).Draw(t, "down")
		outages = append(outages, down(from, at))
	}
	return outages
}

// Whatever the policy, nothing runs on a site that is down, no site gives more than it has, a copy
// fails exactly when one of its sites does, and each is tried as often as it should be.
func TestFailuresKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 8), 2, 5).Draw(t, "sites")
		g := near(sizes...)
		for i := range g.Sites {
			g.Sites[i].MemoryBytes = rapid.Int64Range(50, 200).Draw(t, "memory")
			g.Outages = append(g.Outages, someOutages(t))
			for k := range g.Bps[i] {
				g.Bps[i][k] = rapid.Float64Range(8, 800).Draw(t, "rate")
			}
		}
		g.End = time.Duration(rapid.Int64Range(0, 150).Draw(t, "end")) * time.Second
		jobs := someJobs(t, len(sizes))
		p := rapid.SampledFrom([]Policy{
			backfill(), replicate(1),
			{Copies: 2, Split: true, Random: true},
			{Copies: 1, Split: true},
			{Copies: 1, Split: true, Retry: RetryLast},
			{Copies: 1, FirstFit: true, Retry: RetryFirst},
		}).Draw(t, "policy")
		if rapid.Bool().Draw(t, "likely") {
			p.Likely = func(site int, at, ahead time.Duration) float64 {
				return math.Mod(float64(site)*.37+at.Seconds()*.11+ahead.Seconds()*.07, 1)
			}
		}
		runs, err := Schedule(g, p, jobs)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			checkRun(t, g, jobs, runs, r)
		}
		checkTries(t, g, p, jobs, runs)
	})
}

// checkRun looks at one share.
func checkRun(t *rapid.T, g Grid, jobs []Job, runs []Run, r Run) {
	j := jobs[r.Job]
	if r.Begin < j.Submit || r.Start < r.Begin || g.End > 0 && r.Begin >= g.End {
		t.Fatalf("job %d, submitted at %v, the end at %v: %+v", r.Job, j.Submit, g.End, r)
	}
	if !r.Failed && r.End < r.Start+j.Run {
		t.Fatalf("job %d of %v has not run so long: %+v", r.Job, j.Run, r)
	}
	struck := false
	for _, o := range runs {
		if o.Job != r.Job || o.Copy != r.Copy || o.Begin != r.Begin {
			continue
		}
		struck = struck || slices.ContainsFunc(g.Outages[o.Site], func(d Outage) bool {
			return d.From == r.End
		})
	}
	if r.Failed && !struck {
		t.Fatalf("none of its sites failed at %v: %+v", r.End, r)
	}
	for _, d := range g.Outages[r.Site] {
		if r.Begin < d.To && d.From < r.End {
			t.Fatalf("site %d is down from %v to %v: %+v", r.Site, d.From, d.To, r)
		}
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

// checkTries looks at how often each copy was tried: all that can have a place have one sooner or
// later if nothing ends that.
func checkTries(t *rapid.T, g Grid, p Policy, jobs []Job, runs []Run) {
	begun := make(map[[2]int]map[time.Duration]bool) // of a copy: when it began, and whether it failed
	for _, r := range runs {
		key := [2]int{r.Job, r.Copy}
		if begun[key] == nil {
			begun[key] = make(map[time.Duration]bool)
		}
		begun[key][r.Begin] = r.Failed
	}
	for n, j := range jobs {
		fits := slices.ContainsFunc(g.Sites, func(s grid.Resources) bool { return s.Fits(j.Need) })
		if p.Split {
			fits = hold(g.Sites, j.Need)
		}
		for c := range p.Copies {
			tries := begun[[2]int{n, c}]
			good := 0
			for _, failed := range tries {
				if !failed {
					good++
				}
			}
			switch {
			case good > 1 || p.Retry == RetryNever && len(tries) > 1:
				t.Fatalf("job %d copy %d ran %d times, %d well", n, c, len(tries), good)
			case g.End == 0 && fits != (len(tries) > 0):
				t.Fatalf("job %d copy %d fits: %t, ran %d times", n, c, fits, len(tries))
			case g.End == 0 && fits && p.Retry != RetryNever && good == 0:
				t.Fatalf("job %d copy %d was never tried again", n, c)
			}
		}
	}
}
