package eval

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// loggedJob is a job of an experiment as a log has it.
type loggedJob struct {
	workload.Job
	at time.Duration // submitted, since the first one
}

// readLogged reads the jobs of an experiment's log, of the part that it asks for; nil if its jobs
// are drawn.
func readLogged(dir string, e scenario.Experiment) ([]loggedJob, error) {
	if e.Jobs.Log == "" {
		return nil, nil
	}
	jobs, err := readPart(dir, e)
	if err != nil {
		return nil, fmt.Errorf("%w: jobs log=%s%w", ErrUsage, e.Jobs.Log, err)
	}
	logged := make([]loggedJob, len(jobs))
	for i, j := range jobs {
		if most := float64(j.Estimate) * max(e.Jobs.Time, 1); most > longestJob.Seconds() {
			return nil, fmt.Errorf("%w: jobs log=%s: job %d lasts %.0f s: want at most %.0f",
				ErrUsage, e.Jobs.Log, j.ID, most, longestJob.Seconds())
		}
		logged[i] = loggedJob{Job: j, at: seconds(j.Submit - jobs[0].Submit)}
	}
	return logged, nil
}

// readPart reads that part of the log, at least one job. Its errors go on behind the log's name.
func readPart(dir string, e scenario.Experiment) ([]workload.Job, error) {
	m, path := e.Jobs, e.Jobs.Log
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	log, err := readLog(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf(": there is no file %s: a log is looked for beside its experiment", path)
	case err != nil:
		return nil, fmt.Errorf(": %w", err)
	}
	jobs := log.Jobs(widest(m, e.Grid))
	lasts := jobs[len(jobs)-1].Submit - jobs[0].Submit
	if lasts > workload.Seconds(longestLog/time.Second) {
		return nil, fmt.Errorf(": the last job is submitted %d s after the first: want at most %.0f",
			lasts, longestLog.Seconds())
	}
	jobs = partOf(jobs, m)
	if len(jobs) == 0 {
		return nil, fmt.Errorf(" from=%s: no job is submitted then: the last one is submitted %s "+
			"after the first", m.From, seconds(lasts))
	}
	if m.Load > 0 && jobs[0].Submit == jobs[len(jobs)-1].Submit {
		return nil, fmt.Errorf(" load=%v: all %d jobs are submitted in the same second: take a "+
			"longer part of the log, or leave load out", m.Load, len(jobs))
	}
	return jobs, nil
}

// longestLog bounds the time from the first to the last submission.
const longestLog = 9 * 365 * 24 * time.Hour

// longestJob bounds the run times of a log, and what users say of them.
const longestJob = 366 * 24 * time.Hour

func seconds(s workload.Seconds) time.Duration { return time.Duration(s) * time.Second }

// widest counts the processors that a job of a log may have.
func widest(m scenario.JobModel, g scenario.GridModel) int {
	return max(cmp.Or(m.Procs, g.Cores.High, int(cmp.Or(g.Largest, g.Nodes))), 1)
}

// partOf is the part of a log that is asked for. The jobs are in the order of submission.
func partOf(jobs []workload.Job, m scenario.JobModel) []workload.Job {
	after := func(d time.Duration) int {
		at, _ := slices.BinarySearchFunc(jobs, d, func(j workload.Job, d time.Duration) int {
			return cmp.Compare(seconds(j.Submit-jobs[0].Submit), d)
		})
		return at
	}
	from, to := after(m.From), len(jobs)
	if m.For > 0 {
		to = after(m.From + m.For)
	}
	if m.First > 0 {
		to = min(to, from+m.First)
	}
	return jobs[from:to]
}

// drawLogged makes jobs of those of a log: what the log does not say is drawn.
func drawLogged(
	logged []loggedJob, m scenario.JobModel, g scenario.GridModel, power float64, seed uint64,
) []baseline.Job {
	chance := workload.Stream(seed, "jobs")
	if m.Longest == 0 {
		m.Longest = math.MaxInt64
	}
	estimated := m.EstLow == 0
	jobs := make([]baseline.Job, len(logged))
	work := 0.0
	for i, l := range logged {
		j := drawJob(m, g, workload.Record{UsedProcs: int64(l.Procs), Run: l.Run}, chance)
		if estimated {
			j.Estimate = time.Duration(float64(j.Run) * float64(l.Estimate) / float64(l.Run))
			j.Estimate = max(j.Estimate, j.Run)
		}
		work += float64(l.Procs) * j.Run.Seconds()
		j.Submit = l.at
		jobs[i] = j
	}
	if m.Load > 0 {
		stretch := work / (m.Load * power) / logged[len(logged)-1].at.Seconds()
		for i := range jobs {
			jobs[i].Submit = time.Duration(float64(jobs[i].Submit) * stretch)
		}
	}
	return jobs
}

// timeFor is a time in which a grid of so many GFLOP/s could about do the jobs.
func timeFor(jobs []baseline.Job, power float64) time.Duration {
	needed, work := time.Hour, 0.0
	for _, j := range jobs {
		needed = max(needed, j.Submit, j.Run)
		work += float64(j.Need.MilliCPUs) / 1000 * j.Run.Seconds()
	}
	return max(needed, time.Duration(work/power*float64(time.Second)))
}

// numbersOf are the numbers that the log gives its jobs.
func numbersOf(logged []loggedJob) []int64 {
	numbers := make([]int64, len(logged))
	for i, l := range logged {
		numbers[i] = l.ID
	}
	return numbers
}
