package sim

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// told is by how much what is said of a time may differ from the truth where no clock drifts:
// a sandbox takes a moment to set up, a message to come.
const told = time.Second

// span is when an attempt ran, in true time.
type span struct{ began, ended time.Duration }

// runOf is when an attempt ran, if it did.
func (t *Trace) runOf(id grid.AttemptID) (s span, ran bool) {
	for _, i := range t.Intervals {
		if i.Attempt != id || i.To < 0 {
			continue
		}
		if !ran {
			s.began, ran = i.From, true
		}
		s.ended = max(s.ended, i.To)
	}
	return s, ran
}

// judgePromises compares what a submitter says of its promises with what became of them.
func (o *Oracle) judgePromises(w *World, j *judged, tasks []broker.TaskState) []Finding {
	var findings []Finding
	for _, t := range tasks {
		if text := o.judgePromise(w, j, t); text != "" {
			findings = append(findings, Finding{flawPromise, j.Site, j.Job, text})
		}
	}
	return findings
}

// judgePromise says what is wrong with the outcome of one promise; empty: nothing.
func (o *Oracle) judgePromise(w *World, j *judged, t broker.TaskState) string {
	promised := j.accepted[t.ID.Index] && (j.Start > 0 || j.Deadline > 0)
	if !promised || t.Phase == grid.PhaseCancelled {
		return ""
	}
	late := t.StartLate != 0 || t.EndLate != 0
	switch t.Promise {
	case grid.PromiseKept, grid.PromiseLate:
		if late != (t.Promise == grid.PromiseLate) {
			return fmt.Sprintf("its promise is %s, and late is said to be %t", t.Promise, late)
		}
	case grid.PromiseBroken:
		if t.Phase == grid.PhaseDone {
			return "its promise is called broken, and it is done"
		}
		return ""
	default:
		if t.Promise == grid.PromiseNone && j.Mortal {
			return "" // the state that knew of it is gone
		}
		return "it has ended, and nothing is said of its promise"
	}
	run, ran := w.trace.runOf(grid.AttemptID{Task: t.ID, Token: t.Token})
	if !ran {
		return ""
	}
	if text := w.misjudged(j, "began", run.began, j.seenStart(), t.StartLate); text != "" {
		return text
	}
	return w.misjudged(j, "ended", run.ended, j.Deadline, t.EndLate)
}

// seenStart is when a job is to begin, 0 if nobody can see whether it did: what hangs has begun.
func (j *judged) seenStart() time.Duration {
	if j.Hangs {
		return 0
	}
	return j.Start
}

// misjudged compares by how much something came later than promised, or earlier, with what is
// said. A user names times on the submitter's wall clock: as that stood then, or when its agent
// heard of it, which is not later than the job's end.
func (w *World) misjudged(
	j *judged, what string, at, limit, said time.Duration,
) string {
	if limit == 0 || j.Mortal {
		return ""
	}
	// Both the clock that the limit stands on and the one that counts backwards may drift.
	allowed := told + 2*(j.ended-j.submitted)/million*time.Duration(w.fastest)
	var late time.Duration
	for _, moved := range w.movedBetween(j.Site, j.sets, at, j.ended) {
		if late = at + moved - limit; what == "ended" {
			late = max(late, 0)
		}
		wrong := said == 0 && late.Abs() > broker.PromiseTolerance+allowed ||
			said != 0 && (late-said).Abs() > allowed
		if !wrong {
			return ""
		}
	}
	return fmt.Sprintf("it %s %s late, and is said to have been %s late", what, late, said)
}
