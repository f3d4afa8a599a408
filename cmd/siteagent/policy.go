package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const policyLong = `Show or change, while the site runs, in what order those that wait in its plan
move up when something ends early or room is found:

  fcfs  first come, first served (the default)
  sjf   the shortest first          ljf  the longest first
  edf   the earliest deadline first
  lst   the latest possible start first

and how gaps before the first of them are filled:

  conservative  nobody is delayed by who comes later (the default)
  easy          only the first of those that wait is not delayed
  none          nobody starts before one ahead of it

Promises, that is fixed starts, deadlines and reservations, are kept whatever the
order. The change lasts until the agent ends; planning.policy and planning.backfill
in the configuration say how it begins.`

func policyCommand(o *options) *cobra.Command {
	backfill, f := "", (*form)(nil)
	cmd := &cobra.Command{
		Use: "policy [NAME]", Short: "Show or change the order in which those that wait move up",
		Long:              policyLong,
		Example:           "  siteagent policy\n  siteagent policy edf --backfill easy",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(grid.Policies(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			planning, err := c.Planning(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 || backfill != "" {
				if len(args) > 0 {
					planning.Policy = args[0]
				}
				if backfill != "" {
					planning.Backfill = backfill
				}
				if err = planning.Validate(); err != nil {
					return usageError{err}
				}
				if planning, err = c.SetPlanning(cmd.Context(), planning); err != nil {
					return err
				}
			}
			return f.print(cmd.OutOrStdout(), planning, func() error {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "policy    %s\nbackfill  %s\n",
					planning.Policy, planning.Backfill)
				return err
			})
		},
	}
	cmd.Flags().StringVar(
		&backfill, "backfill", "", "how gaps are filled: "+strings.Join(grid.Backfills(), ", "),
	)
	f = formFlag(cmd)
	return cmd
}

// maxPlanLines bounds how much of a long plan is shown; -o json has all.
const maxPlanLines = 20

// planLines say what a site's planner has before it: who runs, who waits and until
// when, and what is promised.
func planLines(p *view.PlanView, now time.Time) []line {
	if p == nil {
		return nil
	}
	bytes := grid.FormatBytes
	lines := []line{
		{"plan", p.Planning.Policy + ", backfill " + p.Planning.Backfill},
		{"promised", fmt.Sprintf("at most %s of %s cores and %s of %s memory at one time",
			cores(p.Promised.MilliCPUs), cores(p.Limit.MilliCPUs),
			bytes(p.Promised.MemoryBytes), bytes(p.Limit.MemoryBytes))},
	}
	for i, e := range p.Entries {
		if i == maxPlanLines {
			more := fmt.Sprintf("and %d more; -o json shows all", len(p.Entries)-i)
			lines = append(lines, line{"plan", more})
			break
		}
		lines = append(lines, line{"plan", entryText(e, now)})
	}
	return lines
}

// entryText is one attempt of the plan: "JOB.0 waits, deadline, 14:00:30 to 14:10:30".
func entryText(e view.PlanEntry, now time.Time) string {
	text := fmt.Sprintf("%s %s, %s, %s to %s, %s cores", e.Task, e.State, e.Class,
		cmp.Or(e.Start.Clock(now), "open"), cmp.Or(e.End.Clock(now), "open"), cores(e.Need.MilliCPUs))
	if e.Within != "" {
		text += ", in reservation " + string(e.Within)
	}
	if e.SubmitterName != "" {
		text += ", for " + e.SubmitterName
	}
	return text
}
