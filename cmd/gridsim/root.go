package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/cmd/internal/manual"
	"github.com/mrsmesh/mrsmesh/internal/eval"
)

const rootHelp = `gridsim runs experiments with the very code that schedules jobs in the mesh,
in simulated time, and prints what came of them.

First steps:
  gridsim run thesis-1 --seeds 5                 is the mesh better than one queue for all?
  gridsim sweep thesis-1 --set jobs.load=.5,.7,.9   and at other loads?
  gridsim play story.txt --html story.html       a site dies: what becomes of its jobs?
  gridsim swf --log LOG.swf.gz --policy easy     how long would a real log's jobs have waited?
  gridsim calibrate --model desktop              do sites know how long they stay available?
  gridsim workload lublin > log.swf              no log at hand? make one up

Results go to standard output, as text or with -o json; progress and errors go
to standard error. Exit codes: 0 done, 1 failed, 2 asked for wrongly.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "gridsim", Short: "Run experiments with schedulers", Long: rootHelp,
		SilenceUsage: true, SilenceErrors: true, Version: version(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError(
				"unknown command %q: want one of %s (gridsim --help tells more)", args[0],
				strings.Join(experiments(cmd), ", "),
			)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w (%s --help lists the flags)", err, cmd.CommandPath())
	})
	root.AddCommand(
		runCommand(), sweepCommand(), listCommand(), playCommand(), replayCommand(), swfCommand(),
		calibrateCommand(), workloadCommand(), checkpointsCommand(), oddsCommand(),
		scenariosTopic(),
	)
	root.AddCommand(manual.Commands()...)
	return root
}

func experiments(root *cobra.Command) []string {
	var names []string
	for _, cmd := range root.Commands() {
		if cmd.Name() != "help" && cmd.Name() != "completion" && !cmd.Hidden {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// usageError is a mistake in the command line.
func usageError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", eval.ErrUsage, fmt.Errorf(format, args...))
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes flags only, have %q", cmd.CommandPath(), args)
	}
	return nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
