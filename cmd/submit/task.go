package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// showTask prints one task, with all its attempts if asked.
func (a *app) showTask(ctx context.Context, id grid.TaskID, attempts bool) error {
	task, err := a.oneTask(ctx, id)
	if err != nil {
		return err
	}
	return a.show(result{value: task, names: []string{task.ID}, table: func(t *table) {
		a.taskRows(t, []view.TaskView{task})
		if attempts {
			attemptRows(t, []view.TaskView{task})
		}
		if !task.Promise.Kept() {
			_ = t.writer.Flush() // what follows has no columns; the last Flush reports errors
			t.row(task.ID + " was promised a time, and the promise is " + task.Promise.Line())
		}
	}})
}

// taskText is a sentence about a task where its phase does not say all, else empty.
func (a *app) taskText(t view.TaskView) string {
	text, doubt := a.taskState(t), t.Promise.Doubt()
	if text == "" && doubt != "" {
		text = fmt.Sprintf("%s %s%s", t.ID, phaseVerb(t.Phase), onSite(t))
	}
	if doubt != "" {
		text += "; " + clean(doubt)
	}
	return text
}

// taskState is taskText without what is known against its promise.
func (a *app) taskState(t view.TaskView) string {
	if text := a.planText(t); text != "" {
		return t.ID + " is " + text
	}
	saved := a.savedText(t)
	if t.Text == "" && saved == "" && t.Move == nil {
		return ""
	}
	text := fmt.Sprintf("%s %s%s", t.ID, phaseVerb(t.Phase), onSite(t))
	if t.Text != "" {
		text += ": " + t.Text
	}
	if saved != "" {
		text += "; " + saved
	}
	if t.Move != nil {
		text += "; it " + t.Move.Line()
	}
	return text
}

// phaseVerb is a phase as the verb of a sentence.
func phaseVerb(p view.Phase) string {
	switch p {
	case view.PhaseFailed:
		return "failed"
	case view.PhaseCancelled, view.PhaseRefused, view.PhaseLost, view.PhaseReleased:
		return "was " + string(p)
	default:
		return "is " + string(p)
	}
}

// onSite is " on ben", empty for a task that is nowhere.
func onSite(t view.TaskView) string {
	if name := nameOf(t.SiteName, t.Site); name != "" {
		return " on " + name
	}
	return ""
}

// whyTask says where a task runs or waits, and why there.
func (a *app) whyTask(v view.JobView, t view.TaskView) []string {
	text := a.taskText(t)
	if text == "" {
		text = t.ID + " " + phaseVerb(t.Phase) + onSite(t)
		if v.Hint != "" && t.Phase == view.PhaseWaiting {
			text += ": " + v.Hint
		}
	}
	lines := []string{text}
	if t.Distance != nil && t.Site != "" {
		lines[0] += ", at distance " + number(t.Distance)
	}
	lines = append(lines, t.CopyLines()...)
	for _, at := range t.Attempts {
		if at.Token != t.Token && at.Cause != "" {
			lines = append(lines, fmt.Sprintf("attempt %d on %s ended: %s",
				at.Token, nameOf(at.SiteName, at.Site), at.Cause))
		}
	}
	return lines
}

// whyJob is why a job is not under way, or nothing.
func (a *app) whyJob(v view.JobView, tasks []view.TaskView) []string {
	var lines []string
	if first, ok := v.NotStarted(); ok {
		return []string{
			"job " + string(v.ID) + " " + notStarted(first) + "; `submit why " + string(first.ID) +
				"` says more",
		}
	}
	for _, e := range v.After {
		if e.Phase != "" && e.Phase != view.PhaseDone && !v.Phase.Ended() {
			lines = append(lines, fmt.Sprintf("waits for job %s, which %s", e.ID, phaseVerb(e.Phase)))
		}
	}
	if len(lines) == 0 && v.Hint != "" && !v.Phase.Ended() {
		lines = append(lines, v.Hint)
	}
	if v.Phase == view.PhaseRefused {
		lines = append(lines, "job "+string(v.ID)+" was refused: "+strings.Join(v.Reasons, "; "))
	}
	for _, t := range tasks {
		if text := a.taskText(t); text != "" && v.Phase != view.PhaseRefused &&
			len(lines) < maxTaskLines {
			lines = append(lines, text)
		}
		more := t.CopyLines()
		lines = append(lines, more[:min(len(more), max(maxTaskLines-len(lines), 0))]...)
	}
	return lines
}
