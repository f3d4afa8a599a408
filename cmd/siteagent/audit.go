package main

import (
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/audit"
)

func auditCommand(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: "audit [STATE...]", Short: "Count lost, doubled and late tasks from agents' journals",
		Long: `Read the journals and run records in the state directories of agents on this
machine, and count tasks that were lost, attempts of one task that ran at the same
time, open tasks that nothing happens with, results that are gone, and promises that
were silently missed. Name the directories of all agents that took part.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				dir, err := o.stateDir(nil)
				if err != nil {
					return err
				}
				args = []string{dir}
			}
			return auditAll(cmd.OutOrStdout(), f, args)
		},
	}
	f = formFlag(cmd)
	return cmd
}

func auditAll(out io.Writer, f *form, dirs []string) error {
	var sources []audit.Source
	for _, dir := range dirs {
		name := filepath.Base(dir)
		namesake := func(o string) bool { return o != dir && filepath.Base(o) == name }
		if slices.ContainsFunc(dirs, namesake) {
			name = dir // what moved from one to the other has moved
		}
		sources = append(sources, audit.Source{
			Site: name, StateDir: dir, RunRecord: filepath.Join(dir, agent.RecordFile),
		})
	}
	records, err := audit.Collect(sources)
	if err != nil {
		return err
	}
	report := audit.Audit(records)
	if err := f.print(out, report, func() error { return report.Write(out) }); err != nil {
		return err
	}
	if !report.Clean() {
		return errDiffers
	}
	return nil
}
