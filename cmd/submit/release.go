package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "release ID...", Short: "Let held jobs go on; give reservations back",
		Long: `Let a job go on that submit hold, or hold: true, has kept from being placed. A
reservation is given back; jobs running in it are stopped.`,
		Args: atLeastOne("at least one job or reservation"), ValidArgsFunction: a.completeOpenJobs(),
		Example: "  submit release mfrg",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, text := range args {
				if err := a.release(cmd.Context(), text); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// release lets one held job go on, or gives one reservation back.
func (a *app) release(ctx context.Context, text string) error {
	id, err := a.findJob(ctx, text)
	if err != nil {
		return err
	}
	detail, err := a.client.Job(ctx, id)
	switch {
	case err != nil:
		return err
	case detail.Status.Kind == grid.KindReservation.String():
		if err := a.client.Cancel(ctx, id); err != nil {
			return err
		}
		a.say("reservation %s released", id)
		return nil
	case !detail.Status.Held:
		return usage("%s is a job that is not held, and no reservation; "+
			"submit reservations lists those", id)
	}
	if err := a.client.Release(ctx, id); err != nil {
		return err
	}
	a.say("job %s goes on", id)
	return nil
}
