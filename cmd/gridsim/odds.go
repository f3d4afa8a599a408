package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

const oddsHelp = `Work out how likely a job succeeds where resources fail independently: section
3.2.3 of the thesis.

  copies  one of K copies has to survive, over the availability of resources
  once    k resources have to be predicted rightly, over the probability that one is
          predicted wrongly
  tries   the same for --resources of them, but one of R tries is enough

The thesis takes 1 - K(1 - availability) and R(1 - error)^k for it, which can be below
0 and above 1: these numbers are in brackets.

--svg DIR draws its figures 7 to 9: odds-copies.svg, odds-once.svg and odds-tries.svg.`

const oddsExamples = `  gridsim odds                 figures 7 to 9 of the thesis
  gridsim odds --resources 2   jobs that need two resources in each try`

func oddsCommand() *cobra.Command {
	var odds eval.Odds
	var figures figureFlags
	var output form
	cmd := &cobra.Command{
		Use: "odds", Short: "Work out how likely copies, predictions and tries succeed",
		Long: oddsHelp, Example: oddsExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			result, err := odds.WorkOut()
			if err != nil {
				return err
			}
			if err := errors.Join(figures.Open(), figures.Odds(odds, result)); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return output.print(out, result, func() error { return printOdds(out, result) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Int64Var(&odds.Resources, "resources", 4, "that a job needs in each of several tries")
	figures.addTo(flags)
	output.addTo(flags)
	return cmd
}

func printOdds(out io.Writer, r eval.OddsResult) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	printOddsTable(w, "copies", r.Over, r.Copies)
	fmt.Fprintln(w)
	printOddsTable(w, "once", r.Over, r.Once)
	fmt.Fprintln(w)
	printOddsTable(w, "tries", r.Over, r.Tries)
	return w.Flush()
}

func printOddsTable(w io.Writer, name string, over []float64, curves []eval.OddsCurve) {
	row := func(name string, of func(eval.OddsCurve) string) {
		cells := []string{name}
		for _, c := range curves {
			cells = append(cells, of(c))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	row(name, func(c eval.OddsCurve) string { return c.Name })
	for i, x := range over {
		row(fmt.Sprintf("%.2f", x), func(c eval.OddsCurve) string {
			if c.Paper == nil {
				return fmt.Sprintf("%.4f", c.Success[i])
			}
			return fmt.Sprintf("%.4f (%.4g)", c.Success[i], c.Paper[i])
		})
	}
}
