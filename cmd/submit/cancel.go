package main

import "github.com/spf13/cobra"

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID...", Short: "Withdraw jobs; running tasks are stopped",
		Args: atLeastOne("at least one job"), ValidArgsFunction: a.completeOpenJobs(),
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
