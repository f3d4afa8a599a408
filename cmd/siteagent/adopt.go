package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/store"
)

func adoptCommand(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: "adopt", Short: "Use a state directory that was moved here, or restored", Args: noArgs,
		Long: `Bind the state directory to this machine: after it was moved to another machine
or after a backup was restored.

Be sure that no agent works with the same identity anywhere else: a second one
is another site and wants an identity of its own (siteagent init, siteagent join).

The next start knows that the state may be older than what the site has promised.
It asks the other sites what they run, and places nothing and renews no lease
until every lease of the time that was lost has ended: 3.5 seconds as a rule,
hours for jobs with unattended: finish. Jobs that were submitted after the
backup are lost with it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.load()
			if err != nil {
				return err
			}
			err = store.Adopt(c.StateDir, hostinfo.MachineName())
			if errors.Is(err, store.ErrLocked) {
				return fmt.Errorf("%w; end it first: siteagent stop", err)
			}
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return f.print(out, struct {
				State string `json:"state"` // directory that belongs to this machine now
			}{c.StateDir}, func() error {
				_, err := fmt.Fprintf(out, "%s belongs to this machine now\n", c.StateDir)
				return err
			})
		},
	}
	f = formFlag(cmd)
	return cmd
}
