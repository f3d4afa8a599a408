package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/store"
)

func repairCommand(o *options) *cobra.Command {
	var rebuild, forget bool
	var f *form
	cmd := &cobra.Command{
		Use: "repair [STATE]", Short: "Make the facts anew that a stopped site has lost",
		Args: cobra.MaximumNArgs(1),
		Long: `Make the facts anew that a stopped site has lost: facts.db is missing, empty or
damaged, and siteagent run says so. A file that is there is put aside; one that is
in order is left alone. A backup of facts.db that is older than the last run is no
remedy: the site would promise again what it has promised since.

--facts-from-journal derives them from the journal. The build that wrote it finds
all of them; another build may miss those of the last tenth of a second.

--start-as-new begins without any: jobs that were submitted here are lost, and
what was promised to others is given up.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if rebuild == forget {
				return usageError{errors.New("repair: want --facts-from-journal or --start-as-new")}
			}
			dir, err := o.stateDir(args)
			if err != nil {
				return err
			}
			return repair(cmd.OutOrStdout(), f, dir, rebuild)
		},
	}
	f = formFlag(cmd)
	cmd.Flags().BoolVar(&rebuild, "facts-from-journal", false, "derive the facts from the journal")
	cmd.Flags().BoolVar(&forget, "start-as-new", false, "begin without facts")
	return cmd
}

func repair(out io.Writer, f *form, dir string, rebuild bool) error {
	var found store.Rebuilt
	var err error
	if rebuild {
		found, err = store.RebuildFacts(dir, version(), agent.NewMachine)
	} else {
		found, err = store.StartAsNew(dir, time.Now())
	}
	if err != nil {
		return err
	}
	return f.print(out, repaired{
		Facts: found.Facts, Inexact: found.Inexact, Aside: found.Aside,
		NextStart: found.Incarnation + 1,
	}, func() error { return explainRepair(out, found) })
}

// repaired tells programs what a repair has found and made.
type repaired struct {
	Facts     map[string]int    `json:"facts"`             // by machine
	Inexact   map[string]string `json:"inexact,omitempty"` // why the last ones may be missing
	Aside     string            `json:"aside,omitempty"`   // where the file that was there is now
	NextStart uint64            `json:"next_start"`        // the number of the next run
}

func explainRepair(out io.Writer, found store.Rebuilt) error {
	for _, machine := range slices.Sorted(maps.Keys(found.Facts)) {
		fmt.Fprintf(out, "%s machine: %d facts\n", machine, found.Facts[machine])
		if why := found.Inexact[machine]; why != "" {
			fmt.Fprintf(out, "  those of the last moments may be missing: %s\n", why)
		}
	}
	if found.Aside != "" {
		fmt.Fprintf(out, "the file that was there is now %s\n", found.Aside)
	}
	_, err := fmt.Fprintf(out, "the next start is number %d; start it with siteagent run\n",
		found.Incarnation+1)
	return err
}
