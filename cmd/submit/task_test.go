package main

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// What is known against a promise that is open is said of its task, whether it has a place or not.
func TestDoubtsAboutAPromiseAreSaid(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := &app{now: func() time.Time { return now }}
	task := view.TaskView{
		ID: "job.0", Phase: view.PhaseHeld, Site: "other", SiteName: "other",
		Planned: view.At(now.Add(time.Hour)),
		Promise: &view.PromiseView{State: "open", Text: "its site is silent"},
	}
	const planned = "job.0 is planned for 13:00:00 on other"
	if got := a.taskText(task); got != planned+"; its site is silent" {
		t.Errorf("said %q", got)
	}
	task.Planned = view.Time{}
	if got := a.taskText(task); got != "job.0 is held on other; its site is silent" {
		t.Errorf("without a place: said %q", got)
	}
	task.Promise = &view.PromiseView{State: "kept", Text: "x"}
	if got := a.taskText(task); got != "" {
		t.Errorf("of one that is kept: said %q", got)
	}
}
