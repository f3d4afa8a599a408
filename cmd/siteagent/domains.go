package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

func domainsCommand(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: "domains", Short: "Show linked domains, their terms, and who is connected",
		Args: noArgs,
		Long: `Show the domains that this one is linked with: whether their gateways are connected
or why not, this domain's terms, the work that was given and taken, and when each was heard of
last. The site that holds the domain's key knows, and while it is away the one that stands in for
it; who that is each site says. See siteagent domain --help.

Example: siteagent domains -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			links, err := c.Links(cmd.Context())
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), links, func() error {
				return printDomains(cmd.OutOrStdout(), links, time.Now())
			})
		},
	}
	f = formFlag(cmd)
	return cmd
}

// printDomains shows the linked domains, those that were linked, and open invitations.
func printDomains(out io.Writer, l view.Links, now time.Time) error {
	if l.Where != "" && len(l.Links) == 0 {
		_, err := fmt.Fprintf(out, "This site does not hold the key of domain %s, "+
			"and knows of no link; ask at %s.\n%s", l.Domain, l.Where, actsText(l))
		return err
	}
	if len(l.Links)+len(l.Invites)+len(l.Ended) == 0 {
		_, err := fmt.Fprintf(out, "Domain %s is linked with no other one. To link two: "+
			"siteagent domain --help\n", l.Domain)
		return err
	}
	const gap = 2
	w := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	fmt.Fprintln(w, "DOMAIN\tCONNECTED\tPOLICY\tGIVEN\tTAKEN\tLAST CONTACT")
	for _, row := range l.Links {
		connected, last := "yes", "now"
		if !row.Connected {
			connected, last = "no", "never"
			if !row.Last.IsZero() {
				last = dayText(row.Last.Time, now)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", row.Name, connected, policyText(row.Policy),
			coreTime(row.Given), coreTime(row.Taken), last)
	}
	for _, e := range l.Ended {
		by := "ended here"
		if e.ByThem {
			by = "ended by them"
		}
		fmt.Fprintf(w, "%s\t%s\t\t\t\t%s\n", e.Name, by, dayText(e.At.Time, now))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := io.WriteString(out, actsText(l)); err != nil {
		return err
	}
	for _, row := range l.Links {
		if row.Why != "" {
			fmt.Fprintf(out, "%s is not connected: %s\n", row.Name, row.Why)
		}
	}
	for _, i := range l.Invites {
		whom := "any domain"
		if i.Name != "" {
			whom = "domain " + string(i.Name)
		}
		until := dayText(i.Expires.Time, now)
		fmt.Fprintf(out, "invitation %s: for %s, until %s\n", i.ID, whom, until)
	}
	return nil
}

// actsText is a line that says who holds the links, where that is not this site as ever.
func actsText(l view.Links) string {
	if g := l.Gateway; g != nil && (!g.Here || len(g.Deputies) > 0) {
		return fmt.Sprintf("gateway of domain %s: %s\n", l.Domain, gatewayText(*g, ""))
	}
	return ""
}

// coreTime is work in core-seconds as people read it: "3.5 core-hours".
func coreTime(seconds float64) string {
	const hour = 3600
	if seconds < hour/10 {
		return fmt.Sprintf("%.0f core-seconds", seconds)
	}
	return fmt.Sprintf("%.1f core-hours", seconds/hour)
}
