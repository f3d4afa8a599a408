package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

func membersCommand(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: "members", Short: "Show who takes part, who is banned, and open invitations", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			members, err := c.Members(cmd.Context())
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), members, func() error {
				return printMembers(cmd.OutOrStdout(), members)
			})
		},
	}
	f = formFlag(cmd)
	return cmd
}

func printMembers(out io.Writer, m view.Members) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSITE\tSTANDING\tCONNECTED\tSINCE\tNOTE")
	for _, row := range m.Sites {
		since := "-"
		if !row.Since.IsZero() {
			since = row.Since.Local().Format(time.DateTime)
		}
		connected := "no"
		if row.Connected {
			connected = "yes"
		}
		fmt.Fprintf(
			w, "%s\t%s\t%s\t%s\t%s\t%s\n", row.Name, row.Site, standingText(row), connected, since, row.Note,
		)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, i := range m.Invites {
		fmt.Fprintf(
			out, "%s: good for %s until %s\n",
			calledText(view.InviteRow{ID: i.ID, Name: i.Name}),
			plural(i.Left, "more site", "more sites"),
			dayText(i.Expires.Time, time.Now()),
		)
	}
	if m.DomainKey != "" {
		fmt.Fprintf(out, "domain-key: %s\n", m.DomainKey)
	}
	if m.Rotations > 0 {
		fmt.Fprintf(out, "rotated %s, the last time %s\n", plural(m.Rotations, "time", "times"),
			dayText(m.Rotated.Time, time.Now()))
	}
	return nil
}

// standingText says in words how a site stands.
func standingText(row view.MemberRow) string {
	switch row.Standing {
	case "self":
		return "this site"
	case "listed":
		return "member, by the list of this site"
	case "roster":
		return "member, by the domain's key"
	case "admitted":
		return "member, by the owner of this site"
	case "pending":
		return "waits: siteagent admit lets it in"
	case "banned":
		return "banned, by the domain's key"
	case "banned-here":
		return "banned, by the owner of this site"
	default:
		return "member, as anyone"
	}
}
