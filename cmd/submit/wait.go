package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait ID...", Short: "Wait until jobs have ended; the code is that of the first that failed",
		Example: "  submit wait mfrg\n  submit wait --timeout 10m mfrg ge4t",
		Args:    atLeastOne("at least one job"), ValidArgsFunction: a.completeJobs(),
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
				return &codeError{
					code:  exitTimeout,
					cause: fmt.Errorf("not all jobs ended within %s; they go on", timeout),
				}
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
