package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/sbatch"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ofSbatch marks flags that mean what they mean to sbatch, such as -o.
const ofSbatch = "sbatch"

const sbatchLong = `Submit a batch script as sbatch of Slurm does. Its #SBATCH lines count,
and options here come before them. The script runs by the interpreter of its first line, where
owners allow commands, and finds the variables that Slurm sets.

A site shares no disk with you: --send sends files along, --return brings back what
the script makes. What it prints is written to the file of --output with --wait, or
later by submit sbatch --collect ID; without a directory in it the name is one in
--chdir, or in the present directory.

Options that a mesh has nothing for are refused by name; --ignore-unknown passes over
those of the script.`

const sbatchExample = `  submit sbatch job.sh
  submit sbatch --wait -a 0-9 -o out.%a --send data job.sh
  submit sbatch --mem 2G -t 10 --wrap 'hostname; date'
  submit sbatch --collect mfrg`

// batchFlags are the flags of sbatch that are no options of a script.
type batchFlags struct {
	wrap, collect   string
	ignore          bool
	inputs, returns []string
}

func (a *app) sbatchCommand() *cobra.Command {
	var f batchFlags
	cmd := &cobra.Command{
		Use: "sbatch [flags] SCRIPT [ARGS...]", Short: "Submit a batch script of Slurm",
		Long: sbatchLong, Example: sbatchExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.collect != "" {
				id, err := a.findJob(cmd.Context(), f.collect)
				if err != nil {
					return err
				}
				folder := cmp.Or(cmd.Flag("chdir").Value.String(), ".")
				return a.collectBatch(cmd.Context(), id, folder)
			}
			return a.submitBatch(cmd, &f, args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	for _, o := range sbatch.Options() {
		switch {
		case o.Long == "parsable": // of all commands
			continue
		case o.Bare:
			flags.BoolP(o.Long, o.Short, false, o.Help)
		default:
			flags.StringP(o.Long, o.Short, "", o.Help)
		}
		flags.Lookup(o.Long).Annotations = map[string][]string{ofSbatch: {}}
	}
	flags.StringVar(&f.wrap, "wrap", "", "command line that is the script")
	flags.StringVar(&f.collect, "collect", "", "wait for this job and write what it prints")
	flags.BoolVar(&f.ignore, "ignore-unknown", false,
		"pass over options of the script that are unknown")
	flags.StringArrayVar(&f.inputs, "send", nil, "file or directory that is sent along")
	flags.StringArrayVar(&f.returns, "return", nil,
		"file that the script makes and that comes back")
	return cmd
}

// submitBatch submits a script, and waits for it if that is asked for.
func (a *app) submitBatch(cmd *cobra.Command, f *batchFlags, args []string) error {
	text, file, err := a.readBatch(f, args)
	if err != nil {
		return err
	}
	if f.wrap != "" {
		defer func() { _ = os.RemoveAll(filepath.Dir(file)) }() // made for this script alone
	}
	name := "--wrap"
	if f.wrap == "" {
		name = args[0]
	}
	script, problems, err := sbatch.Read(name, text)
	if err != nil {
		return usage("%w", err)
	}
	wrong := a.passOver(problems, f.ignore)
	batch := sbatch.Batch{
		Script: script, File: file, Given: sbatch.Merge(script.Given, givenFlags(cmd.Flags())),
		Inputs: f.inputs, Returns: f.returns, Variable: a.env, Name: "wrap",
	}
	if f.wrap == "" {
		batch.Args, batch.Name = args[1:], filepath.Base(args[0])
	}
	if batch.Folder, err = os.Getwd(); err != nil {
		return fmt.Errorf("find the present directory: %w", err)
	}
	made, err := batch.Job()
	if wrong = errors.Join(wrong, err); wrong != nil {
		return &codeError{code: exitUsage, cause: wrong}
	}
	return a.handBatch(cmd.Context(), batch, made)
}

// handBatch submits what a script asks for.
func (a *app) handBatch(ctx context.Context, batch sbatch.Batch, made *sbatch.Made) error {
	for _, note := range made.Notes {
		a.say("%s", note)
	}
	data, err := json.Marshal(made.Document)
	if err != nil {
		return fmt.Errorf("write the job file: %w", err)
	}
	folder := cmp.Or(batch.Given["chdir"].Value, ".")
	options := a.readingOf(jobText{})
	options.AllowOutside = true // batch scripts name files anywhere, as with Slurm
	plan, err := jobfile.Load(data, folder, options)
	if err != nil {
		return inOptions(err, batch)
	}
	id, _, err := a.hand(ctx, plan)
	if err != nil {
		return err
	}
	line := "Submitted batch job " + string(id)
	if _, given := batch.Given["parsable"]; given || a.parsable {
		line = string(id)
	}
	if _, err := fmt.Fprintln(a.out, line); err != nil {
		return wrapOutput(err)
	}
	if _, wait := batch.Given["wait"]; wait {
		return a.collectBatch(ctx, id, folder)
	}
	return nil
}

// readBatch reads the script and gives where it is. One of --wrap is in a directory of its own.
func (a *app) readBatch(f *batchFlags, args []string) (text, file string, err error) {
	switch {
	case f.wrap != "" && len(args) > 0:
		return "", "", usage("--wrap: it is the script; leave out %s", args[0])
	case f.wrap != "":
		return keepWrap(f.wrap)
	case len(args) == 0:
		return "", "", usage("want a script, or a command with --wrap")
	}
	source, err := os.Open(filepath.Clean(args[0]))
	if err != nil {
		return "", "", usage("read script: %w", err)
	}
	defer func() { _ = source.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(source, sbatch.MaxScript+1))
	if err != nil {
		return "", "", usage("read script: %w", err)
	}
	file, err = filepath.Abs(args[0])
	return string(data), file, err
}

// keepWrap makes a script of a command line, in a directory of its own.
func keepWrap(line string) (text, file string, err error) {
	dir, err := os.MkdirTemp("", "mrs-sbatch")
	if err != nil {
		return "", "", fmt.Errorf("keep the script of --wrap: %w", err)
	}
	file, text = filepath.Join(dir, "script"), "#!/bin/sh\n"+line+"\n"
	if err = os.WriteFile(file, []byte(text), 0o600); err != nil {
		err = fmt.Errorf("keep the script of --wrap: %w", err)
		return "", "", errors.Join(err, os.RemoveAll(dir))
	}
	return text, file, nil
}

// passOver tells of options that are unknown. Unless these are to be passed over, they are errors.
func (a *app) passOver(problems []*sbatch.Problem, ignore bool) error {
	var wrong []error
	for _, p := range problems {
		if p.Unknown && ignore {
			a.say("%s--%s is passed over", p.Where(), p.Name)
			continue
		}
		wrong = append(wrong, p)
	}
	return errors.Join(wrong...)
}

// givenFlags are the options of sbatch on the command line.
func givenFlags(flags *pflag.FlagSet) []sbatch.Given {
	var given []sbatch.Given
	flags.Visit(func(flag *pflag.Flag) {
		if flag.Annotations[ofSbatch] != nil {
			given = append(given, sbatch.Given{Name: flag.Name, Value: flag.Value.String()})
		}
	})
	return given
}

// inOptions says what is wrong with a job file that nobody has written in the words of the script
// and of the command line.
func inOptions(err error, batch sbatch.Batch) error {
	all, ok := errors.AsType[jobfile.Errors](err)
	if !ok {
		return err
	}
	for _, one := range all {
		one.Line = 0
		option, known := batch.Option(one.Field)
		if !known {
			continue
		}
		one.File, one.Line, one.Field = option.File, option.Line, "--"+option.Name
		if option.Name == "send" || option.Name == "input" {
			one.Remedy = "check the name; it is one in --chdir, or in the present directory"
		}
	}
	return err
}

// collectBatch follows a batch job to its end and writes what each task has printed to its file as
// soon as it has ended.
func (a *app) collectBatch(ctx context.Context, id grid.JobID, folder string) error {
	detail, err := a.client.Job(ctx, id)
	if err != nil {
		return err
	}
	c := collector{app: a, folder: folder, written: map[uint32]bool{}}
	c.names.Name, c.names.Array = detail.Spec.Name, len(detail.Spec.Items) > 0
	for _, v := range detail.Spec.Env {
		switch v.Name {
		case sbatch.OutputVar:
			c.names.Output = v.Value
		case sbatch.ErrorVar:
			c.names.Error = v.Value
		}
	}
	if c.names.Output == "" {
		return usage("job %s was not submitted by submit sbatch; "+
			"submit logs shows what it printed", id)
	}
	var last view.JobView
	err = a.watch(ctx, id, func(v view.JobView) (bool, error) {
		last = v
		return v.Phase.Ended(), c.look(ctx, id)
	})
	if err != nil {
		return a.interrupted(ctx, last, id, following{}, err)
	}
	return a.ending(ctx, last)
}

// collector writes the files of a batch job.
type collector struct {
	app     *app
	folder  string
	names   sbatch.Names
	written map[uint32]bool
}

// look writes what tasks have left that have ended since the last look.
func (c *collector) look(ctx context.Context, id grid.JobID) error {
	tasks, err := c.app.client.AllTasks(ctx, id)
	if err != nil {
		return err
	}
	root, err := openFolder(c.folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, t := range tasks {
		if !t.Phase.Ended() || c.written[t.Index] {
			continue
		}
		if err := c.write(ctx, id, t); err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
		for _, out := range t.Outputs {
			if err := c.app.writeOutput(ctx, root, t.ID, out); err != nil {
				return fmt.Errorf("task %s: write %s: %w", t.ID, out.To, err)
			}
		}
		c.written[t.Index] = true
	}
	return nil
}

// write writes what one task has printed. One that never ran has no file.
func (c *collector) write(ctx context.Context, id grid.JobID, t view.TaskView) error {
	if t.Started.IsZero() {
		return nil
	}
	output, failed, err := c.names.Files(string(id), t.Index, t.Item)
	if err != nil {
		return err
	}
	for _, one := range []struct{ stream, file string }{{"stdout", output}, {"stderr", failed}} {
		if one.file == "" || one.file == os.DevNull {
			continue
		}
		if !filepath.IsAbs(one.file) {
			one.file = filepath.Join(c.folder, one.file)
		}
		task := grid.TaskID{Job: id, Index: t.Index}
		if err := c.writeStream(ctx, task, one.stream, one.file); err != nil {
			return err
		}
	}
	return nil
}

// writeStream puts a file in its place when it is whole.
func (c *collector) writeStream(ctx context.Context, task grid.TaskID, stream, file string) error {
	to, err := os.CreateTemp(filepath.Dir(file), ".mrs-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	_, err = c.app.copyPart(ctx, task, view.LogQuery{Stream: stream}, to)
	if err = errors.Join(err, to.Chmod(modeOf(false)), to.Close()); err == nil {
		err = os.Rename(to.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", file, err), os.Remove(to.Name()))
	}
	return nil
}
