package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func pauseCommand(o *options) *cobra.Command {
	return order(o, "pause [1h]", "Take no new work",
		`Take no new work, for a while or until siteagent resume. Running jobs go on;
siteagent stop --now moves them.`,
		func(ctx context.Context, c *client.Client, args []string) (string, error) {
			span := time.Duration(0)
			if len(args) > 0 {
				var err error
				if span, err = grid.ParseSpan(args[0]); err != nil || span <= 0 {
					return "", usageError{fmt.Errorf("pause: want a time such as 30m or 1h, have %q", args[0])}
				}
			}
			if err := c.Pause(ctx, span); err != nil {
				return "", err
			}
			status, err := c.Status(ctx)
			return pausedText(status, time.Now()), err
		})
}

// pausedText says until when the site is paused, and what becomes of its jobs.
func pausedText(s view.AgentStatus, now time.Time) string {
	text := "paused"
	if !s.PausedUntil.IsZero() {
		text += " until " + dayText(s.PausedUntil.Time, now)
	}
	text += "; siteagent resume ends that"
	if n := len(s.Running); n > 0 {
		text += "; " + plural(n, "job goes on", "jobs go on")
	}
	return text
}

func resumeCommand(o *options) *cobra.Command {
	return order(o, "resume", "Take work again", "Take work again after siteagent pause.",
		func(ctx context.Context, c *client.Client, _ []string) (string, error) {
			return "resumed", c.Resume(ctx)
		})
}
