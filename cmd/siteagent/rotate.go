package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const rotateHelp = `Give this domain a new key, at the site that holds domain.key. Do it when
a copy of the key was stolen, or when somebody who had one leaves. Nobody has to join again: the
members follow, those that are away as soon as they meet any other member. Jobs go on.

  - From now on the new key alone admits and bans. Who has the old one can do neither.
  - All open invitations are revoked; make new ones with siteagent invite.
  - Members that a thief of the old key has admitted before stay members: look through
    siteagent members first, and ban them.
  - Links with other domains are by the key: end them first (siteagent domain unlink) and link
    anew afterwards.
  - Members of a version that knows no rotation stay with the old key. Upgrade them first.

A backup of the old domain.key is of no use any more: copy the new one. A rotation that was
interrupted is finished by the next start or the same command; --from makes sure that a repeated
command does not rotate twice.

Examples:
  siteagent domain rotate
  siteagent domain rotate --from ed25519:oYOUeBrY1k11wgHuu48bmEjILF4iw_iPCIrPBcbk9JQ`

func domainRotateCommand(o *options) *cobra.Command {
	from, f := "", (*form)(nil)
	cmd := &cobra.Command{
		Use: "rotate", Short: "Give this domain a new key, which all members follow",
		Args: noArgs, Long: rotateHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from != "" {
				if err := grid.DomainKey(from).Validate(); err != nil {
					return usageError{fmt.Errorf("--from: %w", err)}
				}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			done, err := c.RotateKey(cmd.Context(), grid.DomainKey(from))
			if err != nil {
				return err
			}
			explainRotation(cmd.ErrOrStderr(), done)
			return f.print(cmd.OutOrStdout(), done, func() error {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "domain-key: %s\n", done.Key)
				return err
			})
		},
	}
	f = formFlag(cmd)
	cmd.Flags().StringVar(&from, "from", from,
		"the key to replace; where it was replaced last, nothing more is done")
	return cmd
}

// explainRotation says what has changed and what is to be done.
func explainRotation(notes io.Writer, done view.Rotation) {
	fmt.Fprintf(notes, "domain %s has another key, its %s rotation: %s admits and bans nobody any "+
		"more\n", done.Domain, ordinal(done.Number), done.Former)
	fmt.Fprintf(notes, "%s signed again; members that are away follow when they meet another one\n",
		plural(done.Sites, "record is", "records are"))
	for _, i := range done.Revoked {
		fmt.Fprintf(notes, "%s is revoked; for a new one: siteagent invite\n", calledText(i))
	}
	for _, i := range done.Withdrawn {
		fmt.Fprintf(notes, "invitation %s to a link is withdrawn; for a new one: siteagent domain "+
			"invite\n", i.ID)
	}
	fmt.Fprintln(notes, "keep a copy of the new domain.key: copies of the old one are of no use")
}

// ordinal is a number as one counts: 1st, 2nd.
func ordinal(n int) string {
	const ten, hundred = 10, 100
	last := n % ten
	if teen := n%hundred/ten == 1; teen || last > 3 || last == 0 {
		return fmt.Sprintf("%dth", n)
	}
	return fmt.Sprintf("%d%s", n, [...]string{"", "st", "nd", "rd"}[last])
}
