package main

import (
	"fmt"
	"io"
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
