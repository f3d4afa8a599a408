package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

const runHelp = `Compare strategies of placing jobs: draw a grid and jobs for each seed, let each
strategy place them, and print means with 95 % confidence intervals, ratios, and
whether what was expected came true.

on=mesh in an experiment is this project's own machines, sites and submitter, in
the simulator: they announce, answer and award as they do in real life. They are
compared with on=queue: one queue for the whole grid, with full knowledge.

--svg DIR draws each measure and each ratio, a bar for each strategy; with --seeds 1
also who held how many nodes of which site when (gantt-NAME.svg), and how far sites
were from the jobs (map-NAME.svg). --out DIR writes each run in the form of the
simulator Batsim: NAME/seed-1/jobs.csv, schedule.json.

The same seed gives the same numbers, however many processors play. --blocks 2
plays as many other seeds as well and says how many means are as close as their
intervals say, which is 95 % of them where the intervals can be trusted.

What is measured: wait, makespan and completion in seconds; utilization from 0
to 1; done, rejected and failed jobs, and failures of runs, per second; slowdown;
messages for each job.

An experiment whose sites fail (fail-dg) is played in several settings: how long
sites are up and down. The results of a strategy in one are STRATEGY@SETTING.

Experiments about resources that fail (ckpt) measure waste, which is time on
resources that was no work, and completion, in seconds; the part of jobs that met
their deadlines; checkpoints and failures for each job. Where a strategy has
several intervals, others are compared with the best of them.

Experiments about reservations on machines that fail (vrm) measure which part of
the jobs that a failure hit it cost (termination), and how many (terminated,
saved); which part of the requests got nothing (blocking); how many jobs were
moved for nothing (overhead) and were done (completed). Their JSON has the curve
of the first strategy with several thresholds: .curves[CASE][ETA]. --svg DIR
draws figures 8 to 12 of the VRM paper.`

const runExamples = `  gridsim list                                  what there is
  gridsim list thesis-1 > mine.txt              take one as a pattern
  gridsim run thesis-1 --seeds 5
  gridsim run mine.txt --only MRS,BACKFILL -o json
  gridsim run thesis-1 --seeds 1 --only BACKFILL --svg figures --out results
  gridsim run thesis-1 --only BACKFILL,REP,FIRST-split --blocks 2
  gridsim run thesis-1 --set jobs.log=site.swf.gz --set jobs.first=500`

// runner is the command run.
type runner struct {
	replications
	figures figureFlags
	results string // directory
	blocks  int    // of seeds
	output  form
}

func runCommand() *cobra.Command {
	r := runner{output: form{names: []string{formTable, formJSON, formCSV}}}
	cmd := &cobra.Command{
		Use: "run EXPERIMENT|FILE", Short: "Compare strategies of placing jobs", Long: runHelp,
		Example: runExamples, Args: oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	r.addTo(flags)
	flags.StringArrayVar(&r.set, "set", nil, "LINE.KEY=VALUE: the experiment with another value")
	r.figures.addTo(flags)
	flags.StringVar(
		&r.results, "out", "", "write each run's jobs.csv and schedule.json into this directory",
	)
	flags.IntVar(&r.blocks, "blocks", 1,
		"2: play as many seeds behind the last one, and say whether they agree")
	r.output.addTo(flags)
	return cmd
}

func (r *runner) run(cmd *cobra.Command, name string) error {
	if err := errors.Join(r.output.check(), r.checkBlocks()); err != nil {
		return err
	}
	compare, err := r.compare(name)
	if err != nil {
		return err
	}
	if compare.Experiment.InCases() && r.results != "" {
		return usageError("--out: %s has no sites that hold jobs, only cases to compare", name)
	}
	if err = r.figures.Open(); err != nil {
		return err
	}
	compare.Keep = r.keep(compare)
	m := newMeter(cmd.ErrOrStderr(), time.Now, r.blocks*compare.Runs())
	if !r.quiet {
		compare.Progress = m.tell
	}
	result, err := r.play(cmd.Context(), compare)
	m.clear()
	if err != nil {
		return err
	}
	return r.show(cmd.OutOrStdout(), result)
}

// show draws and prints a result.
func (r *runner) show(out io.Writer, result eval.CompareResult) error {
	measures := result.Measures
	if len(result.Settings) > 0 {
		measures = scenario.AllMeasures() // also those of forecasts
	}
	if err := r.figures.Compare(result, measures); err != nil {
		return err
	}
	return r.output.print(out, result, func() error {
		if r.output.name == formCSV {
			return printCompareCSV(out, result)
		}
		show := printCompareTable
		if len(result.Cases) > 0 {
			show = printCases
		}
		return errors.Join(show(out, result), printBlocks(out, result))
	})
}

// keep does with each run what was asked for; nil is nothing. Of several seeds nobody looks at
// who held which node when.
func (r *runner) keep(compare *eval.Compare) func(eval.RunRecord) error {
	gantt := !r.figures.Empty() && compare.Runs() == len(compare.Chosen())
	compare.Offers = gantt
	if !gantt && r.results == "" {
		return nil
	}
	return func(run eval.RunRecord) error {
		if r.results != "" {
			if err := run.WriteResults(r.results); err != nil {
				return err
			}
		}
		if gantt {
			return errors.Join(r.figures.Gantt(run), r.figures.Map(run))
		}
		return nil
	}
}

// compare is the comparison that the command line asks for.
func (r *runner) compare(name string) (*eval.Compare, error) {
	source, settings, err := r.source(name)
	if err != nil {
		return nil, err
	}
	for _, key := range settings {
		if len(key.Values) > 1 {
			return nil, usageError("--set %s: want one value: gridsim sweep varies them", key.Path())
		}
		if source, err = source.With(key, key.Values[0]); err != nil {
			return nil, err
		}
	}
	compare, err := source.Compare()
	if err != nil {
		return nil, err
	}
	compare.First, compare.Seeds, compare.Only = r.first, r.seeds, r.only
	compare.Workers = r.workers
	return compare, nil
}

func printCompareCSV(out io.Writer, r eval.CompareResult) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"strategy", "measure", "mean", "ci95"}) // Flush tells
	for _, group := range []map[string]map[string]metrics.Interval{r.Strategies, r.Ratios} {
		for _, name := range sortedKeys(group) {
			for _, measure := range r.Measures {
				if x, known := group[name][measure]; known {
					_ = w.Write([]string{name, measure, plain(x.Mean), plain(x.CI95)})
				}
			}
		}
	}
	w.Flush()
	return w.Error()
}

func plain(x float64) string { return strconv.FormatFloat(x, 'g', 10, 64) }

func printCompareTable(out io.Writer, r eval.CompareResult) error {
	fmt.Fprintf(out, "%s, seeds %d to %d\n\n", r.Scenario, r.First, r.First+uint64(r.Seeds)-1)
	if len(r.Settings) > 0 {
		return printSettings(out, r)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "measure\t%s\n", strings.Join(r.Names, "\t"))
	for _, measure := range r.Measures {
		cells := []string{measure}
		for _, name := range r.Names {
			cells = append(cells, cell(r.Strategies[name], measure))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	first := r.Names[0]
	if len(r.Names) > 1 {
		fmt.Fprintf(w, "\nbeside %s\t%s\n", first, strings.Join(r.Names[1:], "\t"))
		for _, measure := range r.Measures {
			cells := []string{measure}
			for _, name := range r.Names[1:] {
				cells = append(cells, cell(r.Ratios[name+"/"+first], measure))
			}
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printClaims(out, r.Claims)
}

// cell shows a measure with four digits.
func cell(of map[string]metrics.Interval, measure string) string {
	x, known := of[measure]
	if !known {
		return "-"
	}
	return fmt.Sprintf("%s ±%s", short(x.Mean), short(x.CI95))
}

func short(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list [EXPERIMENT]", Short: "List the experiments, or print one",
		Long: "List the experiments that come with gridsim, or print the text of one, as a pattern " +
			"for others.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("%s: want at most one experiment", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
			for _, b := range eval.BuiltIns() {
				if len(args) == 0 {
					fmt.Fprintf(w, "%s\t%s\n", b.Name, b.Title)
				} else if b.Name == args[0] {
					_, err := io.WriteString(out, b.Text)
					return err
				}
			}
			if len(args) > 0 {
				return usageError("no experiment is called %q: gridsim list shows them", args[0])
			}
			return w.Flush()
		},
	}
}
