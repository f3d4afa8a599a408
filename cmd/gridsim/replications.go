package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

// replications are the flags of what plays an experiment with several seeds.
type replications struct {
	seeds, workers int
	first          uint64
	only, set      []string
	quiet          bool
}

func (r *replications) addTo(flags *pflag.FlagSet) {
	flags.IntVar(&r.seeds, "seeds", 0, "replications (default as the experiment says)")
	flags.Uint64Var(&r.first, "first", 1, "the first seed; the others follow it")
	flags.StringSliceVar(&r.only, "only", nil, "play these strategies only")
	flags.IntVar(
		&r.workers, "workers", 0, "that play at the same time (default one for each processor)",
	)
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "no progress on standard error")
}

// source reads the experiment, and how it is to be changed.
func (r *replications) source(name string) (eval.Source, []scenario.Setting, error) {
	if r.seeds < 0 || r.workers < 0 {
		return eval.Source{}, nil, usageError("--seeds, --workers: want at least 0")
	}
	var settings []scenario.Setting
	for _, text := range r.set {
		key, err := scenario.ParseSetting(text)
		if err != nil {
			return eval.Source{}, nil, usageError("--set %w", err)
		}
		settings = append(settings, key)
	}
	source, err := eval.OpenExperiment(name)
	return source, settings, err
}

func oneExperiment(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("%s: want one experiment, or one file (gridsim list)", cmd.CommandPath())
	}
	return nil
}
