package main

import (
	"context"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// killOne kills, with SIGKILL, an agent that holds a started, unfinished task and
// is not the submitter's. It returns nil when there is none at the moment.
//
// The agent is suspended for the second look, so that the task that it is killed
// for cannot end in between: what the submitter then still sees running, it will
// never hear of again.
func (j *job) killOne(
	ctx context.Context, m *localmesh.Mesh, out *localmesh.Screen, tasks []view.TaskView,
) (*localmesh.Agent, error) {
	victim := busiest(m, tasks)
	if victim == nil {
		return nil, nil
	}
	if err := localmesh.Suspend(victim.Process); err != nil {
		return nil, fmt.Errorf("suspend %s: %w", victim.Name, err)
	}
	// News that was on its way when the agent stopped arrives during the pause.
	err := localmesh.Pause(ctx)
	if err == nil {
		tasks, err = j.api.AllTasks(ctx, j.id)
	}
	held := started(tasks, victim.ID)
	if err != nil || len(held) == 0 {
		if again := localmesh.Resume(victim.Process); err == nil {
			err = again
		}
		return nil, err
	}
	if err := victim.Process.Kill(); err != nil {
		return nil, fmt.Errorf("kill %s: %w", victim.Name, err)
	}
	<-victim.Exited
	out.Say("killed %s (process %d, SIGKILL), which had started %s of the job",
		victim.Name, victim.Process.Pid, plural(len(held), "task"))
	return victim, nil
}

// busiest is the agent with the most started tasks, the submitter's left out.
func busiest(m *localmesh.Mesh, tasks []view.TaskView) *localmesh.Agent {
	var best *localmesh.Agent
	most := 0
	for _, a := range m.Agents[1:] {
		if n := len(started(tasks, a.ID)); n > most {
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
