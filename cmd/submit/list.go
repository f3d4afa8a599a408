package main

import (
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
	since := ""
	limit := listedJobs
	cmd := &cobra.Command{
		Use: "list", Short: "List this agent's own submissions, newest first",
		Long: `List the own submissions, the one that was made last first. Jobs that have ended are kept
for a while (history.keep and history.size of the agent), and are forgotten earlier by submit
forget. At the site that holds the domain's links, jobs that run here for a linked domain are listed
too, marked "for domain NAME".`,
		Args:    exactly(0, "no argument"),
		Example: "  submit list\n  submit list --since 7d\n  submit list --since 2026-03-01 --limit 0",
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := parseSince(since, time.Now())
			if err != nil {
				return err
			}
			if limit < 0 {
				return usage("--limit: want a number from 1, or 0 for all, have %d", limit)
			}
			ask := limit
			if limit > 0 {
				ask++ // one more says whether there are more
			}
			jobs, err := a.client.Jobs(cmd.Context(), view.JobQuery{Since: from, Limit: ask})
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
	cmd.Flags().IntVar(&limit, "limit", listedJobs, "most jobs to show; 0 = all")
	return cmd
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
