package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

func admitCommand(o *options) *cobra.Command {
	return decideCommand(o, "admit PEER", "Make a site a member, or take back a ban",
		`Make a site a member, or take back a ban. PEER is a site's ID, or the name of one
that siteagent members lists. Where this site holds the domain's key it is so in
the whole domain, else here alone.`, false)
}

func banCommand(o *options) *cobra.Command {
	return decideCommand(o, "ban PEER", "Keep a site out",
		`Keep a site out: it is disconnected immediately, its jobs here are stopped, and own
jobs at it move when their leases have ended. PEER is a site's ID, or the name of
one that siteagent members lists. Where this site holds the domain's key it is so
in the whole domain, else here alone. The invitation by which it came is revoked if it has
uses left: the site could come back with it under another name.

Examples:
  siteagent ban --note "filled the disk" attic
  siteagent ban --keep-invitation attic   others may still join with the same token`, true)
}

func decideCommand(o *options, use, short, long string, ban bool) *cobra.Command {
	note, keep, f := "", false, (*form)(nil)
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		ValidArgsFunction: completion(o, peersToComplete(!ban)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s: want one site's ID or name", cmd.Name())}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			var row view.MemberRow
			if ban {
				row, err = c.Ban(cmd.Context(), args[0], note, keep)
			} else {
				row, err = c.Admit(cmd.Context(), args[0], note)
			}
			if err != nil {
				return err
			}
			notes := cmd.ErrOrStderr()
			fmt.Fprintf(notes, "%s (%s): %s\n", row.Site, row.Name, standingText(row))
			for _, i := range row.Revoked {
				fmt.Fprintf(notes, "%s, by which it came, is revoked; "+
					"--keep-invitation leaves it open\n", calledText(i))
			}
			return f.print(cmd.OutOrStdout(), row, nil)
		},
	}
	f = formFlag(cmd)
	cmd.Flags().StringVar(&note, "note", "", "why, for people")
	if ban {
		cmd.Flags().BoolVar(
			&keep, "keep-invitation", false, "do not revoke the invitation by which it came",
		)
	}
	return cmd
}
