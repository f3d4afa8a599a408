package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) getCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "get ID", Short: "Write a job's outputs", Args: exactly(1, "one job"),
		Long: `Write the outputs of a job's finished tasks where the job file said, relative to
the present folder or --to. Files are replaced at once or not at all; nothing is
written through a link.`,
		Example: "  submit get mfrg\n  submit get mfrg --to results",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := a.findJob(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.fetch(cmd.Context(), id, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", ".", "folder to write to")
	return cmd
}

func (a *app) logsCommand() *cobra.Command {
	var follow, onlyErr, onlyOut bool
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Print what a task printed", Args: exactly(1, "one task (JOB or JOB.INDEX)"),
		Long: `Print a task's standard output on ours and its standard error on ours. JOB alone
is task 0. With -f the command goes on until the task has ended.`,
		Example: "  submit logs mfrg\n  submit logs -f mfrg.7\n  submit logs --stderr mfrg",
		RunE: func(cmd *cobra.Command, args []string) error {
			task, err := a.findTask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			streams := map[string]io.Writer{"stdout": a.out, "stderr": a.err}
			if onlyErr {
				streams = map[string]io.Writer{"stderr": a.out}
			} else if onlyOut {
				delete(streams, "stderr")
			}
			return a.copyLogs(cmd.Context(), task, follow, streams)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the task has ended")
	cmd.Flags().BoolVar(&onlyErr, "stderr", false, "print only standard error, on standard output")
	cmd.Flags().BoolVar(&onlyOut, "stdout", false, "print only standard output")
	return cmd
}

// copyLogs copies the streams side by side.
func (a *app) copyLogs(ctx context.Context, task grid.TaskID, follow bool, streams map[string]io.Writer) error {
	results := make(chan error, len(streams)) // one for each stream
	for name, to := range streams {
		go func() { results <- a.copyLog(ctx, task, view.LogQuery{Stream: name, Follow: follow}, to) }()
	}
	var first error
	for range streams {
		if err := <-results; err != nil && first == nil {
			first = err
		}
	}
	if ctx.Err() != nil {
		return &codeError{code: exitDetached}
	}
	return first
}

// logPoll is the pause before a log is asked for again that a site left off.
const logPoll = 500 * time.Millisecond

// copyLog copies one stream; when following, over all attempts of the task until
// it has ended. An attempt elsewhere begins its output again.
func (a *app) copyLog(ctx context.Context, task grid.TaskID, q view.LogQuery, to io.Writer) error {
	var token grid.Token
	for {
		before, err := a.oneTask(ctx, task)
		if err != nil {
			return err
		}
		if before.Token != token {
			token, q.Offset = before.Token, 0
		}
		n, err := a.copyPart(ctx, task, q, to)
		q.Offset += n
		over := !q.Follow || before.Phase.Ended()
		if over || ctx.Err() != nil {
			return err
		}
		select { // it has not started, has moved, or has just ended and is read to its end
		case <-time.After(logPoll):
		case <-ctx.Done():
		}
	}
}

func (a *app) copyPart(ctx context.Context, task grid.TaskID, q view.LogQuery, to io.Writer) (int64, error) {
	body, err := a.client.TaskLog(ctx, task, q)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(to, body)
	return n, errors.Join(err, body.Close())
}

// oneTask is the present state of a task.
func (a *app) oneTask(ctx context.Context, task grid.TaskID) (view.TaskView, error) {
	tasks, err := a.client.Tasks(ctx, task.Job, task.Index, 1)
	if err == nil && (len(tasks) == 0 || tasks[0].Index != task.Index) {
		err = fmt.Errorf("%w: no such task: %s", view.ErrNotFound, task)
	}
	if err != nil {
		return view.TaskView{}, err
	}
	return tasks[0], nil
}

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait ID...", Short: "Wait until jobs have ended; the code is that of the first that failed",
		Example: "  submit wait mfrg\n  submit wait --timeout 10m mfrg ge4t", Args: atLeast(1, "at least one job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			var ids []grid.JobID
			for _, text := range args {
				id, err := a.findJob(ctx, text)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			err := a.waitAll(ctx, ids)
			if errors.Is(ctx.Err(), context.DeadlineExceeded) && cmd.Context().Err() == nil {
				return &codeError{code: exitTimeout, cause: fmt.Errorf("not all jobs ended within %s; they go on", timeout)}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up with code 124 after this long")
	return cmd
}

// waitAll follows jobs one after the other and prints them when all have ended.
func (a *app) waitAll(ctx context.Context, ids []grid.JobID) error {
	var views []view.JobView
	var first error
	for _, id := range ids {
		last, err := a.follow(ctx, id, following{})
		if err != nil {
			return a.interrupted(ctx, last, id, following{}, err)
		}
		views = append(views, last)
		if err := a.ending(ctx, last); err != nil && first == nil {
			first = err
		}
	}
	if a.parsable || a.config.Output != "table" {
		value := any(views)
		if len(views) == 1 {
			value = views[0]
		}
		if err := a.show(jobsResult(value, views)); err != nil {
			return err
		}
	}
	return first
}

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID...", Short: "Withdraw jobs; running tasks are stopped", Args: atLeast(1, "at least one job"),
		Example: "  submit cancel mfrg",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, text := range args {
				id, err := a.findJob(cmd.Context(), text)
				if err != nil {
					return err
				}
				if err := a.client.Cancel(cmd.Context(), id); err != nil {
					return err
				}
				a.say("job %s cancelled", id)
			}
			return nil
		},
	}
}

func (a *app) eventsCommand() *cobra.Command {
	var after uint64
	var count int
	cmd := &cobra.Command{
		Use: "events", Short: "Print what happens, a line each, until interrupted", Args: exactly(0, "no argument"),
		Long: `Print the events the agent still keeps and then what happens, until interrupted.
With -o json each line is one JSON document; --after takes the id of the last
event seen.`,
		Example: "  submit events\n  submit events -o json | jq .phase",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count <= 0 {
				count = math.MaxInt
			}
			err := a.client.Events(cmd.Context(), after, patience, func(e view.Event) error {
				if err := a.printEvent(e); err != nil {
					return err
				}
				if count--; count == 0 {
					return client.ErrStop
				}
				return nil
			})
			if cmd.Context().Err() != nil {
				err = nil // an interrupt is the usual end
			}
			return err
		},
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "id of the last event seen")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "end after so many events")
	return cmd
}

func (a *app) printEvent(e view.Event) error {
	switch a.config.Output {
	case "json", "yaml":
		return a.ndjson(e)
	case "name":
		_, err := fmt.Fprintln(a.out, e.ID)
		return wrapOutput(err)
	}
	subject := e.Task
	if subject == "" {
		subject = string(e.Job)
	}
	line := fmt.Sprintf("%s  %-5s  %s", moment(e.Time), clean(e.Kind), clean(subject))
	if e.Phase != "" {
		line += "  " + string(e.Phase)
	}
	if e.Site != "" || e.SiteName != "" {
		line += "  on " + clean(nameOf(e.SiteName, e.Site))
	}
	if e.Distance != nil {
		line += "  distance " + number(e.Distance)
	}
	if e.Token > 1 {
		line += "  attempt " + strconv.FormatUint(uint64(e.Token), 10)
	}
	if e.Text != "" {
		line += "  " + clean(e.Text)
	}
	_, err := fmt.Fprintln(a.out, line)
	return wrapOutput(err)
}
