package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) forgetCommand() *cobra.Command {
	older := ""
	cmd := &cobra.Command{
		Use: "forget ID... | forget --older-than DURATION", Short: "Drop ended jobs and their outputs",
		Long: `Drop what the agent knows of jobs that have ended: they are not listed any more, and
their outputs are not kept. Nothing needs that: old jobs go by themselves (history.keep,
history.size and data.keep of the agent). A job that has not ended is cancelled first, and one
that another job waits for stays.`,
		ValidArgsFunction: a.completeJobs(),
		Example:           "  submit forget mfrg\n  submit forget --older-than 30d",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case older != "" && len(args) > 0:
				return usage("name jobs, or --older-than; both together are not understood")
			case older != "":
				return a.forgetOlder(cmd, older)
			case len(args) == 0:
				return usage("want at least one job, or --older-than DURATION")
			}
			for _, text := range args {
				id, err := a.findJob(cmd.Context(), text)
				if err != nil {
					return err
				}
				if err := a.client.Forget(cmd.Context(), id); err != nil {
					return err
				}
				a.say("job %s forgotten", id)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&older, "older-than", "", "all that ended longer ago, such as 30d or 12h")
	return cmd
}

func (a *app) forgetOlder(cmd *cobra.Command, text string) error {
	span, err := grid.ParseSpan(text)
	if err != nil || span < 0 {
		return usage("--older-than: want a duration such as 30d or 12h, have %q", text)
	}
	n, err := a.client.ForgetEnded(cmd.Context(), time.Now().Add(-span))
	if err != nil {
		return err
	}
	a.say("%d jobs forgotten", n)
	return nil
}
