package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/play"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

const playHelp = `Play a scenario in simulated time, with the machines that run in every agent, and
show what happened.

A scenario is a text that says which sites there are, what the network does to
messages, what happens when, and what must be true in the end:

  sites  n=5 cores=2..6 gflops=8..24 mem=4GiB
  net    latency=2ms jitter=1ms loss=.01
  submit job=j1 at=1s by=s0 count=20 gflops=4 run=30s
  crash  site=s3 at=10s for=20s
  run    for=10m seed=1
  expect lost=0 doubled=0 done=20

gridsim help scenarios explains all words.

What is printed: what came of the jobs; a line of time for each site (who runs,
frozen, dead, cut off, given up); the decisions; and the messages. With --html a
page is written that shows the same as a picture and can be stepped through, one
decision or message at a time; it needs no network and no other file.

The same text gives the same bytes, always. If something that the scenario
expects did not come so, the exit code is 1.`

const playExamples = `  gridsim play testdata/scenarios/site-killed.txt
  gridsim play story.txt --html story.html --svg story.svg
  gridsim play story.txt -o json | jq .met`

// player is the command play.
type player struct {
	views  views
	quiet  bool
	output form
}

func playCommand() *cobra.Command {
	var p player
	cmd := &cobra.Command{
		Use: "play SCENARIO", Short: "Play a scenario, and show what happened", Long: playHelp,
		Example: playExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("want one file with a scenario, have %d (gridsim play --help shows one)",
					len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.output.check(); err != nil {
				return err
			}
			return p.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	p.views.addTo(flags)
	p.output.addTo(flags)
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "no progress on standard error")
	return cmd
}

// scenariosTopic is help without a command.
func scenariosTopic() *cobra.Command {
	text, err := scenario.Words()
	if err != nil { // what is read was compiled in: not reached
		text = err.Error()
	}
	return &cobra.Command{Use: "scenarios", Short: "The words of a scenario", Long: text}
}

func (p player) run(ctx context.Context, path string, out, people io.Writer) error {
	s, err := readScenario(path)
	if err != nil {
		return err
	}
	var tell func(float64)
	if !p.quiet {
		tell = shareOf(people, time.Now, s.Run.For)
	}
	o, record, err := play.Play(ctx, s, tell)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err = p.views.write(record, filepath.Base(path)); err != nil {
		return err
	}
	unmet := s.Expect.Check(o)
	err = p.output.print(out, play.ResultOf(path, o, unmet), func() error {
		_, wrong := fmt.Fprintf(out, "%s%s", o.Summary(), record.Text(p.views.all))
		return wrong
	})
	if err == nil && unmet != nil {
		err = fmt.Errorf("%s: not as expected:\n%w", path, unmet)
	}
	return err
}

// readScenario reads a file, of which the scenario's format bounds the size.
func readScenario(path string) (scenario.Scenario, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return scenario.Scenario{}, err
	}
	if scenario.IsExperiment(string(text)) {
		return scenario.Scenario{}, usageError("%s is an experiment: gridsim run plays it", path)
	}
	s, err := scenario.Parse(string(text))
	if err != nil {
		return s, usageError("%s:\n%w", path, err)
	}
	return s, nil
}

// shareOf tells now and then how much of a long scenario's time is over.
func shareOf(out io.Writer, now func() time.Time, all time.Duration) func(share float64) {
	next := now().Add(progressEvery)
	return func(share float64) {
		if t := now(); !t.Before(next) {
			next = t.Add(progressEvery)
			done := time.Duration(share * float64(all))
			fmt.Fprintf(out, "gridsim: %s of %s played (%.0f %%)\n", done.Round(time.Second), all, 100*share)
		}
	}
}
