package sim

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Submission is a job that was handed to a broker.
type Submission struct {
	Job   grid.JobID
	Site  grid.SiteID // whose broker
	Count uint32      // tasks
}

// Interval is a time during which an attempt really ran, in true time since
// the start; frozen time is left out.
type Interval struct {
	Attempt grid.AttemptID
	Site    grid.SiteID
	From    time.Duration
	To      time.Duration // -1 while it runs
}

// Note is a decision that a machine reported.
type Note struct {
	At     time.Time
	Site   grid.SiteID
	Report step.Report
}

// Trace is what an observer who sees everything has written down.
type Trace struct {
	Submitted []Submission
	Intervals []Interval
	Counts    map[string]int // reports by event
	Notes     []Note         // reports of level info and above

	open map[grid.AttemptID]int // places in Intervals
}

// Trace returns what was observed so far. It must not be changed.
func (w *World) Trace() *Trace { return &w.trace }

func (t *Trace) running(id grid.AttemptID, site grid.SiteID, at time.Duration) {
	t.open[id] = len(t.Intervals)
	t.Intervals = append(t.Intervals, Interval{Attempt: id, Site: site, From: at, To: -1})
}

func (t *Trace) stopped(id grid.AttemptID, at time.Duration) {
	if i, open := t.open[id]; open {
		t.Intervals[i].To = at
		delete(t.open, id)
	}
}

func (t *Trace) note(at time.Time, site grid.SiteID, r step.Report) {
	if r.Level >= step.LevelInfo {
		t.Notes = append(t.Notes, Note{At: at, Site: site, Report: r})
	}
}
