package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
)

func pauseCommand(o *options) *cobra.Command {
	return order(o, "pause [1h]", "Take no new work", `Take no new work, for a while or until siteagent resume. What runs goes on;
siteagent stop --now moves it.`,
		func(ctx context.Context, c *client.Client, args []string) (string, error) {
			if len(args) == 0 {
				return "paused until: siteagent resume", c.Pause(ctx, 0)
			}
			span, err := time.ParseDuration(args[0])
			if err != nil || span <= 0 {
				return "", usageError{fmt.Errorf("pause: want a time such as 30m or 1h, have %q", args[0])}
			}
			return "paused for " + span.String(), c.Pause(ctx, span)
		})
}

func resumeCommand(o *options) *cobra.Command {
	return order(o, "resume", "Take work again", "Take work again after siteagent pause.",
		func(ctx context.Context, c *client.Client, _ []string) (string, error) {
			return "resumed", c.Resume(ctx)
		})
}
