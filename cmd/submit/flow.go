package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// takeBackTime bounds how long a flow that was refused is taken back for.
const takeBackTime = 10 * time.Second

// handed is a flow that the agent has.
type handed struct {
	flow *jobfile.Flow
	ids  []grid.JobID // in the order of the file
	name map[grid.JobID]string
}

// submitFlow submits all jobs of a flow, and follows them as asked.
func (a *app) submitFlow(ctx context.Context, source jobText, f following) error {
	flow, err := jobfile.LoadFlow(source.data, source.folder, a.readingOf(source))
	if err != nil {
		return err
	}
	if err = a.checkDomain(ctx); err != nil {
		return err
	}
	h, err := a.handFlow(ctx, flow)
	if err != nil {
		return err
	}
	if !f.wait || a.parsable {
		if err := a.showFlow(h); err != nil {
			return err
		}
	}
	if !f.wait {
		if !a.parsable {
			a.say("`submit wait %s` waits for all of it.", h.list())
		}
		return nil
	}
	if !a.parsable {
		a.say("flow submitted: %d %s", len(h.ids), plural(uint32(len(h.ids)), "job"))
	}
	return a.finishFlow(ctx, h, f)
}

// handFlow uploads and submits the jobs, each after those that it needs. Those that need none are
// held until the agent has taken all: nothing starts of a flow of which a part is refused.
func (a *app) handFlow(ctx context.Context, flow *jobfile.Flow) (*handed, error) {
	h := &handed{
		flow: flow, ids: make([]grid.JobID, len(flow.Jobs)), name: map[grid.JobID]string{},
	}
	var made, first []grid.JobID
	for _, i := range flow.Order() {
		j := flow.Jobs[i]
		starts := len(j.Needs) == 0 && !j.Plan.File.Held
		j.Plan.File.Held = j.Plan.File.Held || starts
		job, err := a.uploadFinding(ctx, j.Plan, h.find)
		if err == nil {
			h.ids[i], err = a.client.Submit(ctx, job)
		}
		if err != nil {
			a.takeBack(ctx, made)
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		made, h.name[h.ids[i]] = append(made, h.ids[i]), j.Name
		if starts {
			first = append(first, h.ids[i])
		}
	}
	for i, id := range first {
		if err := a.client.Release(ctx, id); err != nil {
			return nil, fmt.Errorf("start the flow: %w; `submit release %s` starts the rest of it",
				err, listed(first[i:]))
		}
	}
	return h, nil
}

// takeBack removes the jobs of a flow that was refused. Nothing of them has started.
func (a *app) takeBack(ctx context.Context, made []grid.JobID) {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	for _, id := range slices.Backward(made) {
		err := a.client.Cancel(grace, id)
		if err == nil {
			err = a.client.Forget(grace, id)
		}
		if err != nil {
			a.say("job %s is held and stays: %v; `submit cancel %s` removes it", id, err, id)
		}
	}
	a.say("nothing of the flow was started")
}

// find gives the job of a name, of those that were submitted already.
func (h *handed) find(ref jobfile.Ref) (grid.JobID, error) {
	for i, j := range h.flow.Jobs {
		if j.Name == ref.Text && h.ids[i] != "" {
			return h.ids[i], nil
		}
	}
	return "", fmt.Errorf("job %s: %w", ref.Text, view.ErrNotFound)
}

func listed(ids []grid.JobID) string {
	var all []string
	for _, id := range ids {
		all = append(all, string(id))
	}
	return strings.Join(all, " ")
}

func (h *handed) list() string { return listed(h.ids) }

// showFlow prints which job has which ID, in the order of the file.
func (a *app) showFlow(h *handed) error {
	type row struct {
		Name  string     `json:"name"`
		ID    grid.JobID `json:"id"`
		Needs []string   `json:"needs"`
	}
	var rows []row
	r := result{}
	for i, j := range h.flow.Jobs {
		rows = append(rows, row{j.Name, h.ids[i], append([]string{}, j.Needs...)})
		r.names = append(r.names, string(h.ids[i]))
	}
	r.value = rows
	r.table = func(t *table) {
		t.row("JOB", "ID", "NEEDS")
		for _, row := range rows {
			t.row(row.Name, string(row.ID), strings.Join(row.Needs, ", "))
		}
	}
	return a.show(r)
}

// finishFlow follows a flow to its end and writes what its jobs leave as soon as each is done.
func (a *app) finishFlow(ctx context.Context, h *handed, f following) error {
	shown := flowProgress{app: a, flow: h, last: make([]string, len(h.ids))}
	fetched := make([]bool, len(h.ids))
	var last []view.JobView
	var wrong []error
	err := a.watchAll(ctx, h.ids, func(views []view.JobView) (bool, error) {
		last = views
		shown.show(views)
		open := false
		for i, v := range views {
			if v.Phase == view.PhaseDone && !fetched[i] {
				// What is said now stands below the picture.
				fetched[i], shown.screen.lines = true, 0
				if err := a.fetch(ctx, v.ID, f.folder); err != nil {
					wrong = append(wrong, err)
				}
			}
			open = open || !v.Phase.Ended()
		}
		return !open, nil
	})
	if err != nil {
		return a.interruptedFlow(ctx, h, f, err)
	}
	if as := a.config.Output; !a.parsable && (as == "json" || as == "yaml") {
		if err := a.show(jobsResult(last, last)); err != nil {
			return err
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return &codeError{code: exitOurs, cause: err}
	}
	return a.flowEnding(ctx, last)
}

// flowEnding says of all jobs that went wrong how, and gives the code of the first of them that was
// not merely stopped because of another one.
func (a *app) flowEnding(ctx context.Context, views []view.JobView) error {
	var first, stopped error
	for _, v := range views {
		err := a.ending(ctx, v)
		if err == nil {
			continue
		}
		into := &first
		if _, because := v.NotStarted(); because {
			into = &stopped
		}
		if *into == nil {
			*into = err
		}
	}
	if first == nil {
		return stopped
	}
	return first
}

// interruptedFlow says how to go on when following ended before the flow.
func (a *app) interruptedFlow(ctx context.Context, h *handed, f following, err error) error {
	switch {
	case ctx.Err() == nil:
		return &codeError{
			code: exitOurs,
			cause: fmt.Errorf("follow the flow: %w; it goes on, `submit wait %s` follows it again",
				err, h.list()),
		}
	case !f.cancelOnInterrupt:
		a.say("\ndetached; the flow goes on. `submit wait %s` follows it again, `submit get ID` "+
			"fetches a job's outputs, `submit cancel %s` ends it.", h.list(), h.list())
		return &codeError{code: exitDetached}
	}
	return a.cancelled(ctx, "the flow", func(ctx context.Context) error {
		for _, id := range h.ids {
			if err := a.client.Cancel(ctx, id); err != nil {
				return fmt.Errorf("job %s: %w", id, err)
			}
		}
		return nil
	})
}

// flowProgress shows how far each job of a flow is.
type flowProgress struct {
	app    *app
	flow   *handed
	last   []string
	screen redraw
}

func (p *flowProgress) show(views []view.JobView) {
	width := 0
	for _, j := range p.flow.flow.Jobs {
		width = max(width, len(j.Name))
	}
	lines := make([]string, len(views))
	for i, v := range views {
		lines[i] = fmt.Sprintf("%-*s  %s", width, p.flow.flow.Jobs[i].Name, p.flow.standing(v))
		if !p.app.terminal && lines[i] != p.last[i] {
			p.app.say("%s", lines[i])
		}
	}
	copy(p.last, lines)
	if p.app.terminal {
		p.screen.print(p.app.err, lines, p.app.columns())
	}
}

// standing says how far a job is: what it waits for, how many of its tasks are done, or because of
// which job it was stopped.
func (h *handed) standing(v view.JobView) string {
	if first, is := v.NotStarted(); is {
		return "stopped because " + h.name[first.ID] + " " + strings.TrimPrefix(notStarted(first),
			"not started: job "+string(first.ID)+" ")
	}
	var awaited []string
	for _, e := range v.After {
		if e.Phase != "" && e.Phase != view.PhaseDone {
			awaited = append(awaited, h.name[e.ID])
		}
	}
	switch {
	case v.Phase == view.PhaseWaiting && v.Held:
		return "held"
	case v.Phase == view.PhaseWaiting && len(awaited) > 0:
		return "waiting for " + strings.Join(awaited, ", ")
	case v.Count > 1 && !v.Phase.Ended():
		return fmt.Sprintf("%s %d/%d", v.Phase, v.Tasks[view.PhaseDone], v.Count)
	default:
		return string(v.Phase)
	}
}
