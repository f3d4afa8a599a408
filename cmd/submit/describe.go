package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// described holds what describe prints as JSON: a job file with inputs as cid:, which
// job reads again, and the status, which it ignores.
type described struct {
	Job    jobfile.Document `json:"job"`
	Status status           `json:"status"`
}

func (a *app) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "describe ID", Short: "Show a job or one of its tasks in full, with every attempt",
		Example: "  submit describe mfrg\n  submit describe mfrg.7\n  submit describe mfrg -o json | " +
			"submit job - --parsable",
		Args: exactly(1, "one job or task"), ValidArgsFunction: a.completeJob(),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, one, err := a.findSubject(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if one {
				return a.showTask(cmd.Context(), subject, true)
			}
			id := subject.Job
			detail, err := a.client.Job(cmd.Context(), id)
			if err != nil {
				return err
			}
			tasks, err := a.client.AllTasks(cmd.Context(), id)
			if err != nil {
				return err
			}
			job, err := detail.Spec.Job()
			if err != nil {
				return fmt.Errorf("read answer of agent: %w", err)
			}
			value := described{
				Job:    jobfile.Format(job),
				Status: status{JobView: detail.Status, TaskList: tasks},
			}
			r := jobsResult(value, []view.JobView{detail.Status})
			head := r.table
			r.table = func(t *table) {
				head(t)
				a.taskRows(t, tasks)
				attemptRows(t, tasks)
				jobLines(t, detail.Status)
			}
			return a.show(r)
		},
	}
}

func attemptRows(t *table, tasks []view.TaskView) {
	_ = t.writer.Flush() // the next table has other widths; the last Flush reports errors
	t.row("ATTEMPT", "SITE", "DISTANCE", "ASKED", "STARTED", "ENDED", "CAUSE", "CODE")
	for _, task := range tasks {
		for _, at := range task.Attempts {
			t.row(fmt.Sprintf("%s#%d", task.ID, at.Token), nameOf(at.SiteName, at.Site),
				number(&at.Distance),
				moment(at.Awarded), moment(at.Started), moment(at.Ended), at.Cause, code(at.Code))
		}
	}
}
