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
	hold, encrypt := false, false
	cmd := &cobra.Command{
		Use: "job FILE",
		Short: "Submit a job file, a flow of several jobs or a TES task (YAML or JSON; - reads " +
			"standard input)",
		Long: `Submit a job file. Its inputs are uploaded to the local agent first; the job's
id is printed. With --wait the command ends with the job and writes its outputs
beside the job file.

A file whose key jobs holds several named jobs is a flow. A job says after which
others it runs, and which of their outputs it needs:

  jobs:
    split:
      command: [split, -n, l/2, /in/text, /out/part.]
      inputs:  [{path: /in/text, from: text.txt}]
      outputs: [{path: /out, to: parts}]
    count:
      command: [sh, -c, cat /in/parts/* | wc -w > /out/n]
      inputs:  [{path: /in/parts, from: {job: split, output: /out}}]
      outputs: [{path: /out/n, to: words.txt}]

All of it is checked before anything starts. The agent hands the outputs on, so
that it goes on without this command.

A JSON file whose key executors holds programs is a task of GA4GH TES; the agent
reads its inputs and writes its outputs itself (docs/tes.md).`,
		Example: "  submit job pi.yaml\n  submit job pi.yaml --wait\n" +
			"  submit job flow.yaml --wait\n  submit job task.json --wait\n" +
			"  submit describe mfrg -o json | submit job - --parsable",
		Args: exactly(1, "one job file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := a.readFile(args[0])
			if err != nil {
				return err
			}
			follow.folder = source.folder
			if jobfile.IsFlow(source.data) {
				if follow.noWait || hold || encrypt {
					return usage("--no-wait, --hold, --encrypt: they are about one job; " +
						"write hold: true or encrypt: true into the flow")
				}
				return a.submitFlow(cmd.Context(), source, follow)
			}
			if jobfile.IsTES(source.data) {
				if follow.noWait || hold || encrypt {
					return usage("--no-wait, --hold, --encrypt: a task of GA4GH TES has none of " +
						"them; write a job file")
				}
				return a.submitTES(cmd.Context(), source, follow)
			}
			options := a.readingOf(source)
			options.Encrypt = encrypt
			plan, err := jobfile.Load(source.data, source.folder, options)
			if err != nil {
				return err
			}
			plan.File.Held = plan.File.Held || hold
			return a.submit(cmd.Context(), plan, follow)
		},
	}
	cmd.Flags().BoolVar(&hold, "hold", false, "place it only when submit release lets it go")
	encryptFlag(cmd.Flags(), &encrypt)
	cmd.Flags().BoolVarP(&follow.wait, "wait", "w", false, "wait for the end and write the outputs")
	follow.flags(cmd)
	a.outsideFlag(cmd)
	return cmd
}

// outsideFlag is for commands that read the inputs of a job file.
func (a *app) outsideFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.allowOutside, "allow-outside", false,
		"upload also inputs that lie outside of the job file's folder")
}

// jobText is a job file as it was read.
type jobText struct {
	data   []byte
	folder string
	shown  string // its name, for messages
}

// readFile reads a job file.
func (a *app) readFile(name string) (jobText, error) {
	const maxJobFile = 64<<20 + 1 // jobfile refuses what is longer
	text := jobText{folder: filepath.Dir(name), shown: filepath.Base(name)}
	source := a.in
	if name == "-" {
		text.folder, text.shown = ".", "standard input"
	} else {
		file, err := os.Open(filepath.Clean(name))
		if err != nil {
			return text, usage("read job file: %w", err)
		}
		defer func() { _ = file.Close() }() // only read from
		source = file
	}
	var err error
	text.data, err = io.ReadAll(io.LimitReader(source, maxJobFile))
	if err != nil {
		return text, usage("read job file: %w", err)
	}
	return text, nil
}

func (a *app) readingOf(text jobText) jobfile.Options {
	return jobfile.Options{
		Name: text.shown, Now: a.now(), Runtime: a.config.Runtime, AllowOutside: a.allowOutside,
	}
}

// loadFile reads the file of one job and gives its folder.
func (a *app) loadFile(name string) (*jobfile.Plan, string, error) {
	text, err := a.readFile(name)
	if err != nil {
		return nil, "", err
	}
	switch {
	case jobfile.IsFlow(text.data):
		return nil, "", usage("%s is a flow of several jobs; name a file of one", text.shown)
	case jobfile.IsTES(text.data):
		return nil, "", usage("%s is a task of GA4GH TES; name a job file", text.shown)
	}
	plan, err := jobfile.Load(text.data, text.folder, a.readingOf(text))
	return plan, text.folder, err
}
