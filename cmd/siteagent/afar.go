package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// atFlag is for the commands that another site may be asked for, too.
func atFlag(o *options, cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "",
		"another site, by its name or ID, whose owner has put this one's under owner.remote")
	// It fails only for a flag that there is not.
	_ = cmd.RegisterFlagCompletionFunc("at", completion(o, peersToComplete(false)))
}

// statusOf is the state of this site, or of the one at which it is asked for.
func statusOf(ctx context.Context, c *client.Client, at string) (view.AgentStatus, error) {
	if at == "" {
		return c.Status(ctx)
	}
	return c.StatusAt(ctx, at)
}

// printAfar prints what an administrator wants to know of another site at a glance.
func printAfar(out io.Writer, s view.AgentStatus, now time.Time) error {
	g := givenOf(s)
	return printLines(out, append([]line{
		{"sharing", sharingAfar(s, now)},
		{"for", usersOf(s.Running)},
		{"cores", g.cores},
		{"memory", g.memory},
		{"site", siteText(s)},
		{"version", s.Version},
	}, problemLines(s.Notices)...))
}

// sharingAfar says whether another site takes jobs now and, if not, why.
func sharingAfar(s view.AgentStatus, now time.Time) string {
	switch {
	case s.Paused && !s.Stopping:
		return "no: " + pausedUntil(s, now)
	case s.Owner != nil && s.Owner.Busy && !s.Stopping:
		return "no: its owner has the machine: " + s.Owner.Why
	case s.Ceilings.MilliCPUs > 0 && s.InUse.MilliCPUs >= s.Ceilings.MilliCPUs:
		return "yes, all its cores are in use"
	default:
		return sharing(s, now)
	}
}
