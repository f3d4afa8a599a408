package main

import (
	"strconv"

	"github.com/spf13/cobra"
)

func (a *app) domainsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "domains", Short: "List the linked domains, and how your newest jobs used them",
		Args: exactly(0, "no argument"),
		Long: `List the domains that this one is linked with, as far as the agent has heard of them
since it was started. Tasks run there while this domain has no place for them: those of jobs
without a start, a deadline, a reservation, or parts that run together. REACHABLE says whether this domain's
gateway may send something there now. JOBS, TASKS and DONE count what the newest 100 jobs of this
agent have there, or had when they ended. The terms of each link are shown by siteagent domains.`,
		Example: "  submit domains\n  submit domains -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := a.client.Neighbours(cmd.Context())
			if err != nil {
				return err
			}
			r := result{value: rows}
			for _, row := range rows {
				r.names = append(r.names, string(row.Name))
			}
			r.table = func(t *table) {
				t.row("DOMAIN", "REACHABLE", "JOBS", "TASKS", "DONE", "|ID")
				for _, row := range rows {
					reachable := "no"
					if row.Reachable {
						reachable = "yes"
					}
					t.row(string(row.Name), reachable, strconv.Itoa(row.Jobs),
						strconv.Itoa(row.Tasks), strconv.Itoa(row.Done), "|"+string(row.Domain))
				}
			}
			if err := a.show(r); err != nil {
				return err
			}
			if len(rows) == 0 && a.config.Output == "table" && !a.parsable {
				a.say("the agent has heard of no linked domain; " +
					"siteagent domain --help tells how to link two")
			}
			return nil
		},
	}
}
