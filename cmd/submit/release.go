package main

import "github.com/spf13/cobra"

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "release ID...", Short: "Give reservations back; jobs running in them are stopped",
		Args:    atLeast(1, "at least one reservation"),
		Example: "  submit release mfrg",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, text := range args {
				id, err := a.findReservation(cmd.Context(), text)
				if err != nil {
					return err
				}
				if err := a.client.Cancel(cmd.Context(), id); err != nil {
					return err
				}
				a.say("reservation %s released", id)
			}
			return nil
		},
	}
}
