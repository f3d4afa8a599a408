package main

import (
	"cmp"
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
	effects, f := false, (*form)(nil)
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
			if effects && *f == jsonForm {
				return usageError{
					errors.New("--effects prints lines for people; leave out -o json"),
				}
			}
			return replay(cmd.OutOrStdout(), f, dir, effects)
		},
	}
	f = formFlag(cmd)
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

// replayed tells programs of one run's journal.
type replayed struct {
	Machine string `json:"machine"`
	Start   uint64 `json:"start"` // the number of the run
	Build   string `json:"build"` // that wrote it
	LeftOut bool   `json:"left_out"`
	Inputs  uint64 `json:"inputs"` // that were derived again
	// where it differs, or cannot be read any further; left out: nowhere
	Differs string `json:"differs,omitempty"`
}

// text is that for people.
func (r replayed) text() string {
	name := fmt.Sprintf("%s machine, start %d", r.Machine, r.Start)
	switch {
	case r.LeftOut:
		return fmt.Sprintf("%s: written by build %s, left out", name, r.Build)
	case r.Differs != "":
		return name + ": " + r.Differs
	default:
		return fmt.Sprintf("%s: %d inputs, the same effects", name, r.Inputs)
	}
}

func replay(out io.Writer, f *form, dir string, effects bool) error {
	runs, err := store.Runs(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(runs) == 0 {
		return fmt.Errorf("%s holds no journal; name an agent's state directory", dir)
	}
	var failed error
	all := make([]replayed, 0, len(runs))
	for _, run := range runs {
		r := replayRun(out, run, effects)
		if all = append(all, r); r.Differs != "" {
			failed = errDiffers
		}
		if *f == tableForm {
			fmt.Fprintln(out, r.text())
		}
	}
	return cmp.Or(f.print(out, all, nil), failed)
}

func replayRun(out io.Writer, run store.Run, effects bool) replayed {
	r := replayed{Machine: run.Machine, Start: run.Incarnation, Build: run.Build}
	if run.Build != version() {
		r.LeftOut = true
		return r
	}
	var visit func(store.Entry, []step.Effect)
	if effects {
		visit = func(e store.Entry, wanted []step.Effect) { printEntry(out, e, wanted) }
	}
	result, err := store.Replay(run, agent.NewMachine, visit)
	r.Inputs = result.Records
	switch {
	case err != nil:
		r.Differs = fmt.Sprintf("%d inputs, then: %v", result.Records, err)
	case result.Divergence != nil:
		r.Differs = fmt.Sprint(result.Divergence)
	}
	return r
}

func printEntry(out io.Writer, e store.Entry, effects []step.Effect) {
	fmt.Fprintf(out, "%d %s %T%+v\n", e.Number, e.Time.Format("15:04:05.000"), e.Input, e.Input)
	for _, effect := range effects {
		fmt.Fprintf(out, "    %s\n", step.EncodeEffect(effect))
	}
}
