package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const domainHelp = `Link this domain with another one, so that each can use some of the sites of the
other. All of this is done at the sites that hold the domains' keys (domain.key); these
two sites are the gateways, and one of them must be able to dial the other.

  lab$    siteagent domain invite --name campus     prints a token
  campus$ siteagent domain join TOKEN               links campus with lab
  lab$    siteagent domain policy campus --give 30% --kinds wasm
  lab$    siteagent domains                         shows who is linked, and on which terms
  lab$    siteagent domain unlink campus            ends it, at both

Members of the other domain do not become members of this one: they see only its gateway.

siteagent domain rotate gives the domain a new key.`

func domainCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "domain", Short: "Link this domain with others, on terms, or change its key",
		Long: domainHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError{fmt.Errorf("domain %s: want invite, withdraw, join, policy, "+
				"unlink or rotate; siteagent domain --help has an example", args[0])}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		domainInviteCommand(o), domainWithdrawCommand(o), domainJoinCommand(o),
		domainPolicyCommand(o), domainUnlinkCommand(o), domainRotateCommand(o),
	)
	return cmd
}

func domainInviteCommand(o *options) *cobra.Command {
	name, expires, f := "", "24h", (*form)(nil)
	cmd := &cobra.Command{
		Use: "invite", Short: "Print a token with which another domain links itself with this one",
		Args: noArgs,
		Long: `Print a token, one line, with which another domain links itself with this one:
siteagent domain join TOKEN, at the site that holds its key. The token is good once; send it
as you would a password. The first invitation makes this domain's key, if it has none.

Example: siteagent domain invite --name campus --expires 2h`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			span, err := grid.ParseSpan(expires)
			switch {
			case err != nil:
				return usageError{fmt.Errorf("--expires: %w", err)}
			case span < time.Second || span > member.MaxInvite:
				return usageError{fmt.Errorf("--expires must be 1s to %dd, not %s",
					member.MaxInvite/(24*time.Hour), expires)}
			case name != "":
				if err = grid.DomainID(name).Validate(); err != nil {
					return usageError{fmt.Errorf("--name: %w", err)}
				}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			i, err := c.InviteDomain(cmd.Context(), grid.DomainID(name), span)
			if err != nil {
				return err
			}
			err = f.print(cmd.OutOrStdout(), i, func() error {
				_, failed := fmt.Fprintln(cmd.OutOrStdout(), i.Token)
				return failed
			})
			if err == nil {
				explainLinkInvitation(cmd.ErrOrStderr(), i, f.line(), time.Now())
			}
			return err
		},
	}
	f = formFlag(cmd)
	cmd.Flags().StringVar(&name, "name", name, "only a domain of this name may use it")
	cmd.Flags().StringVar(&expires, "expires", expires, "how long the token is good")
	return cmd
}

// explainLinkInvitation says what to do with the token.
func explainLinkInvitation(
	notes io.Writer, i view.LinkInvitation, token string, now time.Time,
) {
	whom := "one domain"
	if i.Name != "" {
		whom = "domain " + string(i.Name)
	}
	fmt.Fprintf(notes, "Good for %s until %s. There: siteagent domain join %s\n",
		whom, dayText(i.Expires.Time, now), token)
	fmt.Fprintf(notes, "To take it back: siteagent domain withdraw %s\n", i.ID)
	for _, n := range i.Notices {
		fmt.Fprintf(notes, "note: %s\n", noticeText(n))
	}
}

func domainWithdrawCommand(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: "withdraw INVITATION", Short: "Make a token of domain invite useless",
		Long: `Make a token of siteagent domain invite useless. INVITATION is its short name, which
invite printed and siteagent domains lists.

Example: siteagent domain withdraw 3f9c01ab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{
					errors.New("want the name of one invitation, as siteagent domains lists it"),
				}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			if err = c.WithdrawInvite(cmd.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "invitation %s is withdrawn\n", args[0])
			return f.print(cmd.OutOrStdout(), map[string]string{"withdrawn": args[0]}, nil)
		},
	}
	f = formFlag(cmd)
	return cmd
}

func domainJoinCommand(o *options) *cobra.Command {
	file := ""
	var f *form
	cmd := &cobra.Command{
		Use: "join TOKEN|-", Short: "Link this domain with the one that printed the token",
		Long: `Link this domain with the one whose siteagent domain invite printed the token. The
agent asks that domain's gateway; the keys of both domains sign the link, and both sides
keep it. Until a policy says otherwise this domain gives the other one a fifth of its
capacity, for WASM.

Examples:
  siteagent domain join mrslink1.AQNsYWIg...
  siteagent domain join - <token.txt            out of the list of processes
  siteagent domain join --token-file token.txt  the same, from a file of yours alone`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := tokenText(cmd, args, file)
			if err != nil {
				return err
			}
			token, err := member.ParseToken(text)
			switch {
			case err != nil:
				return usageError{errors.New("domain join: not a token that links domains: one begins " +
					`with "mrslink1."; copy the whole line that siteagent domain invite printed`)}
			case !token.Link:
				return usageError{errors.New("the token invites a site, not a domain: use it " +
					"with siteagent join; siteagent domain invite prints one for a domain")}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			row, err := c.JoinDomain(cmd.Context(), text)
			if err != nil {
				return err
			}
			notes := cmd.ErrOrStderr()
			fmt.Fprintf(notes, "linked with domain %s: %s\n", row.Name, policyText(row.Policy))
			fmt.Fprintf(notes, "other terms: siteagent domain policy %s --give 50%%\n", row.Name)
			return f.print(cmd.OutOrStdout(), row, nil)
		},
	}
	f = formFlag(cmd)
	tokenFrom(cmd, &file)
	return cmd
}

// errNoDomain asks for an argument.
var errNoDomain = errors.New("want the name of one domain, as siteagent domains lists it")

// percentFlag is a number of percent, with its sign or without.
type percentFlag struct{ value *int }

// String is the value as it is written.
func (p *percentFlag) String() string {
	if p.value == nil {
		return ""
	}
	return strconv.Itoa(*p.value) + "%"
}

// Set reads 20% or 20.
func (p *percentFlag) Set(text string) error {
	const whole = 100
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil || n < 0 || n > whole {
		return fmt.Errorf("want 0%% to 100%%, have %q", text)
	}
	p.value = &n
	return nil
}

// Type names it in help.
func (p *percentFlag) Type() string { return "percent" }

func domainPolicyCommand(o *options) *cobra.Command {
	var give, take percentFlag
	var kinds []string
	tasks, onward, closed, beside := 0, 0, false, false
	var f *form
	cmd := &cobra.Command{
		Use: "policy NAME", Short: "Show or change the terms on which a domain is linked",
		ValidArgsFunction: completion(o, domainsToComplete),
		Long: `Show the terms on which the domain NAME is linked, or change them. What is not named
stays as it is; changes act immediately. They are this domain's own: the other one has its own.

Examples:
  siteagent domain policy campus                      shows them
  siteagent domain policy campus --give 30% --tasks 8
  siteagent domain policy campus --closed             nothing new is given or taken
  siteagent domain policy campus --closed=false       as before
  siteagent domain policy campus --beside             ask it together with the members
  siteagent domain policy campus --onward 1           ... and those that it asks`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errNoDomain}
			}
			change := view.PolicyChange{Give: give.value, Take: take.value, Kinds: kinds}
			if cmd.Flags().Changed("tasks") {
				change.Tasks = &tasks
			}
			if cmd.Flags().Changed("closed") {
				change.Closed = &closed
			}
			if cmd.Flags().Changed("beside") {
				change.Beside = &beside
			}
			if cmd.Flags().Changed("onward") {
				change.Onward = &onward
			}
			wrong := member.PolicyChange{
				Give: change.Give, Take: change.Take, Kinds: kinds, Tasks: change.Tasks,
				Onward: change.Onward,
			}.Validate()
			if wrong != nil {
				return usageError{wrong}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			row, err := c.SetLinkPolicy(cmd.Context(), grid.DomainID(args[0]), change)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), row, func() error {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", row.Name,
					policyText(row.Policy))
				return err
			})
		},
	}
	f = formFlag(cmd)
	flags := cmd.Flags()
	flags.Var(&give, "give", "of this domain's capacity that the other one may use at a time")
	flags.Var(&take, "take", "what it may do for this domain at a time, of this one's capacity")
	flags.StringSliceVar(&kinds, "kinds", nil, "of work that is taken from it: wasm, command")
	flags.IntVar(&tasks, "tasks", 0, "of the other one that may be here at a time, 1 to 4096")
	flags.BoolVar(&beside, "beside", false, "ask it together with the members, not after them")
	flags.IntVar(&onward, "onward", 0, "borders more that what it is asked for may cross, 0 to 3")
	flags.BoolVar(&closed, "closed", false, "give and take nothing new")
	return cmd
}

// policyText is a policy in a line.
func policyText(p view.LinkPolicy) string {
	text := fmt.Sprintf("gives %d%%, takes %d%%, %s, at most %s",
		p.Give, p.Take, strings.Join(slices.Clone(p.Kinds), "+"), plural(p.Tasks, "task", "tasks"))
	if p.Beside {
		text += ", beside the members"
	}
	if p.Onward > 0 {
		text += fmt.Sprintf(", %s onward", plural(p.Onward, "border", "borders"))
	}
	if p.Closed {
		text = "closed (" + text + ")"
	}
	return text
}

func domainUnlinkCommand(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: "unlink NAME", Short: "End the link with a domain, at both sides",
		ValidArgsFunction: completion(o, domainsToComplete),
		Long: `End the link with the domain NAME. The connection is closed immediately. The other
domain is told, when it is reached, and forgets the link as well; until then its gateway is
refused with that reason. To link again takes a new invitation.

Example: siteagent domain unlink campus`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errNoDomain}
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			if err = c.Unlink(cmd.Context(), grid.DomainID(args[0])); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "the link with domain %s has ended\n", args[0])
			return f.print(cmd.OutOrStdout(), map[string]string{"unlinked": args[0]}, nil)
		},
	}
	f = formFlag(cmd)
	return cmd
}
