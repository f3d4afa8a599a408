package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func inviteCommand(o *options) *cobra.Command {
	span, uses := "24h", 1
	cmd := &cobra.Command{
		Use: "invite", Short: "Print a token with which another site joins", Args: noArgs,
		Long: `Print a token, one line, with which another site joins this domain:
siteagent join TOKEN. Whoever has the token can use it, so send it as you would a
password. The first invitation makes the domain's key; keep a copy of domain.key,
which is in the state directory: who holds it says who is a member.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			valid, err := grid.ParseSpan(span)
			if err != nil {
				return usageError{fmt.Errorf("--for: %w", err)}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			invitation, err := c.Invite(cmd.Context(), valid, uses)
			if err != nil {
				return err
			}
			explainInvitation(cmd.ErrOrStderr(), invitation)
			fmt.Fprintln(cmd.OutOrStdout(), invitation.Token)
			return nil
		},
	}
	cmd.Flags().StringVar(&span, "for", span, "how long the token is good")
	cmd.Flags().IntVar(&uses, "uses", uses, "how many sites may use it")
	return cmd
}

func explainInvitation(notes io.Writer, i view.Invitation) {
	for _, n := range i.Notices {
		fmt.Fprintf(notes, "note: %s\n", noticeText(n))
	}
	if i.Open {
		fmt.Fprintf(notes, "domain %s takes anyone; this token only says where it is\n", i.Domain)
		return
	}
	fmt.Fprintf(notes, "an invitation to domain %s, for %d sites, until %s; on each: siteagent join TOKEN\n",
		i.Domain, i.Uses, i.Expires.Local().Format(time.DateTime))
}

func admitCommand(o *options) *cobra.Command {
	return decideCommand(o, "admit PEER", "Make a site a member, or take back a ban", `Make a site a member, or take back a ban. PEER is a site's ID, or the name of one
that siteagent members lists. Where this site holds the domain's key it is so in
the whole domain, else here alone.`, false)
}

func banCommand(o *options) *cobra.Command {
	return decideCommand(o, "ban PEER", "Keep a site out", `Keep a site out: it is disconnected at once, its jobs here are stopped, and own
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
	case "banned":
		return "banned, by the domain's key"
	case "banned-here":
		return "banned, by the owner of this site"
	default:
		return "member, as anyone"
	}
}

func membersCommand(o *options) *cobra.Command {
	format := "table"
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
			switch format {
			case "json":
				return json.NewEncoder(cmd.OutOrStdout()).Encode(members)
			case "table":
				return printMembers(cmd.OutOrStdout(), members)
			default:
				return usageError{fmt.Errorf("-o: want table or json, have %q", format)}
			}
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", format, "table or json")
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", row.Name, row.Site, standingText(row), connected, since, row.Note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, i := range m.Invites {
		fmt.Fprintf(out, "invitation %s: %d uses left, until %s\n", i.ID, i.Left, i.Expires.Local().Format(time.DateTime))
	}
	if m.DomainKey != "" {
		fmt.Fprintf(out, "domain-key: %s\n", m.DomainKey)
	}
	return nil
}

func checkCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Ask another site whether this one's offers arrive", Args: noArgs,
		Long: `Let another site announce a probe, which nobody runs, and say whether this site's
offer arrives there.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			result, err := c.Check(cmd.Context())
			if err != nil {
				return err
			}
			return printCheck(cmd.OutOrStdout(), result)
		},
	}
}

// printCheck prints the answer; one that is no is an error, too.
func printCheck(out io.Writer, r view.CheckResult) error {
	if r.Arrive {
		fmt.Fprintf(out, "my offers arrive: yes (distance %.3f, in %.0f ms, seen by %s)\n", r.Distance, r.Seconds*1000, r.Name)
		return nil
	}
	reason := r.Reason
	if r.Name != "" {
		reason += ", as " + r.Name + " says"
	}
	fmt.Fprintf(out, "my offers arrive: no: %s; %s\n", reason, r.Remedy)
	return errDiffers
}
