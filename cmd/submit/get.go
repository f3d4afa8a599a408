package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) getCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "get ID", Short: "Write a job's outputs",
		Args: exactly(1, "one job"), ValidArgsFunction: a.completeJob(),
		Long: `Write the outputs of a job's finished tasks where the job file said, relative to
the present folder or --to. Files are replaced as a whole or not at all; nothing is
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

// fetch writes the outputs of a job's finished tasks below a folder.
func (a *app) fetch(ctx context.Context, id grid.JobID, folder string) error {
	tasks, err := a.client.AllTasks(ctx, id)
	if err != nil {
		return err
	}
	return a.writeOutputs(ctx, tasks, folder)
}

// writeOutputs writes what tasks have left below a folder: all that it can. It reports what went
// wrong.
func (a *app) writeOutputs(ctx context.Context, tasks []view.TaskView, folder string) error {
	var root *os.Root
	var errs []error
	var err error
	written := 0
	for _, task := range tasks {
		for _, out := range task.Outputs {
			if out.To == "" {
				continue
			}
			if root == nil {
				if root, err = openFolder(folder); err != nil {
					return err
				}
				defer func() { _ = root.Close() }()
			}
			if err := a.writeOutput(ctx, root, task.ID, out); err != nil {
				errs = append(errs, fmt.Errorf("task %s: write %s: %w", task.ID, out.To, err))
				continue
			}
			written++
		}
	}
	if written > 0 {
		a.say("wrote %d %s below %s", written, plural(uint32(min(written, 2)), "output"), folder)
	}
	return errors.Join(errs...)
}

func openFolder(folder string) (*os.Root, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the user's own results
		return nil, fmt.Errorf("make folder of outputs: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open folder of outputs: %w", err)
	}
	return root, nil
}
