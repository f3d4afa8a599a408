package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/mrsmesh/mrsmesh/internal/jobmap"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const mapLong = `Run a command once for each argument, each time as a task of its own on some site,
as GNU parallel does on one machine. Arguments stand behind :::, or a line each in a
file behind :::: (- is standard input), or on standard input when neither is given.

In the command these stand for the argument, quoted for sh; without any of them the
argument is added at the end:
  {}    the argument                 dir/pic.jpg
  {.}   without its extension        dir/pic
  {/}   without its directory        pic.jpg
  {//}  its directory                dir
  {/.}  neither                      pic
  {#}   the number of the task, from 1

The words of the command are joined by spaces and run by sh; a command that sh has to
see as it is, with pipes or quotes, is written as one word. Sites run commands only
where their owner allows it. With --wasm, what stands there are a module's arguments.

An argument that names a file or a directory here is sent along under that name, and so
is a program such as ./count; other files are sent with --input. What is sent is
read-only there. --return PATTERN has a file that the command makes come back, to the
same name here.

What each task prints is shown when it has ended, or with --results DIR written to
DIR/NUMBER/stdout, stderr and exit. A file is written as a whole or not at all.

Flags stand before the command; or behind it, if it is one word with spaces. The exit
code is 0 if every task has ended well, else that of the lowest task that failed. An
interrupt detaches: the tasks go on, and submit map --resume ID follows them again.`

const mapExample = `  submit map 'gzip -k {}' --return {}.gz ::: *.txt
  ls *.csv | submit map --input model.json --results out ./fit --model model.json {}
  submit map --wasm count.wasm --runtime 10s -- --file {} :::: list.txt`

// mapFlags are the flags of map.
type mapFlags struct {
	name, wasm, runtime, limit, cpus, memory, disk, retries, maxFailures string

	inputs, returns []string

	noFiles, dryRun, detach, encrypt bool
	follow                           mapping
	resume                           string
}

func (a *app) mapCommand() *cobra.Command {
	var f mapFlags
	cmd := &cobra.Command{
		Use:   "map [flags] COMMAND [ARGS...] [::: ARGUMENTS | :::: FILE]",
		Short: "Run a command for each of many arguments or files, like GNU parallel",
		Long:  mapLong, Example: mapExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.follow.app = a
			if f.resume != "" {
				return a.resumeMap(cmd.Context(), &f, args)
			}
			order, err := a.orderOf(cmd.Flags(), &f, args)
			if err != nil {
				return err
			}
			return a.runMap(cmd.Context(), &f, order)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&f.wasm, "wasm", "", "module to run instead of a command")
	flags.StringArrayVarP(&f.inputs, "input", "i", nil,
		"file or directory that is sent to every task")
	flags.StringArrayVar(&f.returns, "return", nil,
		"file that a task makes and that comes back, such as {}.gz")
	flags.BoolVar(&f.noFiles, "no-files", false, "send no files that arguments or the command name")
	flags.StringVar(&f.follow.results, "results", "",
		"directory for what tasks print, instead of the terminal")
	flags.BoolVarP(&f.follow.keepOrder, "keep-order", "k", false,
		"show what tasks print in the order of the arguments")
	flags.StringVar(&f.follow.joblog, "joblog", "",
		"file for a line about each task that has ended, as of GNU parallel")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the commands and submit nothing")
	flags.BoolVarP(&f.detach, "detach", "d", false, "do not wait for the end")
	flags.StringVar(&f.resume, "resume", "",
		"follow this job again and write what is not written yet")
	f.registerNeeds(flags)
	flags.VarP(noJobs{}, "jobs", "j", "")
	_ = flags.MarkHidden("jobs") // it fails for flags alone that do not exist
	return cmd
}

// noJobs refuses GNU parallel's -j with the reason.
type noJobs struct{}

// String is the default.
func (noJobs) String() string { return "" }

// Type is the kind of value, for the help.
func (noJobs) Type() string { return "number" }

// Set refuses any value.
func (noJobs) Set(string) error {
	return errors.New("as many tasks run at a time as the sites have place for; leave it out, " +
		"and give with --cpus and --memory what one task needs")
}

// registerNeeds adds the flags that are those of run.
func (f *mapFlags) registerNeeds(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "name", "", "name for people")
	flags.StringVar(&f.runtime, "runtime", "", "estimate of a task's running time, such as 10m")
	flags.StringVar(&f.limit, "limit", "", "stop a task after this long")
	flags.StringVar(&f.cpus, "cpus", "", "cores of a task, 0.5 is half of one (default 1)")
	flags.StringVar(&f.memory, "memory", "", "memory of a task, such as 512MiB (default 128MiB)")
	flags.StringVar(&f.disk, "disk", "", "scratch space of a task (default 64MiB)")
	encryptFlag(flags, &f.encrypt)
	flags.StringVar(&f.retries, "retries", "",
		"how often a task that fails by itself runs again, elsewhere where it can")
	flags.StringVar(&f.maxFailures, "max-failures", "",
		"stop the job when so many of its tasks have failed")
}

// orderOf reads the words of the command line, and the list of arguments where it is a file.
func (a *app) orderOf(flags *pflag.FlagSet, f *mapFlags, args []string) (jobmap.Order, error) {
	line, err := jobmap.Split(args)
	if err != nil {
		return jobmap.Order{}, usage("%w", err)
	}
	words := line.Words
	if f.wasm == "" && len(words) > 1 && strings.ContainsAny(words[0], " \t\n") {
		if words, err = a.flagsBehind(flags, words); err != nil {
			return jobmap.Order{}, err
		}
	}
	arguments := line.Arguments
	if !line.Given {
		if arguments, err = a.readArguments(line.File); err != nil {
			return jobmap.Order{}, err
		}
	}
	return jobmap.Order{
		Words: words, Wasm: f.wasm, Arguments: arguments, Returns: f.returns, Inputs: f.inputs,
		NoFiles: f.noFiles,
	}, nil
}

// flagsBehind reads flags behind a command that is one word, and gives the words that are left.
func (a *app) flagsBehind(flags *pflag.FlagSet, words []string) ([]string, error) {
	if err := flags.Parse(words[1:]); err != nil {
		return nil, usage("%w; what stands behind a command in one word are flags of submit map: "+
			"write the whole command as one word", err)
	}
	a.client.Close() // the flags may name another agent
	return append(words[:1:1], flags.Args()...), a.configure(flags)
}

func (a *app) readArguments(name string) ([]string, error) {
	from := a.in
	switch file, ok := a.in.(*os.File); {
	case name != "" && name != "-":
		list, err := os.Open(filepath.Clean(name))
		if err != nil {
			return nil, usage(":::: %w", err)
		}
		defer func() { _ = list.Close() }() // only read from
		from = list
	case ok && term.IsTerminal(int(file.Fd())):
		a.say("reading arguments from the terminal, one a line; ^D ends them")
	}
	arguments, err := jobmap.ReadArguments(from)
	if err != nil {
		return nil, usage("%w", err)
	}
	return arguments, nil
}

// document is the job file of a map.
func (f *mapFlags) document(m *jobmap.Map) map[string]any {
	doc, resources := m.Document(), map[string]any{}
	writeGiven([]given{
		{doc, "name", f.name},
		{doc, "runtime", f.runtime},
		{doc, "limit", f.limit},
		{doc, "retries", f.retries},
		{doc, "max-failures", f.maxFailures},
		{resources, "cpus", f.cpus},
		{resources, "memory", f.memory},
		{resources, "disk", f.disk},
	})
	doc["resources"] = resources
	if f.encrypt {
		doc["encrypt"] = "true"
	}
	return doc
}

// printCommands prints a command a line, for --dry-run.
func (a *app) printCommands(commands []string) error {
	for _, command := range commands {
		if _, err := io.WriteString(a.out, command+"\n"); err != nil {
			return wrapOutput(err)
		}
	}
	return nil
}

// again is the command line that follows a map again as it is followed now.
func (m *mapping) again(id grid.JobID) string {
	text := "submit map"
	if m.results != "" {
		text += " --results " + m.results
	}
	if m.joblog != "" {
		text += " --joblog " + m.joblog
	}
	if m.keepOrder {
		text += " -k"
	}
	return text + " --resume " + string(id)
}
