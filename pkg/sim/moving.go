package sim

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Move asks a submitter to move tasks of a job, as its user would; none named: all.
func (w *World) Move(at grid.SiteID, job grid.JobID, anew bool, tasks ...uint32) error {
	return w.command(at, func(n uint64) step.Input {
		return step.MoveTasks{Command: n, Job: job, Tasks: tasks, Anew: anew}
	}).Err
}

// What a move may cost.
const (
	// lostByMove is run time: a last checkpoint may be a few seconds old, and a program runs on
	// until its checkpoint is here and it is stopped.
	lostByMove = 20 * time.Second
	// waitsAfterMove is until the next attempt: the sites that have offered are asked again.
	waitsAfterMove = 30 * time.Second
)

// movedBadly finds tasks that were moved on purpose and lost work by it that they need not have
// lost, or that had nowhere to go.
func (o *Oracle) movedBadly(w *World) []Finding {
	var findings []Finding
	counted := make(map[grid.TaskID]time.Duration)
	left := make(map[grid.TaskID]Note)
	for _, n := range w.trace.Notes {
		id := n.Report.Attempt
		j := o.jobs[id.Task.Job]
		if j == nil || j.Mortal || !n.Broker {
			continue
		}
		add := func(format string, args ...any) {
			text := fmt.Sprintf(format, args...)
			findings = append(findings, Finding{flawMoved, n.Site, id.Task.Job, text})
		}
		switch n.Report.Event {
		case "checkpoint_counts":
			counted[id.Task] = w.states[stateCID(id, uint64(n.Report.Value))].worked
		case "moved":
			left[id.Task] = n
			if lost := w.workedUntil(id, n.At.Sub(Epoch())) - counted[id.Task]; lost > lostByMove {
				add("%s was moved and has lost %s of work", id, lost)
			}
		case "accepted":
			last, moved := left[id.Task]
			delete(left, id.Task)
			if waited := n.At.Sub(last.At); moved && j.Settled && waited > waitsAfterMove {
				add("%s was moved and accepted %s later", last.Report.Attempt, waited)
			}
		}
	}
	return findings
}

// workedUntil is the run time that an attempt's program had come to, what it began with included,
// if it saves its state and was running until a moment ago; else 0.
func (w *World) workedUntil(id grid.AttemptID, at time.Duration) (worked time.Duration) {
	begun, saves := w.trace.Begun[id]
	last := time.Duration(0)
	for _, i := range w.trace.Intervals {
		if i.Attempt == id && i.To >= 0 {
			worked, last = worked+i.To-i.From, i.To
		}
	}
	if !saves || at-last > 5*time.Second {
		return 0 // it was frozen, and can have saved nothing
	}
	return begun + worked
}
