package audit

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	// stuckAfter bounds the time in which nothing happens with an open task that could be
	// placed.
	stuckAfter = 2 * time.Minute
	// lateAfter is the difference that makes a start or an end late: sandboxes take time to
	// start, and clocks differ.
	lateAfter = time.Second
)

// Late is a task that was promised a time and began or ended later.
type Late struct {
	Task  grid.TaskID
	Start time.Duration // by how much it began late; 0 = in time
	End   time.Duration // by how much it ended late; 0 = in time
	Said  bool          // its submitter says that the promise was not kept
}

// SilentlyLate are those of which the submitter does not say so.
func (r Report) SilentlyLate() []Late {
	return slices.DeleteFunc(slices.Clone(r.Late), func(l Late) bool { return l.Said })
}

// inspect looks at one task of a job that was submitted.
func inspect(r *Report, j *JobReport, s Submission, id grid.TaskID, t Task, runs []Run) {
	if isStuck(s, t, runs) {
		j.Stuck++
		r.Stuck = append(r.Stuck, id)
	}
	if len(t.Missing) > 0 {
		j.Missing++
		r.Missing = append(r.Missing, id)
	}
	if late, is := lateness(s, t, runs); is {
		j.Late++
		late.Task = id
		r.Late = append(r.Late, late)
	}
}

// isStuck reports whether an open task was let alone for longer than stuckAfter by the time
// of its submitter's last record, though nothing keeps it from being placed. That all sites
// are full keeps it, too, and cannot be seen here: a stuck task is one to look at.
func isStuck(s Submission, t Task, runs []Run) bool {
	if t.Phase.Ended() || !s.Held || s.Closed || s.Waits || s.Passive {
		return false
	}
	last := s.Submitted
	for _, moment := range []time.Time{t.Awarded, s.Window.Earliest()} {
		if moment.After(last) {
			last = moment
		}
	}
	for _, run := range runs {
		if run.Unended {
			return false
		}
		if run.Ended.After(last) {
			last = run.Ended
		}
	}
	return s.Seen.Sub(last) > stuckAfter
}

// lateness compares a done task's run with the window that its job was promised. The end that
// counts is that of the attempt that brought the result, where its run is known: one that was
// given up may be stopped long after it. The start is that of the first: a task that was moved
// began in time if any site began it in time.
func lateness(s Submission, t Task, runs []Run) (Late, bool) {
	if t.Phase != grid.PhaseDone || s.Passive || !s.Window.Promised() || len(runs) == 0 {
		return Late{}, false
	}
	began, ended, result := runs[0].Began, runs[0].Ended, time.Time{}
	for _, run := range runs {
		if run.Began.Before(began) {
			began = run.Began
		}
		if run.Ended.After(ended) {
			ended = run.Ended
		}
		if run.Attempt.Token == t.Token {
			result = run.Ended
		}
	}
	if !result.IsZero() {
		ended = result
	}
	late := Late{
		Start: beyond(began, s.Window.At), End: beyond(ended, s.Window.Deadline),
		Said: t.Promise == grid.PromiseLate || t.Promise == grid.PromiseBroken,
	}
	return late, late.Start != 0 || late.End != 0
}

// beyond is by how much a moment lies behind a bound, 0 if there is no bound or the time is
// within lateAfter.
func beyond(moment, bound time.Time) time.Duration {
	if bound.IsZero() || moment.Sub(bound) <= lateAfter {
		return 0
	}
	return moment.Sub(bound)
}
