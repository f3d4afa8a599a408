package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

const sweepHelp = `Run an experiment again and again with one or two of its values varied, and print
the strategies' measures for each combination of them.

--set LINE.KEY=VALUE,VALUE,... names a key of a line of the experiment, whether it
is written there or not: jobs.load, grid.n, seeds.n. Where there are several lines
of a kind their name says which: strategy:MRS.grain=1,2,4. 'strategy:*.ttl=1s,3s'
varies all of them together; quote it, as the shell reads * as well. A key with
one value is changed and not varied. gridsim list EXPERIMENT prints the lines.

Each point is the run that gridsim run plays with the same --set. All of them take
the same seeds. --svg DIR draws each measure over the first key that is varied.`

const sweepExamples = `  gridsim sweep thesis-1 --set jobs.load=.5,.6,.7,.8 --only BACKFILL,MRS
  gridsim sweep thesis-1 --set grid.ways=turns,fair,apart --set jobs.data=4MiB,36MiB,300MiB
  gridsim sweep mine.txt --set strategy:MRS.grain=1,2,4 --of wait,messages --svg figures
  gridsim sweep mesh-burst --set 'strategy:*.ttl=1s,3s' --of completion --svg figures
  gridsim sweep vrm --set requests.load=.5,1,2 --only A-optimal,ours-0.775 --seeds 20`

// sweeper is the command sweep.
type sweeper struct {
	replications
	of      []string // measures in the table
	figures figureFlags
	output  form
}

func sweepCommand() *cobra.Command {
	s := sweeper{output: form{names: []string{formTable, formJSON, formCSV}}}
	cmd := &cobra.Command{
		Use:   "sweep EXPERIMENT|FILE --set LINE.KEY=VALUE,VALUE...",
		Short: "Vary values of an experiment", Long: sweepHelp, Example: sweepExamples,
		Args: oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&s.set, "set", nil, "LINE.KEY=VALUE,...: one or two with several values")
	s.addTo(flags)
	flags.StringSliceVar(&s.of, "of", nil, "print and draw these measures only")
	s.figures.addTo(flags)
	s.output.addTo(flags)
	return cmd
}

func (s *sweeper) run(cmd *cobra.Command, name string) error {
	if err := s.output.check(); err != nil {
		return err
	}
	source, settings, err := s.source(name)
	if err != nil {
		return err
	}
	sweep := eval.Sweep{
		Source: source, Settings: settings, First: s.first, Seeds: s.seeds, Only: s.only,
		Workers: s.workers,
	}
	if err = sweep.Prepare(); err != nil {
		return err
	}
	measures, err := chosenMeasures(sweep.Measures(), s.of)
	if err != nil {
		return err
	}
	if err = s.figures.Open(); err != nil {
		return err
	}
	m := newMeter(cmd.ErrOrStderr(), time.Now, sweep.Runs())
	if !s.quiet {
		sweep.Progress = m.tell
	}
	result, err := sweep.Run(cmd.Context())
	m.clear()
	if err != nil {
		return err
	}
	if err := s.figures.Sweep(result, measures); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	return s.output.print(out, result, func() error {
		if s.output.name == formCSV {
			return printSweepCSV(out, result, measures)
		}
		return printSweepTable(out, result, measures)
	})
}

// chosenMeasures are those of all that were asked for, in their order; none asked for: all.
func chosenMeasures(all, of []string) ([]string, error) {
	for _, name := range of {
		if !slices.Contains(all, name) {
			return nil, usageError("--of: no measure is called %q: want one of %s", name,
				strings.Join(all, " "))
		}
	}
	if len(of) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(of, name) }), nil
}

func printSweepCSV(out io.Writer, r eval.SweepResult, measures []string) error {
	w := csv.NewWriter(out)
	var keys []string
	for _, v := range r.Varied {
		keys = append(keys, v.Key)
	}
	_ = w.Write(append(slices.Clone(keys), "strategy", "measure", "mean", "ci95")) // Flush tells
	for _, p := range r.Points {
		for _, group := range []map[string]map[string]metrics.Interval{p.Strategies, p.Ratios} {
			for _, name := range sortedKeys(group) {
				for _, measure := range measures {
					if x, known := group[name][measure]; known {
						_ = w.Write(append(setOf(p, keys), name, measure, plain(x.Mean), plain(x.CI95)))
					}
				}
			}
		}
	}
	w.Flush()
	return w.Error()
}

// setOf are the values of a point in the order of the keys.
func setOf(p eval.SweepPoint, keys []string) []string {
	values := make([]string, 0, len(keys)+4)
	for _, key := range keys {
		values = append(values, p.Set[key])
	}
	return values
}

// printSweepTable prints a table for each measure: a line for each combination, a column for each
// strategy, and for each but the first one beside the first.
func printSweepTable(out io.Writer, r eval.SweepResult, measures []string) error {
	var keys []string
	for _, v := range r.Varied {
		keys = append(keys, v.Key)
	}
	first := r.Points[0]
	fmt.Fprintf(out, "%s, %s varied, from seed %d on\n", r.Scenario, strings.Join(keys, " and "),
		first.First)
	names := first.Names
	var ratios []string
	for _, name := range names {
		if beside := first.Beside(name); name != beside {
			ratios = append(ratios, name+"/"+beside)
		}
	}
	for _, measure := range measures {
		fmt.Fprintf(out, "\n%s\n", measure)
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, strings.Join(slices.Concat(keys, names, ratios), "\t"))
		for _, p := range r.Points {
			cells := setOf(p, keys)
			for _, name := range names {
				cells = append(cells, cell(p.Strategies[name], measure))
			}
			for _, ratio := range ratios {
				cells = append(cells, cell(p.Ratios[ratio], measure))
			}
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
