package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

func stopCommand(o *options) *cobra.Command {
	now := false
	cmd := order(o, "stop", "End the agent when its jobs have ended",
		`End the agent: it takes no new work and ends when running jobs have ended.
With --now running jobs are stopped and continue on other sites.`,
		func(ctx context.Context, c *client.Client, _ []string) (string, view.AgentStatus, error) {
			status, err := c.Status(ctx) // before, as it may be gone afterwards
			if err != nil {
				return "", status, err
			}
			status.Stopping = true
			return stoppingText(len(status.Running), now), status, c.Stop(ctx, now)
		})
	cmd.Flags().BoolVar(&now, "now", false, "stop running jobs; their submitters move them")
	return cmd
}

// stoppingText says when the agent will have ended.
func stoppingText(jobs int, now bool) string {
	switch {
	case now || jobs == 0:
		return "stopping"
	case jobs == 1:
		return "stopping when 1 job has ended; siteagent stop --now moves it"
	default:
		return fmt.Sprintf("stopping when %d jobs have ended; siteagent stop --now moves them", jobs)
	}
}
