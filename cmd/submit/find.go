package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// findJob completes a unique prefix of a job's ID, or finds the job of a name.
func (a *app) findJob(ctx context.Context, text string) (grid.JobID, error) {
	if grid.JobID(text).Validate() == nil {
		return grid.JobID(text), nil
	}
	id, err := a.findPrefix(ctx, text)
	if !errors.Is(err, view.ErrNotFound) {
		return id, err
	}
	named, wrong := a.findName(ctx, text)
	if job, _, dotted := strings.Cut(text, "."); dotted && errors.Is(wrong, view.ErrNotFound) {
		return "", usage("%s is one task; name the whole job: %s", text, job)
	}
	return named, wrong
}

// findName finds the job that has a name: of several the only one that has not ended.
func (a *app) findName(ctx context.Context, name string) (grid.JobID, error) {
	jobs, err := a.client.Jobs(ctx, view.JobQuery{Limit: mostNamed})
	if err != nil {
		return "", err
	}
	var all, open []grid.JobID
	for _, job := range jobs {
		if job.Name != name || name == "" {
			continue
		}
		all = append(all, job.ID)
		if !job.Phase.Ended() {
			open = append(open, job.ID)
		}
	}
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("job %q: %w", name, view.ErrNotFound)
	case len(all) == 1:
		return all[0], nil
	case len(open) == 1:
		return open[0], nil
	default:
		return "", usage("%d jobs are called %q; name one by its id, the newest is %s",
			len(all), name, all[0])
	}
}

// mostNamed bounds the jobs, newest first, among which a name is looked for.
const mostNamed = 1_000

// findPrefix completes a unique prefix of a job's ID.
func (a *app) findPrefix(ctx context.Context, text string) (grid.JobID, error) {
	if !jobPrefix(text) {
		return completeID("job", text, nil)
	}
	jobs, err := a.client.Jobs(ctx, view.JobQuery{Prefix: text, Limit: mostLikened})
	if err != nil {
		return "", err
	}
	var ids []grid.JobID
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	return completeID("job", text, ids)
}

// mostLikened bounds the IDs that are looked at for one beginning.
const mostLikened = 100

// jobPrefix reports whether an ID may begin with a text.
func jobPrefix(text string) bool {
	const id = 16
	return len(text) > 0 && len(text) < id &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// completeID finds the one of some IDs that begins with a text.
func completeID(what, text string, ids []grid.JobID) (grid.JobID, error) {
	var found []string
	for _, id := range ids {
		if text != "" && strings.HasPrefix(string(id), text) {
			found = append(found, string(id))
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s %q: %w", what, text, view.ErrNotFound)
	case 1:
		return grid.JobID(found[0]), nil
	default:
		return "", usage("%q begins the ids of %d %ss: %s; write more of it", text, len(found), what,
			strings.Join(found[:min(len(found), 5)], ", "))
	}
}

// findSubject completes JOB or JOB.INDEX, and says whether it is one task.
func (a *app) findSubject(ctx context.Context, text string) (grid.TaskID, bool, error) {
	task, err := a.findTask(ctx, text)
	return task, strings.Contains(text, "."), err
}

// findTask completes JOB or JOB.INDEX; JOB alone is its task 0.
func (a *app) findTask(ctx context.Context, text string) (grid.TaskID, error) {
	prefix, index, dotted := cutIndex(text)
	id, err := a.findJob(ctx, prefix)
	if err != nil {
		return grid.TaskID{}, err
	}
	full := string(id)
	if dotted {
		full += "." + index
	}
	task, err := grid.ParseTaskID(full)
	if err != nil {
		return task, &codeError{code: exitUsage, cause: err}
	}
	return task, nil
}

// cutIndex separates JOB.INDEX. A name may have dots of its own.
func cutIndex(text string) (job, index string, dotted bool) {
	at := strings.LastIndexByte(text, '.')
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+1:], true
}

// findNamed completes the ID of a job that a job file names.
func (a *app) findNamed(ctx context.Context, ref jobfile.Ref) (grid.JobID, error) {
	if ref.Field == "reservation" {
		return a.findReservation(ctx, ref.Text)
	}
	return a.findJob(ctx, ref.Text)
}

// findReservation completes a unique prefix of a reservation's ID.
func (a *app) findReservation(ctx context.Context, text string) (grid.JobID, error) {
	all, err := a.client.Reservations(ctx)
	if err != nil {
		return "", err
	}
	var ids []grid.JobID
	for _, r := range all {
		ids = append(ids, r.ID)
	}
	id, err := completeID("reservation", text, ids)
	if errors.Is(err, view.ErrNotFound) {
		if job, wrong := a.findJob(ctx, text); wrong == nil && grid.JobID(text).Validate() != nil {
			return "", usage("%s is a job and no reservation; submit reservations lists those", job)
		}
	}
	return id, err
}
