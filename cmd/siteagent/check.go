package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

func checkCommand(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
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
			return printCheck(cmd.OutOrStdout(), f, result)
		},
	}
	f = formFlag(cmd)
	return cmd
}

// printCheck prints the answer; one that is no is an error, too.
func printCheck(out io.Writer, f *form, r view.CheckResult) error {
	if err := f.print(out, r, func() error { return explainCheck(out, r) }); err != nil {
		return err
	}
	if !r.Arrive {
		return errDiffers
	}
	return nil
}

func explainCheck(out io.Writer, r view.CheckResult) error {
	if r.Arrive {
		_, err := fmt.Fprintf(
			out, "my offers arrive: yes (distance %.3f, in %.0f ms, seen by %s)\n", r.Distance,
			r.Seconds*1000, r.Name,
		)
		return err
	}
	reason := r.Reason
	if r.Name != "" {
		reason += ", as " + r.Name + " says"
	}
	_, err := fmt.Fprintf(out, "my offers arrive: no: %s; %s\n", reason, r.Remedy)
	return err
}
