package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// errDiffers is the answer of a replay or audit that found something.
var errDiffers = errors.New("see above")

func replayCommand(o *options) *cobra.Command {
	effects := false
	cmd := &cobra.Command{
		Use: "replay [STATE]", Short: "Derive again what the machines decided",
		Args: cobra.MaximumNArgs(1),
		Long: `Derive again what the machines decided, from the journals in a state directory,
and compare. Only the build that wrote a journal can replay it; others are named
and left out. It works while the agent runs and changes nothing.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := o.stateDir(args)
			if err != nil {
				return err
			}
			return replay(cmd.OutOrStdout(), dir, effects)
		},
	}
	cmd.Flags().BoolVar(
		&effects, "effects", false, "print every input and what the machine wanted done",
	)
	return cmd
}

func (o *options) stateDir(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	c, err := o.load()
	return c.StateDir, err
}

func replay(out io.Writer, dir string, effects bool) error {
	runs, err := store.Runs(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(runs) == 0 {
		return fmt.Errorf("%s holds no journal; name an agent's state directory", dir)
	}
	var failed error
	for _, run := range runs {
		name := fmt.Sprintf("%s machine, start %d", run.Machine, run.Incarnation)
		if run.Build != version() {
			fmt.Fprintf(out, "%s: written by build %s, left out\n", name, run.Build)
			continue
		}
		var visit func(store.Entry, []step.Effect)
		if effects {
			visit = func(e store.Entry, wanted []step.Effect) { printEntry(out, e, wanted) }
		}
		result, err := store.Replay(run, agent.NewMachine, visit)
		switch {
		case err != nil:
			fmt.Fprintf(out, "%s: %d inputs, then: %v\n", name, result.Records, err)
			failed = errDiffers
		case result.Divergence != nil:
			fmt.Fprintf(out, "%s: %s\n", name, result.Divergence)
			failed = errDiffers
		default:
			fmt.Fprintf(out, "%s: %d inputs, the same effects\n", name, result.Records)
		}
	}
	return failed
}

func printEntry(out io.Writer, e store.Entry, effects []step.Effect) {
	fmt.Fprintf(out, "%d %s %T%+v\n", e.Number, e.Time.Format("15:04:05.000"), e.Input, e.Input)
	for _, effect := range effects {
		fmt.Fprintf(out, "    %s\n", step.EncodeEffect(effect))
	}
}
