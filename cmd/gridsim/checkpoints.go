package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

const checkpointsHelp = `Work out how often one task should save its state.

First: how long the task takes with so many evenly spaced checkpoints, if it meets
no outage, one or two, and each costs it a whole segment (figure 2 of OpenCCS,
which --svg DIR draws as checkpoints.svg).

Then: at which points of its work each rule saves its state where failures are
exponential with the mean --mtbf, and how long the task takes on average.

gridsim run ckpt compares the rules on resources that fail.`

const checkpointsExamples = `  gridsim checkpoints          figure 2 of OpenCCS: 1 h, 2 min each
  gridsim checkpoints --run 10h --cost 2m --mtbf 8h`

func checkpointsCommand() *cobra.Command {
	var task eval.Checkpoints
	var figures figureFlags
	var output form
	cmd := &cobra.Command{
		Use: "checkpoints", Short: "Work out how often a task should save its state",
		Long: checkpointsHelp, Example: checkpointsExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			result, err := task.Plan()
			if err != nil {
				return err
			}
			if err := errors.Join(figures.Open(), figures.Outages(task, result)); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return output.print(out, result, func() error { return printCheckpoints(out, result) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&task.Run, "run", time.Hour, "run time without failures and checkpoints")
	flags.DurationVar(&task.Cost, "cost", 2*time.Minute, "what a checkpoint takes")
	flags.DurationVar(&task.MTBF, "mtbf", 4*time.Hour, "mean time between failures")
	flags.IntVar(&task.Most, "most", 12, "checkpoints up to which the first table goes")
	figures.addTo(flags)
	output.addTo(flags)
	return cmd
}

func printCheckpoints(out io.Writer, r eval.CheckpointsResult) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "checkpoints\tno outage\tone\ttwo")
	row := func(name string, of func(eval.OutageCurve) string) {
		cells := []string{name}
		for _, curve := range r.Outages {
			cells = append(cells, of(curve))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	for n := range r.Outages[0].Seconds {
		row(fmt.Sprint(n), func(c eval.OutageCurve) string { return lasting(c.Seconds[n]) })
	}
	row("best", func(c eval.OutageCurve) string { return fmt.Sprint(c.Best) })
	fmt.Fprintln(w, "\nrule\ton average\tcheckpoints after so much work")
	for _, p := range r.Plans {
		expected, at := "-", make([]string, 0, len(p.At))
		if p.Expected > 0 {
			expected = lasting(p.Expected)
		}
		for _, seconds := range p.At {
			at = append(at, lasting(seconds))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Rule, expected, strings.Join(at, " "))
	}
	return w.Flush()
}

// lasting shows seconds as people write them.
func lasting(seconds float64) string {
	const most = 1e9 // more is written as a number
	if seconds > most {
		return fmt.Sprintf("%.3gs", seconds)
	}
	return (time.Duration(seconds+.5) * time.Second).String()
}
