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
	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const inviteHelp = `Print a token, one line, with which another site joins this domain:
siteagent join TOKEN. Anyone who has the token can use it, so send it as you would a
password. The first invitation makes the domain's key; keep a copy of domain.key,
which is in the state directory: who holds it says who is a member.

  siteagent invite --name "lab 3" --uses 5 --for 7d
  siteagent invite --out token.txt       the token in a file that nobody else can read
  siteagent invite --ask --uses 20       a token to be posted: you admit each site that comes
  siteagent invite --list                what was made, what is left, and who came by it
  siteagent invite --revoke 3f9c01ab     makes one useless immediately
  siteagent invite --revoke --all        makes all of them useless

Who comes with a token of --ask waits: siteagent members shows it, siteagent admit lets it in,
siteagent ban keeps it out.

An invitation is named by its ID, which --list shows, by the beginning of that, or by its
name. Who has joined with one stays a member when it is revoked; siteagent ban keeps a site
out, and revokes the invitation by which it came.

A new site listens on this machine alone. --listen lan lets sites of the local network
reach it, from now on: it changes listen in the configuration and tells the agent.`

// inviteFlags are what invite was asked for.
type inviteFlags struct {
	name, span, listen, out string
	uses                    int
	ask                     bool

	list, revoke, all bool
	form              *form
}

func inviteCommand(o *options) *cobra.Command {
	f := inviteFlags{span: "24h", uses: 1}
	cmd := &cobra.Command{
		Use: "invite", Short: "Print a token with which another site joins; list and revoke tokens",
		Long: inviteHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			valid, err := f.check(cmd, args)
			if err != nil {
				return usageError{err}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			switch {
			case f.list:
				return listInvites(cmd, c, f.form)
			case f.revoke:
				return revokeInvites(cmd, c, f.form, args)
			default:
				return f.invite(cmd, o, c, valid)
			}
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "what it is for, to know it by")
	flags.StringVar(&f.span, "for", f.span, "how long the token is good")
	flags.IntVar(&f.uses, "uses", f.uses, "how many sites may use it")
	flags.BoolVar(&f.ask, "ask", false, "each site that comes with it waits until you admit it")
	flags.StringVar(
		&f.listen, "listen", "", "lan: be reachable from the local network, from now on",
	)
	flags.StringVar(&f.out, "out", "", "write the token to this new file, which only you can read")
	flags.BoolVar(&f.list, "list", false, "show the invitations that were made")
	flags.BoolVar(&f.revoke, "revoke", false, "make an invitation useless: --revoke ID, or --all")
	flags.BoolVar(&f.all, "all", false, "with --revoke: all that are open")
	f.form = formFlag(cmd)
	return cmd
}

// check finds what does not fit together or cannot be, and how long the token is to be good.
func (f inviteFlags) check(cmd *cobra.Command, args []string) (time.Duration, error) {
	if !f.list && !f.revoke {
		return f.checkMade(cmd, args)
	}
	if f.list && f.revoke {
		return 0, errors.New("--list and --revoke: want one of the two")
	}
	for _, name := range []string{"name", "for", "uses", "ask", "listen", "out"} {
		if cmd.Flags().Changed(name) {
			return 0, fmt.Errorf("--%s is for new invitations, not for --list or --revoke", name)
		}
	}
	if f.list {
		return 0, f.checkListed(args)
	}
	which := strings.TrimSpace(strings.Join(args, ""))
	switch {
	case f.all && len(args) > 0, !f.all && which == "", len(args) > 1:
		return 0, errors.New("--revoke: want the ID or the name of one invitation, as " +
			"siteagent invite --list shows it, or --all")
	}
	return 0, nil
}

// checkListed is check for the list.
func (f inviteFlags) checkListed(args []string) error {
	if f.all || len(args) > 0 {
		return errors.New("--list shows all invitations; it takes no argument and no --all")
	}
	return nil
}

// checkMade is check for a new invitation.
func (f inviteFlags) checkMade(cmd *cobra.Command, args []string) (time.Duration, error) {
	if len(args) > 0 {
		return 0, noArgs(cmd, args)
	}
	valid, err := grid.ParseSpan(f.span)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--for: %w", err)
	case valid < time.Second || valid > member.MaxInvite:
		return 0, fmt.Errorf("--for must be 1s to %dd, not %s",
			member.MaxInvite/(24*time.Hour), f.span)
	case f.uses < 1 || f.uses > member.MaxUses:
		return 0, fmt.Errorf("--uses must be 1 to %d, not %d", member.MaxUses, f.uses)
	case f.listen != "" && f.listen != "lan":
		return 0, fmt.Errorf("--listen: want lan, have %q; other addresses go under listen in the "+
			"configuration", f.listen)
	case f.all:
		return 0, errors.New("--all is for --revoke")
	case cmd.Flags().Changed("out"):
		return valid, isNew(f.out)
	}
	return valid, nil
}

// isNew refuses a file that is there: it would be replaced, or others might read it.
func isNew(file string) error {
	if file == "" {
		return errors.New("--out: want the name of a file")
	}
	_, err := os.Lstat(file)
	switch {
	case err == nil:
		return fmt.Errorf("--out: %s is there already; remove it, or name another file", file)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("--out: %w", err)
	}
}

// invite makes an invitation and gives its token out.
func (f inviteFlags) invite(
	cmd *cobra.Command, o *options, c *client.Client, valid time.Duration,
) error {
	notes := cmd.ErrOrStderr()
	if f.listen != "" {
		if err := o.openToNetwork(cmd.Context(), c, notes); err != nil {
			return err
		}
	}
	i, err := c.Invite(cmd.Context(), view.InviteTerms{
		Name: f.name, Span: valid, Uses: f.uses, Ask: f.ask,
	})
	if err != nil {
		return err
	}
	use := f.form.line()
	if f.out != "" {
		if err = durable.Create(f.out, []byte(i.Token+"\n")); err != nil {
			return errors.Join(fmt.Errorf("--out: %w", err), takeBack(cmd.Context(), c, i))
		}
		use = "--token-file FILE"
		fmt.Fprintf(notes, "wrote the token to %s\n", f.out)
		i.Token = "" // nobody else is to read it
	}
	err = f.form.print(cmd.OutOrStdout(), i, func() error {
		if i.Token == "" {
			return nil
		}
		_, failed := fmt.Fprintln(cmd.OutOrStdout(), i.Token)
		return failed
	})
	if err != nil {
		return err
	}
	explainInvitation(notes, i, use, time.Now())
	if f.ask {
		fmt.Fprintln(notes, "Who comes waits for you: siteagent members shows them, "+
			"siteagent admit lets one in")
	}
	return nil
}

// takeBack revokes an invitation whose token nobody has got.
func takeBack(ctx context.Context, c *client.Client, i view.Invitation) error {
	if i.ID == "" { // it lets nobody in
		return nil
	}
	_, err := c.Revoke(ctx, i.ID)
	return err
}

// explainInvitation says what to do with the token.
func explainInvitation(notes io.Writer, i view.Invitation, use string, now time.Time) {
	if i.Open {
		fmt.Fprintf(notes, "Domain %s takes anyone; the token only says where it is. "+
			"On the other machine: siteagent join %s\n", i.Domain, use)
	} else {
		fmt.Fprintf(notes, "Good for %s until %s. On the other machine: siteagent join %s\n",
			plural(i.Uses, "site", "sites"), dayText(i.Expires.Time, now), use)
		fmt.Fprintf(notes, "To take it back: siteagent invite --revoke %s\n", i.ID)
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
