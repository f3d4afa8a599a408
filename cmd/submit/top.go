package main

import (
	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/tui"
)

func (a *app) topCommand() *cobra.Command {
	once := false
	cmd := &cobra.Command{
		Use: "top", Short: "Watch the own jobs on a full screen",
		Args: exactly(0, "no argument"),
		Long: `Show the own jobs on a full screen, newest first, once a second: how far each is, how
long it will still take by the tasks that have ended, and how many of its tasks are
done, running, waiting and failed.

Keys: enter shows a job's tasks, their sites and why they are there; l reads what a task
has printed, c cancels a job after asking, / shows only jobs whose name, id or state has
a text, ? explains the keys, q quits.

Without a terminal, with TERM=dumb, with --once and with -o json, yaml or name it prints
the newest jobs once and ends.`,
		Example: "  submit top\n  submit top --once\n  submit top -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			top := tui.JobsTop{Agent: a.client, Left: a.timeLeft, Why: a.whyJob}
			facts, err := top.Facts(cmd.Context())
			if err != nil {
				return err
			}
			on := tui.Terminal{In: a.in, Out: a.out, Now: a.now}
			if o, wrapped := a.out.(output); wrapped {
				on.Out = o.to
			}
			asked := cmd.Flags().Changed("output") || a.parsable
			switch {
			case a.inWords() && (once || !on.Drawable()):
				return top.Print(a.out, facts, a.now())
			case asked && !a.inWords() || once || !on.Drawable():
				return a.show(jobsResult(facts, facts.Jobs))
			default:
				return top.Run(cmd.Context(), on, facts)
			}
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print plain lines once, on a terminal, too")
	return cmd
}

// inWords reports whether the output is for people, and not for programs.
func (a *app) inWords() bool {
	return !a.parsable && (a.config.Output == "table" || a.config.Output == "wide")
}
