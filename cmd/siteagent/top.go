package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/tui"
)

func topCommand(o *options) *cobra.Command {
	once, domain, f := false, false, (*form)(nil)
	cmd := &cobra.Command{
		Use: "top", Short: "Watch this site and steer it, on a full screen", Args: noArgs,
		Long: `Show on a full screen, once a second: whether this site shares its machine and if
not, why; how much of what you give is in use; the jobs that are here, for whom, and
what they wait for; the sites that are known; and what is wrong, with what to do.

Keys: p pauses and resumes, s pauses for a time, l lets jobs leave when their state is
saved, enter shows all about a row, ? explains the keys, q quits.

With --domain it shows the members of the domain instead: which of them share, what is
in use there, and what is wrong. It knows the state of those whose owners have put this
site's ID under owner.remote, and the keys p, s and l steer the one under the cursor.

Without a terminal, with TERM=dumb, and with --once it prints the same once, as plain
lines, and ends.`,
		Example: "  siteagent top\n  siteagent top --domain\n  siteagent top --once\n" +
			"  siteagent top -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			if domain {
				return watch(cmd, o, tui.FleetTop{Agent: c, Sharing: sharingAfar}, f, once)
			}
			return watch(cmd, o, tui.SiteTop{Agent: c, Sharing: sharing}, f, once)
		},
	}
	cmd.Flags().BoolVar(&domain, "domain", false, "the members of the domain, not this site alone")
	cmd.Flags().BoolVar(&once, "once", false, "print plain lines once, on a terminal, too")
	f = formFlag(cmd)
	return cmd
}

// watched is a screen with its first facts.
type watched[F any] interface {
	Facts(ctx context.Context) (F, error)
	Print(out io.Writer, facts F, now time.Time) error
	Run(ctx context.Context, on tui.Terminal, facts F) error
}

// watch shows a screen, or once what is on it.
func watch[F any](cmd *cobra.Command, o *options, top watched[F], f *form, once bool) error {
	facts, err := top.Facts(cmd.Context())
	if err != nil {
		return o.whyDown(err)
	}
	on := tui.Terminal{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Now: time.Now}
	return f.print(cmd.OutOrStdout(), facts, func() error {
		if once || !on.Drawable() {
			return top.Print(cmd.OutOrStdout(), facts, time.Now())
		}
		return top.Run(cmd.Context(), on, facts)
	})
}
