package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) logsCommand() *cobra.Command {
	var follow, onlyErr, onlyOut bool
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Print what a task printed",
		Args: exactly(1, "one task (JOB or JOB.INDEX)"), ValidArgsFunction: a.completeJob(),
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
func (a *app) copyLogs(ctx context.Context, task grid.TaskID, follow bool,
	streams map[string]io.Writer,
) error {
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

func (a *app) copyPart(ctx context.Context, task grid.TaskID, q view.LogQuery,
	to io.Writer,
) (int64, error) {
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

// isSilent reports whether it is known that a task has printed nothing to a stream. To ask for what
// is not there takes longer than much else of a small task.
func isSilent(t view.TaskView, stream string) bool {
	if t.Printed == nil {
		return false
	}
	if stream == "stderr" {
		return t.Printed.StderrBytes == 0
	}
	return t.Printed.StdoutBytes == 0
}

// printLogs copies what a single task printed.
func (a *app) printLogs(ctx context.Context, id grid.JobID, task view.TaskView) {
	for _, stream := range []struct {
		name string
		to   io.Writer
	}{{"stdout", a.out}, {"stderr", a.err}} {
		if isSilent(task, stream.name) {
			continue
		}
		body, err := a.client.TaskLog(ctx, grid.TaskID{Job: id}, view.LogQuery{Stream: stream.name})
		if err != nil {
			a.say("read %s of job %s: %v", stream.name, id, err)
			continue
		}
		if _, err := io.Copy(stream.to, body); err != nil && !errors.Is(err, errOutput) {
			a.say("read %s of job %s: %v", stream.name, id, err)
		}
		_ = body.Close() // only read from
	}
}
