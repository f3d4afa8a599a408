package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

const fitHelp = `See which laws fit the times up and down of real machines: a Weibull and a
lognormal law with the greatest likelihood, of all machines of a file together.

The file is an event_trace of the Failure Trace Archive, packed by gzip or not.
What is printed can be given to gridsim workload availability as --scale and
--shape. Of the two laws the one with the greater likelihood fits better; it is
the mean of ln of the density, by hours. Times that watching cut off, at most two
for each machine, count like the others.`

const fitExamples = `  gridsim workload fit --events LANL05-event_trace.tab.gz
  gridsim workload fit --events LANL05-event_trace.tab.gz --nodes 16. -o json`

func fitCommand() *cobra.Command {
	var fit eval.FitEvents
	var output form
	cmd := &cobra.Command{
		Use: "fit --events FILE", Short: "Laws that fit real machines", Long: fitHelp,
		Example: fitExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			result, err := fit.Run()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return output.print(out, result, func() error { return printFit(out, result) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&fit.Events, "events", "", "event_trace of the Failure Trace Archive")
	flags.StringVar(&fit.Nodes, "nodes", "", "only machines whose names begin so (default all)")
	output.addTo(flags)
	return cmd
}

func printFit(out io.Writer, r eval.FitResult) error {
	fmt.Fprintf(out, "machines      %d\navailability  %.4f\n", r.Nodes, r.Availability)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "times\tspells\tmean\tmedian\tlaw\tscale\tshape\tlikelihood\t")
	for _, t := range []struct {
		name  string
		times eval.FittedTimes
	}{{"up", r.Up}, {"down", r.Down}} {
		for _, law := range []struct {
			name string
			law  eval.FittedLaw
		}{{"weibull", t.times.Weibull}, {"lognormal", t.times.LogNormal}} {
			mark := ""
			if law.name == t.times.Best {
				mark = "best"
			}
			fmt.Fprintf(w, "%s\t%d\t%.4g h\t%.4g h\t%s\t%.4g h\t%.3f\t%.4f\t%s\n", t.name, t.times.Spells,
				t.times.MeanH, t.times.MedianH, law.name, law.law.ScaleH, law.law.Shape,
				law.law.LogLikelihood, mark)
		}
	}
	return w.Flush()
}
