package main

import "github.com/spf13/cobra"

func (a *app) holdCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hold ID...", Short: "Keep jobs that have not begun from being placed",
		Long: `Keep jobs from being placed until submit release lets them go on. A job that has
begun at a site is not held; jobs that are to run after a held one wait with it.
hold: true in a job file submits a job that is held.`,
		Args: atLeastOne("at least one job"), ValidArgsFunction: a.completeOpenJobs(),
		Example: "  submit hold mfrg\n  submit release mfrg",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, text := range args {
				id, err := a.findJob(cmd.Context(), text)
				if err != nil {
					return err
				}
				if err := a.client.Hold(cmd.Context(), id); err != nil {
					return err
				}
				a.say("job %s held; `submit release %s` lets it go on", id, id)
			}
			return nil
		},
	}
}
