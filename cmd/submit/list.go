package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List this agent's own submissions, newest first", Args: exactly(0, "no argument"),
		Example: "  submit list\n  submit list -o name",
		RunE: func(cmd *cobra.Command, _ []string) error {
			jobs, err := a.client.Jobs(cmd.Context())
			if err != nil {
				return err
			}
			return a.show(jobsResult(jobs, jobs))
		},
	}
}

func jobsResult(value any, jobs []view.JobView) result {
	r := result{value: value}
	for _, j := range jobs {
		r.names = append(r.names, string(j.ID))
	}
	r.table = func(t *table) {
		t.row("ID", "NAME", "PHASE", "TASKS", "CODE", "SUBMITTED", "|STARTED", "|ENDED", "|MOVED", "|HINT")
		for _, j := range jobs {
			t.row(string(j.ID), j.Name, string(j.Phase), counts(j.Tasks), code(j.Code), moment(j.Submitted),
				"|"+moment(j.Started), "|"+moment(j.Ended), "|"+strconv.FormatUint(uint64(j.Moves), 10), "|"+j.Hint)
		}
	}
	return r
}
