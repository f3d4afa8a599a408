package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// listInvites shows the invitations that were made.
func listInvites(cmd *cobra.Command, c *client.Client, f *form) error {
	rows, err := c.Invites(cmd.Context())
	if err != nil {
		return err
	}
	return f.print(cmd.OutOrStdout(), rows, func() error {
		return printInvites(cmd.OutOrStdout(), rows)
	})
}

func printInvites(out io.Writer, rows []view.InviteRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, "No invitation was made here. To make one: siteagent invite")
		return err
	}
	const minute = "2006-01-02 15:04"
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tSTATE\tMADE\tGOOD UNTIL\tLEFT\tUSED BY")
	for _, i := range rows {
		made, until := i.Created.Local().Format(minute), i.Expires.Local().Format(minute)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", i.ID, orDash(i.Name),
			inviteText(i), made, until, i.Left, i.Uses, orDash(invitedText(i.By)))
	}
	return w.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// inviteText says in words how an invitation stands.
func inviteText(i view.InviteRow) string {
	switch {
	case i.State == "used":
		return "used up"
	case i.State == "open" && i.Ask:
		return "open, asks"
	default:
		return i.State
	}
}

// maxInvited are the sites that a line names.
const maxInvited = 8

// invitedText names the sites that used an invitation.
func invitedText(sites []view.InvitedSite) string {
	var names []string
	for _, s := range sites[:min(len(sites), maxInvited)] {
		name := grid.Plain(s.Name)
		if strings.Trim(name, " ?") == "" {
			name = string(s.Site)
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if more := len(sites) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// revokeInvites makes one invitation useless, or all where none is named.
func revokeInvites(cmd *cobra.Command, c *client.Client, f *form, which []string) error {
	rows := make([]view.InviteRow, 1)
	var err error
	if len(which) > 0 {
		rows[0], err = c.Revoke(cmd.Context(), which[0])
	} else {
		rows, err = c.RevokeAll(cmd.Context())
	}
	if err != nil {
		return err
	}
	notes := cmd.ErrOrStderr()
	if len(rows) == 0 {
		fmt.Fprintln(notes, "no invitation is open")
	}
	for _, row := range rows {
		fmt.Fprintln(notes, revokedText(row))
	}
	return f.print(cmd.OutOrStdout(), rows, nil)
}

// calledText is an invitation as people know it.
func calledText(i view.InviteRow) string {
	if i.Name == "" {
		return "invitation " + i.ID
	}
	return fmt.Sprintf("invitation %s (%s)", i.ID, i.Name)
}

// revokedText says that an invitation is revoked, and who is in all the same.
func revokedText(i view.InviteRow) string {
	text := calledText(i) + " is revoked"
	if len(i.By) > 0 {
		text += "; members by it until they are banned: " + invitedText(i.By)
	}
	return text
}
