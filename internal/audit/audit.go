package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Records holds all that is known of a mesh. The order of the lists does not matter.
type Records struct {
	Submissions []Submission
	Tasks       []Task
	Runs        []Run
	Notes       []string // what could not be read, for people
}

// Submission is a job that was ever submitted: its submitter's agent said so
// after it had made it durable. An agent that stands by for its submitter has one as well, with the
// same facts; all of a job count as one.
type Submission struct {
	Job    grid.JobID
	Count  uint32 // number of tasks
	Held   bool   // its submitter has it still, or one that stands by
	Closed bool   // its submitter works on it no more

	Submitted time.Time   // by its submitter's clock
	Seen      time.Time   // the last time that its submitter wrote anything down
	Window    grid.Window // when it may run; its fixed start and its deadline are promises
	Waits     bool        // it comes after other jobs
	Passive   bool        // a reservation: nothing runs in it
	Copied    bool        // its tasks may run in several copies
}

// Task is the last phase that a submitter noted of a task. A task that is not
// listed was never awarded.
type Task struct {
	ID      grid.TaskID
	Phase   grid.Phase
	Token   grid.Token   // of the attempt that counts: the one that ended it, if one did
	Awarded time.Time    // when its latest attempt was awarded
	Promise grid.Promise // what its submitter says became of the promise of its time
	// Missing are results of a done task that its submitter holds no more, though it holds
	// the job; or of which this is so at one that stands by.
	Missing []grid.CID
	// Of the first of several copies: the one whose result counts, from 1, 0 = none does; and
	// whether it was decided that there is no result.
	Chosen   uint32
	NoResult bool
	// Found are results that one of them holds: what another one lacks is not gone.
	Found []grid.CID
}

// Run is one attempt on one site, and when it may have run.
type Run struct {
	Attempt grid.AttemptID
	Site    string // the site's name, or ID
	Spans   []Span // ascending, apart
	Unended bool   // its end was not written down
	Began   time.Time
	Ended   time.Time // the last that is known of it
}

// Span is the time in which an attempt was not frozen, as half-open interval
// [From, To) on a clock that is common to all runs.
type Span struct {
	From time.Duration
	To   time.Duration
}

// Report holds the findings of an audit.
type Report struct {
	Jobs    []JobReport // ascending by ID
	Total   JobReport   // sums over all jobs, without an ID
	Lost    []grid.TaskID
	Doubled []Double
	Stuck   []grid.TaskID // open, and nothing happens though it could; see stuckAfter
	Missing []grid.TaskID // done, and their results are gone
	Late    []Late        // promised, and began or ended later
	// Unended counts runs without a known end: each counts until its agent's end, or its last
	// record.
	Unended int
	Strays  int      // runs of jobs that no submitter knows
	Unseen  int      // done tasks without any run: whether they were doubled is unknown
	Notes   []string // what could not be read
}

// JobReport counts the tasks of one job.
type JobReport struct {
	Job       grid.JobID `json:"job"`
	Tasks     int        `json:"tasks"`
	Done      int        `json:"done"`
	Failed    int        `json:"failed"`
	Cancelled int        `json:"cancelled"`
	Refused   int        `json:"refused"`
	Open      int        `json:"open"`     // not ended, and its submitter works on it
	Lost      int        `json:"lost"`     // neither ended nor open
	Doubled   int        `json:"doubled"`  // two different attempts ran at the same time
	Stuck     int        `json:"stuck"`    // open, and nothing happens though it could
	Missing   int        `json:"missing"`  // done, and a result is gone
	Late      int        `json:"late"`     // promised, and began or ended later
	Attempts  int        `json:"attempts"` // attempts that were started
	Moved     int        `json:"moved"`    // tasks with attempts on more than one site
}

// Double is a pair of attempts of one task that ran at the same time.
type Double struct {
	A, B    grid.AttemptID
	SiteA   string
	SiteB   string
	Overlap time.Duration // how long in all
}

// Clean reports whether nothing was lost, results included, nothing doubled, and nothing
// silently late.
func (r Report) Clean() bool {
	return len(r.Lost)+len(r.Doubled)+len(r.Missing)+len(r.SilentlyLate()) == 0
}

// Audit counts. A task is lost if its job was submitted, it has not ended, and
// its submitter does not work on it any more: the job's record is gone or
// closed. It is doubled if two different attempts, or one attempt on two sites,
// ran at the same time for longer than zero; frozen time does not count.
func Audit(records Records) Report {
	report := Report{Notes: slices.Clone(records.Notes)}
	tasks := lastTasks(records.Tasks)
	runs := groupRuns(records.Runs)
	for _, s := range mergeSubmissions(records.Submissions) {
		job := JobReport{Job: s.Job, Tasks: int(s.Count)}
		for index := range s.Count {
			id := grid.TaskID{Job: s.Job, Index: index}
			t, ran := tasks[id], runs[id]
			if s.Copied {
				t, ran = ofCopies(s, index, tasks, runs)
			}
			if job.count(t.Phase, s) {
				report.Lost = append(report.Lost, id)
			}
			inspect(&report, &job, s, id, t, ran)
			if t.Phase == grid.PhaseDone && len(ran) == 0 && !s.Passive {
				report.Unseen++
			}
			for _, copied := range s.copies(index) { // each is a task that must not be doubled
				report.Doubled = append(report.Doubled, job.countRuns(runs[copied])...)
				delete(runs, copied)
			}
		}
		report.Jobs = append(report.Jobs, job)
		report.Total.add(job)
	}
	countStrays(&report, runs)
	for _, run := range records.Runs {
		if run.Unended {
			report.Unended++
		}
	}
	return report
}

// count sorts one task in by its phase and reports whether it is lost.
func (j *JobReport) count(phase grid.Phase, s Submission) (lost bool) {
	switch {
	case phase == grid.PhaseDone:
		j.Done++
	case phase == grid.PhaseFailed:
		j.Failed++
	case phase == grid.PhaseCancelled:
		j.Cancelled++
	case phase == grid.PhaseRefused:
		j.Refused++
	case s.Held && !s.Closed:
		j.Open++
	default:
		j.Lost++
		return true
	}
	return false
}

// countRuns counts the attempts of one task and returns the pairs that ran at
// the same time.
func (j *JobReport) countRuns(runs []Run) []Double {
	var doubles []Double
	j.Attempts += len(runs)
	moved := false
	for i, a := range runs {
		for _, b := range runs[:i] {
			moved = moved || a.Site != b.Site
			if d := overlap(a.Spans, b.Spans); d > 0 {
				doubles = append(doubles, Double{b.Attempt, a.Attempt, b.Site, a.Site, d})
			}
		}
	}
	if moved {
		j.Moved++
	}
	if len(doubles) > 0 {
		j.Doubled++
	}
	return doubles
}

func (j *JobReport) add(k JobReport) {
	j.Tasks += k.Tasks
	j.Done += k.Done
	j.Failed += k.Failed
	j.Cancelled += k.Cancelled
	j.Refused += k.Refused
	j.Open += k.Open
	j.Lost += k.Lost
	j.Doubled += k.Doubled
	j.Stuck += k.Stuck
	j.Missing += k.Missing
	j.Late += k.Late
	j.Attempts += k.Attempts
	j.Moved += k.Moved
}

// countStrays looks at the runs of jobs that no submitter knows, as when not
// all agents' records were at hand. They can be doubled, too.
func countStrays(r *Report, runs map[grid.TaskID][]Run) {
	for _, list := range runs {
		r.Strays += len(list)
		r.Doubled = append(r.Doubled, r.Total.countRuns(list)...)
	}
	slices.SortFunc(r.Doubled, func(x, y Double) int {
		return cmp.Or(x.A.Compare(y.A), x.B.Compare(y.B),
			cmp.Compare(x.SiteA, y.SiteA), cmp.Compare(x.SiteB, y.SiteB))
	})
}

// overlap returns for how long both run at the same time.
func overlap(a, b []Span) time.Duration {
	var sum time.Duration
	for i, j := 0, 0; i < len(a) && j < len(b); {
		sum += max(min(a[i].To, b[j].To)-max(a[i].From, b[j].From), 0)
		if a[i].To < b[j].To {
			i++
		} else {
			j++
		}
	}
	return sum
}

// lastTasks makes one of all that is known of each task.
func lastTasks(tasks []Task) map[grid.TaskID]Task {
	last := make(map[grid.TaskID]Task, len(tasks))
	for _, t := range tasks {
		last[t.ID] = last[t.ID].and(t)
	}
	for id, t := range last {
		t.Missing = slices.DeleteFunc(slices.Clone(t.Missing), func(c grid.CID) bool {
			return slices.Contains(t.Found, c)
		})
		last[id] = t
	}
	return last
}

// and joins what is known of a task with what another agent knows of it: one that stands by may
// have been told less. An end is kept over everything else, else the newest attempt.
func (t Task) and(other Task) Task {
	found, missing := slices.Concat(t.Found, other.Found), slices.Concat(t.Missing, other.Missing)
	ended, also := t.Phase.Ended(), other.Phase.Ended()
	newer := other.Token > t.Token || !ended && other.Token == t.Token
	if also && !ended || also == ended && newer {
		t = other
	}
	t.Found, t.Missing = found, missing
	return t
}

// mergeSubmissions makes one of all that is known of each job, ascending by ID.
func mergeSubmissions(list []Submission) []Submission {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Submission) int { return cmp.Compare(a.Job, b.Job) })
	var merged []Submission
	for _, s := range list {
		last := len(merged) - 1
		if last < 0 || merged[last].Job != s.Job {
			merged = append(merged, s)
			continue
		}
		merged[last] = merged[last].and(s)
	}
	return merged
}

// and joins what is known of a job with what another agent knows of it.
func (s Submission) and(other Submission) Submission {
	if other.Count > s.Count { // of one that was removed before its journal begins nothing is known
		s, other = other, s
	}
	s.Held, s.Closed = s.Held || other.Held, s.Closed || other.Closed
	s.Copied = s.Copied || other.Copied
	if other.Seen.After(s.Seen) {
		s.Seen = other.Seen
	}
	return s
}

// groupRuns sorts the runs by task and attempt, and makes one of an attempt's
// runs on one site.
func groupRuns(list []Run) map[grid.TaskID][]Run {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Run) int {
		return cmp.Or(a.Attempt.Compare(b.Attempt), cmp.Compare(a.Site, b.Site))
	})
	runs := make(map[grid.TaskID][]Run)
	for _, r := range list {
		group := runs[r.Attempt.Task]
		if n := len(group); n > 0 && group[n-1].Attempt == r.Attempt && group[n-1].Site == r.Site {
			group[n-1].join(r)
			continue
		}
		r.Spans = union(r.Spans, nil)
		runs[r.Attempt.Task] = append(group, r)
	}
	return runs
}

// join takes over what another record of the same run says; the order does not matter.
func (r *Run) join(other Run) {
	r.Spans, r.Unended = union(r.Spans, other.Spans), r.Unended || other.Unended
	if other.Began.Before(r.Began) {
		r.Began = other.Began
	}
	if other.Ended.After(r.Ended) {
		r.Ended = other.Ended
	}
}

// union is both lists as ascending spans that lie apart.
func union(a, b []Span) []Span {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Span) int {
		return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
	})
	var out []Span
	for _, s := range all {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
		} else if s.To > s.From {
			out = append(out, s)
		}
	}
	return out
}
