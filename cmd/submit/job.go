package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
)

func (a *app) jobCommand() *cobra.Command {
	var follow following
	cmd := &cobra.Command{
		Use: "job FILE", Short: "Submit a job file (YAML or JSON; - reads standard input)",
		Long: `Submit a job file. Its inputs are uploaded to the local agent first; the job's
id is printed. With --wait the command ends with the job and writes its outputs
beside the job file.`,
		Example: "  submit job pi.yaml\n  submit job pi.yaml --wait\n  submit describe mfrg -o json | " +
			"submit job - --parsable",
		Args: exactly(1, "one job file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, folder, err := a.loadFile(args[0])
			if err != nil {
				return err
			}
			follow.folder = folder
			return a.submit(cmd.Context(), plan, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow.wait, "wait", "w", false, "wait for the end and write the outputs")
	follow.flags(cmd)
	return cmd
}

// loadFile reads a job file and gives its folder.
func (a *app) loadFile(name string) (*jobfile.Plan, string, error) {
	const maxJobFile = 64<<20 + 1 // jobfile refuses what is longer
	folder, shown := filepath.Dir(name), filepath.Base(name)
	source := a.in
	if name == "-" {
		folder, shown = ".", "standard input"
	} else {
		file, err := os.Open(filepath.Clean(name))
		if err != nil {
			return nil, "", usage("read job file: %w", err)
		}
		defer func() { _ = file.Close() }() // only read from
		source = file
	}
	data, err := io.ReadAll(io.LimitReader(source, maxJobFile))
	if err != nil {
		return nil, "", usage("read job file: %w", err)
	}
	plan, err := jobfile.Load(data, folder, jobfile.Options{
		Name: shown, Now: a.now(), Runtime: a.config.Runtime,
	})
	return plan, folder, err
}
