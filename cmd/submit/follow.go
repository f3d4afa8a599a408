package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	patience   = 30 * time.Second // with an agent that does not answer
	pollEvery  = time.Second      // when no event says that something changed
	cancelTime = 5 * time.Second

	// Between two looks at a job pass at least so long: little at first, so that a
	// short job is not made long by looking, and more when it goes on.
	firstPause = 5 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// watch calls seen with the job's status whenever something changed, until seen
// says that it is enough or the context ends. An agent that goes away is waited
// for with patience.
func (a *app) watch(ctx context.Context, id grid.JobID, seen func(view.JobView) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	changed, done := make(chan struct{}, 1), make(chan struct{}) // 1: a change that is not looked at yet
	go func() {
		defer close(done)
		// Its errors are found by the polls too.
		_ = a.client.Events(ctx, view.FromNow, patience, func(e view.Event) error {
			if e.Job == id || e.Kind == "gap" || e.Kind == "now" { // something may have happened before
				select {
				case changed <- struct{}{}:
				default:
				}
			}
			return nil
		})
	}()
	defer func() {
		cancel()
		<-done
	}()
	answered := time.Now()
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		detail, err := a.client.Job(ctx, id)
		switch {
		case err == nil:
			answered = time.Now()
			if enough, wrong := seen(detail.Status); wrong != nil || enough {
				return wrong
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, client.ErrUnreachable) || time.Since(answered) > patience:
			return err
		}
		if err := pauseFor(ctx, pause, nil); err != nil {
			return err
		}
		if err := pauseFor(ctx, pollEvery, changed); err != nil {
			return err
		}
	}
}

// pauseFor waits for a time, a change or the end of the context.
func pauseFor(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// finish follows a job to its end, prints and writes what it left, and gives its
// code as an error.
func (a *app) finish(ctx context.Context, id grid.JobID, f following) error {
	last, err := a.follow(ctx, id, f)
	if err != nil {
		return a.interrupted(ctx, last, id, f, err)
	}
	structured := !a.parsable && (a.config.Output == "json" || a.config.Output == "yaml")
	if f.printLogs && last.Count == 1 && !structured && !a.parsable && !last.Started.IsZero() {
		a.printLogs(ctx, id)
	}
	if last.Phase == view.PhaseDone {
		if err := a.fetch(ctx, id, f.folder); err != nil {
			return &codeError{code: exitOurs, cause: err}
		}
	}
	if structured {
		if err := a.show(result{value: last, names: []string{string(id)}}); err != nil {
			return err
		}
	}
	return a.ending(ctx, last)
}

// follow shows a job's progress until it has ended.
func (a *app) follow(ctx context.Context, id grid.JobID, f following) (view.JobView, error) {
	var last view.JobView
	shown := progress{app: a}
	err := a.watch(ctx, id, func(v view.JobView) (bool, error) {
		last = v
		shown.show(ctx, v)
		if f.noWait && v.Phase == view.PhaseWaiting && v.Started.IsZero() {
			return false, a.giveUp(ctx, v)
		}
		return v.Phase.Ended(), nil
	})
	return last, err
}

// giveUp withdraws a job that has no room now.
func (a *app) giveUp(ctx context.Context, v view.JobView) error {
	if err := a.client.Cancel(ctx, v.ID); err != nil {
		return err
	}
	return &codeError{code: exitNever, cause: fmt.Errorf("job %s: no site has room now, withdrawn (--no-wait); `submit why %s` says why", v.ID, v.ID)}
}

// awaitPlacement waits until the job was placed or cannot be.
func (a *app) awaitPlacement(ctx context.Context, id grid.JobID, f following) error {
	return a.watch(ctx, id, func(v view.JobView) (bool, error) {
		switch {
		case v.Phase == view.PhaseRefused:
			return true, a.ending(ctx, v)
		case f.noWait && v.Phase == view.PhaseWaiting:
			return true, a.giveUp(ctx, v)
		default:
			return v.Phase != view.PhaseAnnounced && v.Phase != view.PhaseWaiting, nil
		}
	})
}

// interrupted says how to go on when following ended before the job.
func (a *app) interrupted(ctx context.Context, last view.JobView, id grid.JobID, f following, err error) error {
	if ctx.Err() == nil {
		if !last.Started.IsZero() && codeOf(err) != exitNever {
			return &codeError{code: exitOurs, cause: fmt.Errorf("follow job %s: %w; the job goes on, `submit wait %s` follows it again", id, err, id)}
		}
		return err
	}
	if !f.cancelOnInterrupt {
		a.say("\ndetached; job %s goes on. `submit wait %s` follows it again, `submit get %s` fetches its outputs, `submit cancel %s` ends it.", id, id, id, id)
		return &codeError{code: exitDetached}
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	if err := a.client.Cancel(grace, id); err != nil {
		return fmt.Errorf("cancel job %s: %w", id, err)
	}
	a.say("\njob %s cancelled", id)
	return &codeError{code: exitDetached}
}

// ending is the code of a job that has ended, with words where it is not 0.
func (a *app) ending(ctx context.Context, v view.JobView) error {
	switch v.Phase {
	case view.PhaseDone, view.PhaseOver:
		return nil
	case view.PhaseRefused:
		if !v.Started.IsZero() { // what it ran in or waited for is gone
			a.say("job %s was refused after it had started: %s", v.ID, strings.Join(v.Reasons, "; "))
			return &codeError{code: exitOurs}
		}
		a.sayRefused(ctx, "job", v)
		a.say("`submit why %s` shows each site's answer and what would have to change.", v.ID)
		return &codeError{code: exitNever}
	case view.PhaseCancelled, view.PhaseReleased:
		a.say("job %s was %s%s", v.ID, v.Phase, a.cause(ctx, v.ID, 0))
		if v.Started.IsZero() {
			return &codeError{code: exitOther}
		}
		return &codeError{code: exitOurs}
	default:
		out := exitOurs
		if v.Code != nil && *v.Code != 0 {
			out = *v.Code
		}
		failed, why := string(v.ID), ""
		if v.FailedIndex != nil {
			failed = grid.TaskID{Job: v.ID, Index: *v.FailedIndex}.String()
			why = a.cause(ctx, v.ID, *v.FailedIndex)
		}
		a.say("job %s failed with code %d%s; `submit logs %s` shows what it printed", v.ID, out, why, failed)
		return &codeError{code: out}
	}
}

// cause is " (how a task ended)", empty when its code says all.
func (a *app) cause(ctx context.Context, id grid.JobID, index uint32) string {
	tasks, err := a.client.Tasks(ctx, id, index, 1)
	if err != nil || len(tasks) == 0 || tasks[0].Text == "" {
		return "" // the code was told; describe says more
	}
	return " (" + clean(tasks[0].Text) + ")"
}

// printLogs copies what a single task printed.
func (a *app) printLogs(ctx context.Context, id grid.JobID) {
	for _, stream := range []struct {
		name string
		to   io.Writer
	}{{"stdout", a.out}, {"stderr", a.err}} {
		body, err := a.client.TaskLog(ctx, grid.TaskID{Job: id}, view.LogQuery{Stream: stream.name})
		if err != nil {
			a.say("read %s of job %s: %v", stream.name, id, err)
			continue
		}
		if _, err := io.Copy(stream.to, body); err != nil {
			a.say("read %s of job %s: %v", stream.name, id, err)
		}
		_ = body.Close() // only read from
	}
}

// progress shows a job's way: a table that is redrawn on a terminal, otherwise a
// line for each change.
type progress struct {
	app    *app
	last   string
	screen redraw
}

const maxTaskLines = 10

func (p *progress) show(ctx context.Context, v view.JobView) {
	line := fmt.Sprintf("%s  %s", v.ID, counts(v.Tasks))
	if v.Count == 1 {
		line = fmt.Sprintf("%s  %s", v.ID, v.Phase)
	}
	if v.Phase == view.PhaseAnnounced && v.Offers > 0 {
		line += fmt.Sprintf("  offers %d", v.Offers)
	}
	if v.Moves > 0 {
		line += fmt.Sprintf("  moved %d", v.Moves)
	}
	line += p.plan(ctx, v)
	hint := ""
	if v.Hint != "" && !v.Phase.Ended() {
		hint = "  " + clean(v.Hint)
	}
	if !p.app.terminal {
		if line+hint != p.last {
			p.app.say("%s%s", line, hint)
		}
		p.last = line + hint
		return
	}
	lines := []string{line + bar(v)}
	lines = append(lines, p.tasks(ctx, v)...)
	if hint != "" {
		lines = append(lines, hint)
	}
	p.screen.print(p.app.err, lines)
}

// plan is "  planned for ..." of a single task that waits where it was promised.
func (p *progress) plan(ctx context.Context, v view.JobView) string {
	if v.Count != 1 || v.Phase != view.PhaseAwarded && v.Phase != view.PhaseStaging && v.Phase != view.PhaseHeld {
		return ""
	}
	tasks, err := p.app.client.Tasks(ctx, v.ID, 0, 1)
	if err != nil || len(tasks) == 0 {
		return "" // the next look tells
	}
	if text := p.app.planText(tasks[0]); text != "" {
		return "  " + text
	}
	return ""
}

// bar is "  [#####.....]" of an array's ended tasks.
func bar(v view.JobView) string {
	const width = 20
	if v.Count < 2 {
		return ""
	}
	var ended uint32
	for _, phase := range view.Phases() {
		if phase.Ended() {
			ended += v.Tasks[phase]
		}
	}
	full := int(uint64(ended) * width / uint64(v.Count))
	return "  [" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// tasks describes the tasks that are under way.
func (p *progress) tasks(ctx context.Context, v view.JobView) []string {
	if v.Phase.Ended() || v.Count > 1_000 {
		return nil
	}
	tasks, err := p.app.client.Tasks(ctx, v.ID, 0, int(v.Count))
	if err != nil {
		return nil // the next look tells
	}
	var lines []string
	for _, t := range tasks {
		if t.Phase.Ended() || t.Site == "" || len(lines) == maxTaskLines {
			continue
		}
		line := fmt.Sprintf("  %-6d %-10s on %s", t.Index, t.Phase, clean(nameOf(t.SiteName, t.Site)))
		if t.Distance != nil {
			line += "  distance " + number(t.Distance)
		}
		if t.Progress != nil && t.Progress.TotalBytes > 0 {
			line += fmt.Sprintf("  %d %%", 100*t.Progress.DoneBytes/t.Progress.TotalBytes)
		}
		lines = append(lines, line)
	}
	return lines
}

// nameOf is a site's name for people, or its ID.
func nameOf(name string, id grid.SiteID) string {
	if name != "" {
		return name
	}
	return string(id)
}
