package main

import "github.com/spf13/cobra"

func (a *app) whyCommand() *cobra.Command {
	svg := ""
	cmd := &cobra.Command{
		Use: "why ID", Short: "Show why a job is where it is: each site's answer and distance",
		Example: "  submit why mfrg\n  submit why mfrg -o wide", Args: exactly(1, "one job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := a.findJob(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			offers, err := a.client.Offers(cmd.Context(), id)
			if err != nil {
				return err
			}
			if err := a.showOffers(offers); err != nil {
				return err
			}
			return writeMap(svg, offers)
		},
	}
	cmd.Flags().StringVar(&svg, "svg", "", "draw the virtual map into this file")
	return cmd
}
