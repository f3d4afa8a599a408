package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ending is the code of a job that has ended, with words where it is not 0 and where a promise
// was not kept.
func (a *app) ending(ctx context.Context, v view.JobView) error {
	err := a.endingCode(ctx, v)
	if !v.Promise.Kept() {
		a.say("%s", promiseLine(v))
	}
	return err
}

// promiseLine says what became of the times that a job's tasks were promised, empty where there
// is nothing to say yet.
func promiseLine(v view.JobView) string {
	if v.Promise == nil || v.Promise.State == grid.PromiseOpen.String() {
		return ""
	}
	return fmt.Sprintf("job %s was promised a time, and the promise is %s", v.ID,
		clean(v.Promise.Line()))
}

func (a *app) endingCode(ctx context.Context, v view.JobView) error {
	switch v.Phase {
	case view.PhaseDone, view.PhaseOver:
		return nil
	case view.PhaseRefused:
		if first, ok := v.NotStarted(); ok {
			a.say("job %s %s; `submit why %s` says more", v.ID, notStarted(first), first.ID)
			return &codeError{code: exitOther}
		}
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
		a.say("job %s failed with code %d%s; `submit logs %s` shows what it printed", v.ID, out, why,
			failed)
		return &codeError{code: out}
	}
}

// notStarted is "not started: job X failed".
func notStarted(first view.Earlier) string {
	what := string(first.Phase)
	if first.Phase == view.PhaseCancelled || first.Phase == view.PhaseRefused {
		what = "was " + what
	}
	return "not started: job " + string(first.ID) + " " + what
}

// cause is " (how a task ended)", empty when its code says all.
func (a *app) cause(ctx context.Context, id grid.JobID, index uint32) string {
	tasks, err := a.client.Tasks(ctx, id, index, 1)
	if err != nil || len(tasks) == 0 || tasks[0].Text == "" {
		return "" // the code was told; describe says more
	}
	return " (" + clean(tasks[0].Text) + ")"
}

// sayRefused says why nobody takes a job, and what could have been promised instead of
// what was asked for.
func (a *app) sayRefused(ctx context.Context, what string, v view.JobView) {
	reasons := strings.Join(v.Reasons, "; ")
	var site string
	var at view.Time
	if offers, err := a.client.Offers(ctx, v.ID); err == nil { // else why says more
		site, at = earliest(offers)
	}
	if at.IsZero() {
		a.say("no site can run this %s, %s: %s", what, v.ID, reasons)
		return
	}
	a.say("%s %s cannot be promised: %s", what, v.ID, reasons)
	a.say("the earliest that could be promised: %s, by %s", a.local(at), clean(site))
}
