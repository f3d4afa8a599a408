package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// status is a job's status with all its tasks.
type status struct {
	view.JobView
	TaskList []view.TaskView `json:"task_list"`
}

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status [ID]", Short: "Show how a job, one of its tasks or the agent is doing",
		Example: "  submit status\n  submit status mfrg\n  submit status mfrg.7\n  submit status mfrg " +
			"--watch",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("want at most one job, have %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: a.completeJob(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.showAgent(cmd)
			}
			subject, one, err := a.findSubject(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if one && !watch {
				return a.showTask(cmd.Context(), subject, false)
			}
			id := subject.Job
			if watch {
				return a.watch(cmd.Context(), id, func(v view.JobView) (bool, error) {
					return v.Phase.Ended(), a.ndjson(v)
				})
			}
			detail, err := a.client.Job(cmd.Context(), id)
			if err != nil {
				return err
			}
			tasks, err := a.client.AllTasks(cmd.Context(), id)
			if err != nil {
				return err
			}
			r := jobsResult(status{JobView: detail.Status, TaskList: tasks}, []view.JobView{detail.Status})
			jobTable := r.table
			r.table = func(t *table) {
				jobTable(t)
				a.taskRows(t, tasks)
				jobLines(t, detail.Status)
			}
			return a.show(r)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false,
		"print a line of JSON for each change until the job has ended")
	return cmd
}

func (a *app) taskRows(t *table, tasks []view.TaskView) {
	_ = t.writer.Flush() // the next table has other widths; the last Flush reports errors
	t.row("TASK", "PHASE", "SITE", "DISTANCE", "PLANNED", "STAYS", "CODE", "ATTEMPTS", "|STARTED",
		"|ENDED", "|CAUSE", "|ITEM")
	for _, task := range tasks {
		t.row(task.ID, string(task.Phase), nameOf(task.SiteName, task.Site), number(task.Distance),
			a.local(task.Planned), view.Percent(task.Kept),
			code(task.Code), strconv.Itoa(len(task.Attempts)), "|"+moment(task.Started),
			"|"+moment(task.Ended), "|"+task.Cause, "|"+task.Item)
	}
	_ = t.writer.Flush() // as above
	said := 0
	for _, task := range tasks {
		if text := a.taskText(task); text != "" && said < maxTaskLines {
			t.row(text)
			said++
		}
		for _, line := range task.CopyLines() {
			if said < maxTaskLines {
				t.row(line)
				said++
			}
		}
	}
}

// jobLines say why a job waits, or why it never started.
func jobLines(t *table, v view.JobView) {
	_ = t.writer.Flush() // what follows has no columns; the last Flush reports errors
	if v.Hint != "" && !v.Phase.Ended() {
		t.row(v.Hint)
	}
	if first, ok := v.NotStarted(); ok {
		t.row(notStarted(first))
	}
	if line := promiseLine(v); line != "" {
		t.row(line)
	}
}

func (a *app) showAgent(cmd *cobra.Command) error {
	s, err := a.client.Status(cmd.Context())
	if err != nil {
		return err
	}
	r := result{value: s, names: []string{string(s.Site)}}
	r.table = func(t *table) {
		state := "sharing"
		switch {
		case s.Stopping:
			state = "stopping"
		case s.Owner != nil && s.Owner.Busy && !s.Paused:
			state = "left to its owner: " + s.Owner.Why
		case s.Paused && s.PausedUntil.IsZero():
			state = "paused until resumed"
		case s.Paused:
			state = "paused until " + moment(s.PausedUntil)
		}
		t.row("SITE", nameOf(s.Name, s.Site))
		t.row("DOMAIN", string(s.Domain))
		t.row("STATE", state)
		t.row("CORES", fmt.Sprintf("%.1f of %.1f in use", float64(s.InUse.MilliCPUs)/1000,
			float64(s.Ceilings.MilliCPUs)/1000))
		t.row(
			"MEMORY",
			grid.FormatBytes(s.InUse.MemoryBytes)+" of "+grid.FormatBytes(s.Ceilings.MemoryBytes)+" in use",
		)
		t.row("TASKS", strconv.Itoa(len(s.Running)))
		t.row("PEERS", strconv.Itoa(s.Peers))
		t.row("DATA", grid.FormatBytes(s.DataUsedBytes)+" of "+grid.FormatBytes(s.DataQuotaBytes))
		for _, n := range s.Notices {
			t.row("NOTICE", strings.Join([]string{n.Text, n.Cause, n.Action}, " "))
		}
	}
	return a.show(r)
}
