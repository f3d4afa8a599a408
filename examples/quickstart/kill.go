package main

import (
	"context"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// killOne kills, with SIGKILL, an agent that holds a started, unfinished task and
// is not the submitter's. It returns nil when there is none at the moment.
//
// The agent is suspended for the second look, so that the task that it is killed
// for cannot end in between: what the submitter then still sees running, it will
// never hear of again.
func (j *job) killOne(ctx context.Context, m *mesh, out *screen, tasks []view.TaskView) (*agent, error) {
	victim := m.busiest(tasks)
	if victim == nil {
		return nil, nil
	}
	if err := suspend(victim.process); err != nil {
		return nil, fmt.Errorf("suspend %s: %w", victim.name, err)
	}
	// News that was on its way when the agent stopped arrives during the pause.
	err := pause(ctx)
	if err == nil {
		tasks, err = j.api.AllTasks(ctx, j.id)
	}
	held := started(tasks, victim.id)
	if err != nil || len(held) == 0 {
		if again := resume(victim.process); err == nil {
			err = again
		}
		return nil, err
	}
	if err := victim.process.Kill(); err != nil {
		return nil, fmt.Errorf("kill %s: %w", victim.name, err)
	}
	<-victim.exited
	out.say("killed %s (process %d, SIGKILL), which had started %s of the job",
		victim.name, victim.process.Pid, plural(len(held), "task"))
	return victim, nil
}

// busiest is the agent with the most started tasks, the submitter's left out.
func (m *mesh) busiest(tasks []view.TaskView) *agent {
	var best *agent
	most := 0
	for _, a := range m.agents[1:] {
		if n := len(started(tasks, a.id)); n > most {
			best, most = a, n
		}
	}
	return best
}

// started lists the tasks that run on a site.
func started(tasks []view.TaskView, site grid.SiteID) []view.TaskView {
	var held []view.TaskView
	for _, t := range tasks {
		if t.Site == site && t.Phase == view.PhaseRunning && !t.Started.IsZero() {
			held = append(held, t)
		}
	}
	return held
}

// movedFrom lists the tasks that were tried on a site and ended on another.
func movedFrom(tasks []view.TaskView, site grid.SiteID) []view.TaskView {
	var moved []view.TaskView
	for _, t := range tasks {
		for _, attempt := range t.Attempts {
			if attempt.Site == site && t.Site != site && t.Phase == view.PhaseDone {
				moved = append(moved, t)
				break
			}
		}
	}
	return moved
}
