package main

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// listedJobs bounds a list if no limit is named.
const listedJobs = 100

func (a *app) listCommand() *cobra.Command {
	since, name, state := "", "", ""
	limit := listedJobs
	cmd := &cobra.Command{
		Use: "list", Short: "List this agent's own submissions, newest first",
		Long: `List the own submissions, the one that was made last first. Jobs that have ended are kept
for a while (history.keep and history.size of the agent), and are forgotten earlier by submit
forget. At the site that holds the domain's links, jobs that run here for a linked domain are listed
too, marked "for domain NAME".`,
		Args: exactly(0, "no argument"),
		Example: "  submit list\n  submit list --since 7d\n" +
			"  submit list --since 2026-03-01 --limit 0\n" +
			"  submit list --state failed,refused\n  submit list --name 'words/*'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := parseSince(since, time.Now())
			if err != nil {
				return err
			}
			if limit < 0 {
				return usage("--limit: want a number from 1, or 0 for all, have %d", limit)
			}
			only, err := listFilter(name, state)
			if err != nil {
				return err
			}
			jobs, err := a.someJobs(cmd.Context(), view.JobQuery{Since: from, Limit: limit}, only)
			if err != nil {
				return err
			}
			more := limit > 0 && len(jobs) > limit
			if more {
				jobs = jobs[:limit]
			}
			if err := a.show(jobsResult(jobs, jobs)); err != nil || !more {
				return err
			}
			a.say("these are the newest %d; --limit N shows more of them, --limit 0 all", limit)
			return nil
		},
	}
	cmd.Flags().StringVar(&since, "since", "",
		"jobs submitted within a time, such as 7d, or since a date, such as 2026-03-01")
	cmd.Flags().StringVar(&name, "name", "", `jobs with that name, or whose names match a pattern`)
	cmd.Flags().StringVar(&state, "state", "",
		"jobs in one of these phases, such as running or failed,refused; held and ended, too")
	cmd.Flags().IntVar(&limit, "limit", listedJobs, "most jobs to show; 0 = all")
	return cmd
}

// someJobs lists jobs that a filter lets pass: one more than the limit says that there are more.
func (a *app) someJobs(
	ctx context.Context, q view.JobQuery, only func(view.JobView) bool,
) ([]view.JobView, error) {
	limit := q.Limit
	if only == nil {
		if limit > 0 {
			q.Limit++
		}
		return a.client.Jobs(ctx, q)
	}
	var found []view.JobView
	for q.Limit = mostNamed; ; {
		page, err := a.client.Jobs(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, job := range page {
			if only(job) {
				found = append(found, job)
			}
		}
		if len(page) < q.Limit || limit > 0 && len(found) > limit {
			return found, nil
		}
		q.Before = page[len(page)-1].ID
	}
}

// The states of a filter that are no phases.
const (
	stateHeld  = "held"
	stateEnded = "ended"
)

// listFilter lets jobs pass that have a name and are in one of some states; nil: all pass.
func listFilter(name, state string) (func(view.JobView) bool, error) {
	if name == "" && state == "" {
		return nil, nil
	}
	if _, err := path.Match(name, ""); err != nil {
		return nil, usage("--name: %q is no pattern; write it like 'words/*'", name)
	}
	states, err := parseStates(state)
	if err != nil {
		return nil, err
	}
	return func(v view.JobView) bool {
		alike, _ := path.Match(name, v.Name) // it is a pattern
		in := slices.Contains(states, string(v.Phase)) ||
			v.Held && slices.Contains(states, stateHeld) ||
			v.Phase.Ended() && slices.Contains(states, stateEnded)
		return (name == "" || alike || name == v.Name) && (len(states) == 0 || in)
	}, nil
}

// parseStates reads words with commas between them.
func parseStates(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	known := []string{stateEnded}
	for _, phase := range view.Phases() {
		known = append(known, string(phase))
	}
	states := strings.Split(text, ",")
	for _, s := range states {
		if !slices.Contains(known, s) {
			return nil, usage("--state: want one of %s, have %q", strings.Join(known, ", "), s)
		}
	}
	return states, nil
}

// parseSince reads a duration back from now, a date of this machine's zone, or a moment.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if span, err := grid.ParseSpan(text); err == nil && span >= 0 {
		return now.Add(-span), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usage(
		"--since: want a duration such as 7d, or a date such as 2026-03-01, have %q", text)
}

// jobName is a job's name, with the domain that it runs here for.
func jobName(j view.JobView) string {
	if j.For == "" {
		return j.Name
	}
	name := strings.TrimPrefix(j.Name, string(j.For)+": ") // the gateway put that first
	return strings.TrimSpace(name + " (for domain " + string(j.For) + ")")
}

func jobsResult(value any, jobs []view.JobView) result {
	r := result{value: value}
	for _, j := range jobs {
		r.names = append(r.names, string(j.ID))
	}
	r.table = func(t *table) {
		t.row("ID", "NAME", "PHASE", "TASKS", "CODE", "SUBMITTED", "|STARTED", "|ENDED", "|MOVED",
			"|HINT")
		for _, j := range jobs {
			t.row(string(j.ID), jobName(j), string(j.Phase), counts(j.Tasks), code(j.Code),
				moment(j.Submitted),
				"|"+moment(j.Started), "|"+moment(j.Ended),
				"|"+strconv.FormatUint(uint64(j.Moves), 10), "|"+j.Hint)
		}
	}
	return r
}
