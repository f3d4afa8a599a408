package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// submitTES hands a task of GA4GH TES to the agent, which reads its inputs and writes its outputs
// itself, and follows it as asked.
func (a *app) submitTES(ctx context.Context, source jobText, f following) error {
	if !json.Valid(source.data) {
		return usage("%s has executors, as a task of GA4GH TES: want JSON", source.shown)
	}
	if err := a.checkDomain(ctx); err != nil {
		return err
	}
	id, err := a.client.SubmitTES(ctx, source.data)
	if err != nil {
		return err
	}
	r := result{
		value: map[string]string{"id": id}, names: []string{id},
		table: func(t *table) { t.row(id) },
	}
	if !f.wait || a.parsable {
		err = a.show(r)
	} else {
		a.say("task %s submitted", id)
	}
	if err != nil || !f.wait {
		return err
	}
	task, err := a.followTES(ctx, id)
	if err != nil {
		return a.interruptedTES(ctx, id, f, err)
	}
	return a.endTES(task)
}

// followTES waits for a task's end and says what becomes of it meanwhile.
func (a *app) followTES(ctx context.Context, id string) (view.TESTask, error) {
	answered, said := time.Now(), ""
	for pause := firstPause; ; pause = min(pause*3/2, pollEvery) {
		task, err := a.client.TESTask(ctx, id)
		switch {
		case err == nil:
			answered = time.Now()
			if line := tesLine(task); line != said {
				said = line
				a.say("%s", line)
			}
			if task.Ended() {
				return task, nil
			}
		case ctx.Err() != nil:
			return task, ctx.Err()
		case !errors.Is(err, client.ErrUnreachable) || time.Since(answered) > patience:
			return task, err
		}
		if err := pauseFor(ctx, pause, nil); err != nil {
			return task, err
		}
	}
}

// tesLine is a task's state, with the job and the site that it has.
func tesLine(task view.TESTask) string {
	facts := task.Newest().Metadata
	line := fmt.Sprintf("task %s: %s", task.ID, strings.ToLower(strings.ReplaceAll(task.State, "_", " ")))
	if site := facts["site_name"]; site != "" {
		line += " at " + clean(site)
	}
	if job := facts["job"]; job != "" {
		line += ", job " + clean(job)
	}
	return line
}

// endTES prints what a task's programs have printed, and gives its code: that of the program that
// failed.
func (a *app) endTES(task view.TESTask) error {
	if !a.parsable && (a.config.Output == "json" || a.config.Output == "yaml") {
		if err := a.show(result{value: task, names: []string{task.ID}}); err != nil {
			return err
		}
	} else if !a.parsable {
		for _, ran := range task.Newest().Executors {
			if _, err := io.WriteString(a.out, ran.Stdout); err != nil {
				return wrapOutput(err)
			}
			_, _ = io.WriteString(a.err, ran.Stderr) // there is no other place for it
		}
	}
	for _, note := range task.Newest().Notes {
		a.say("task %s: %s", task.ID, clean(note))
	}
	switch task.State {
	case "COMPLETE":
		return nil
	case "EXECUTOR_ERROR":
		code := exitOurs
		for _, ran := range task.Newest().Executors {
			if ran.Code != 0 {
				code = ran.Code
			}
		}
		return &codeError{code: code}
	case "CANCELED":
		return &codeError{code: exitOther}
	default:
		return &codeError{code: exitOurs}
	}
}

// interruptedTES says how to go on when following ended before the task.
func (a *app) interruptedTES(ctx context.Context, id string, f following, err error) error {
	switch {
	case ctx.Err() == nil:
		return fmt.Errorf("follow task %s: %w; it goes on", id, err)
	case !f.cancelOnInterrupt:
		a.say("\ndetached; task %s goes on and writes its outputs itself", id)
		return &codeError{code: exitDetached}
	}
	return a.cancelled(ctx, "task "+id, func(ctx context.Context) error {
		return a.client.CancelTES(ctx, id)
	})
}
