package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func inviteCommand(o *options) *cobra.Command {
	span, uses, listen := "24h", 1, ""
	cmd := &cobra.Command{
		Use: "invite", Short: "Print a token with which another site joins", Args: noArgs,
		Long: `Print a token, one line, with which another site joins this domain:
siteagent join TOKEN. Anyone who has the token can use it, so send it as you would a
password. The first invitation makes the domain's key; keep a copy of domain.key,
which is in the state directory: who holds it says who is a member.

A new site listens on this machine alone. --listen lan lets sites of the local network
reach it, from now on: it changes listen in the configuration and tells the agent.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			valid, err := grid.ParseSpan(span)
			switch {
			case err != nil:
				return usageError{fmt.Errorf("--for: %w", err)}
			case valid < time.Second || valid > member.MaxInvite:
				return usageError{
					fmt.Errorf("--for must be 1s to %dd, not %s", member.MaxInvite/(24*time.Hour), span),
				}
			case uses < 1 || uses > member.MaxUses:
				return usageError{fmt.Errorf("--uses must be 1 to %d, not %d", member.MaxUses, uses)}
			case listen != "" && listen != "lan":
				return usageError{
					fmt.Errorf(
						"--listen: want lan, have %q; other addresses go under listen in the configuration", listen,
					),
				}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			if listen != "" {
				if err = o.openToNetwork(cmd.Context(), c, cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			invitation, err := c.Invite(cmd.Context(), valid, uses)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), invitation.Token)
			explainInvitation(cmd.ErrOrStderr(), invitation, time.Now())
			return nil
		},
	}
	cmd.Flags().StringVar(&span, "for", span, "how long the token is good")
	cmd.Flags().IntVar(&uses, "uses", uses, "how many sites may use it")
	cmd.Flags().StringVar(
		&listen, "listen", "", "lan: be reachable from the local network, from now on",
	)
	return cmd
}

// explainInvitation says what to do with the token, which stands in the line above.
func explainInvitation(notes io.Writer, i view.Invitation, now time.Time) {
	if i.Open {
		fmt.Fprintf(notes, "Domain %s takes anyone; the token only says where it is. "+
			"On the other machine: siteagent join <the line above>\n", i.Domain)
	} else {
		fmt.Fprintf(notes, "Good for %s until %s. On the other machine: siteagent join <the line "+
			"above>\n",
			plural(i.Uses, "site", "sites"), dayText(i.Expires.Time, now))
	}
	for _, n := range i.Notices {
		fmt.Fprintf(notes, "note: %s\n", noticeText(n))
	}
}

// openToNetwork lets sites of the local network reach this one: the running agent
// listens right away, and the configuration keeps it for the next start.
func (o *options) openToNetwork(ctx context.Context, c *client.Client, notes io.Writer) error {
	settings, err := o.load()
	if err != nil {
		return err
	}
	listen, changed := networkListen(settings.Listen)
	if !changed {
		fmt.Fprintln(
			notes, "note: this site does not listen on loopback addresses alone; listen is as it was",
		)
		return nil
	}
	if err = c.Listen(ctx, listen); err != nil {
		return err
	}
	file := o.path()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = config.NewFile(nil), nil
	}
	if err == nil {
		text, err = config.Edit(text, []config.Value{{Name: "listen", Text: strings.Join(listen, ",")}})
	}
	if err == nil {
		err = config.WriteFile(file, text)
	}
	if err != nil {
		return fmt.Errorf("it listens now, but not after a restart: set listen in %s: %w", file, err)
	}
	fmt.Fprintf(notes, "listening on the local network from now on (listen in %s)\n", file)
	return nil
}

// networkListen is the list with every interface in place of the loopback one, and
// whether that is another list.
func networkListen(listen []string) (all []string, changed bool) {
	for _, addr := range listen {
		wide := addr
		if rest, loopback := strings.CutPrefix(addr, "/ip4/127.0.0.1/"); loopback {
			wide = "/ip4/0.0.0.0/" + rest
		} else if rest, loopback = strings.CutPrefix(addr, "/ip6/::1/"); loopback {
			wide = "/ip6/::/" + rest
		}
		changed = changed || wide != addr
		all = append(all, wide)
	}
	return all, changed
}
