package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

const calibrateHelp = `Let machines learn their own availability, as a site's agent does, from their
first minute on; ask them now and then how likely they are to stay available for
so long; and count what came of it.

The machines are made up (--model desktop: on around nine on working days, off
around six, at home on one day in ten, late on another; a crash every 60 hours)
or those of an event_trace of the Failure Trace Archive (--events), packed by gzip
or not, in which each end counts as a crash.

What is printed: for each tenth of probability how many predictions there were,
their mean, and the share that came true; and Brier scores, the mean squared
errors, 0 being clairvoyant:
  brier               of what the machines learned
  brier_prior         of the prior with the age alone, without memory
  brier_constant      of always saying the share of all predictions that came true
  brier_by_length     the same for each length of time that was asked about
  brier_paper         of the thesis' equation (9) with the machine's own rate
  first_...           the same of the days of learning`

const calibrateExamples = `  gridsim calibrate --model desktop --svg docs/availability-desktop.svg
  gridsim calibrate --events LANL05-event_trace.tab.gz -o json`

func calibrateCommand() *cobra.Command {
	var experiment eval.Calibrate
	var output form
	cmd := &cobra.Command{
		Use: "calibrate", Short: "Hold predictions of availability against what came of them",
		Long: calibrateHelp, Example: calibrateExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if experiment.Events == "" && experiment.Model == "" {
				experiment.Model = "desktop"
			}
			if experiment.Events != "" && !cmd.Flags().Changed("learning") {
				experiment.Learning = 0
			}
			result, err := experiment.Run(cmd.Context())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return output.print(out, result, func() error { return printCalibrate(out, result) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(
		&experiment.Model, "model", "", strings.Join(eval.CalibrationModels(), ", ")+" (default desktop)",
	)
	flags.StringVar(
		&experiment.Events, "events", "", "event_trace of the Failure Trace Archive, instead of a model",
	)
	flags.IntVar(&experiment.Machines, "machines", 20, "machines of a model")
	flags.IntVar(&experiment.Days, "days", 365, "days that each of them is asked")
	flags.IntVar(
		&experiment.Learning, "learning", 28,
		"days of learning before those, whose predictions are counted apart",
	)
	flags.IntVar(&experiment.Every, "every", 1, "of the machines of --events only each such one")
	flags.Uint64Var(&experiment.Seed, "seed", 1, "of what is made up")
	flags.StringVar(&experiment.SVG, "svg", "", "draw the reliability diagram to this file")
	output.addTo(flags)
	return cmd
}

func printCalibrate(out io.Writer, r eval.CalibrateResult) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "bin\tpredictions\tpredicted\tactual\toff\t")
	for i, b := range r.Bins {
		fmt.Fprintf(w, "%.1f to %.1f\t%d\t%.3f\t%.3f\t%+.3f\t\n",
			float64(i)/float64(len(r.Bins)), float64(i+1)/float64(len(r.Bins)),
			b.Queries, b.Predicted, b.Actual, b.Actual-b.Predicted)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if f := r.First; f != nil {
		defer fmt.Fprintf(out, `first_predictions  %d
first_worst_bin    %.3f
first_brier        %.4f
first_brier_prior  %.4f
`, f.Queries, f.WorstBin, f.Brier, f.BrierPriorOnly)
	}
	_, err := fmt.Fprintf(out, `machines         %d
predictions      %d
worst_bin        %.3f
brier            %.4f
brier_prior      %.4f
brier_constant   %.4f
brier_by_length  %.4f
brier_paper      %.4f
`, r.Machines, r.Queries, r.WorstBin, r.Brier, r.BrierPriorOnly, r.BrierConstant,
		r.BrierByLength, r.BrierPaper)
	return err
}
