package main

import (
	"fmt"

	"github.com/spf13/cobra"
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
in the whole domain, else here alone.`, true)
}

func decideCommand(o *options, use, short, long string, ban bool) *cobra.Command {
	note := ""
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s: want one site's ID or name", cmd.Name())}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			do := c.Admit
			if ban {
				do = c.Ban
			}
			row, err := do(cmd.Context(), args[0], note)
			if err == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s (%s): %s\n", row.Site, row.Name, standingText(row))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why, for people")
	return cmd
}
