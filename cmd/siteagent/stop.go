package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
)

func stopCommand(o *options) *cobra.Command {
	now := false
	cmd := order(o, "stop", "End the agent when its jobs have ended", `End the agent: it takes no new work and ends when what runs has ended. With
--now what runs is stopped and continues on other sites.`,
		func(ctx context.Context, c *client.Client, _ []string) (string, error) {
			return "stopping", c.Stop(ctx, now)
		})
	cmd.Flags().BoolVar(&now, "now", false, "stop what runs; its submitters move it")
	return cmd
}
