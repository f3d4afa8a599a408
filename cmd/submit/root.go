package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mrsmesh/mrsmesh/cmd/internal/manual"
	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// app is one run of the command.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	now      func() time.Time
	terminal bool       // standard error is a terminal
	width    func() int // its columns; nil or 0 = unknown
	color    bool
	config   config.Submit
	client   *client.Client
	parsable bool

	allowOutside bool // inputs may lie outside of the job file's folder
}

// say prints a line for people.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.err, format+"\n", args...) // nothing is left to tell it to
}

const longHelp = `submit hands jobs to the mesh through the agent on this machine.

Every site works out for itself how well it fits a job and answers with its
distance; the nearest gets it. When a site dies, its jobs go on elsewhere.

Exit codes until a job has started:
  0 ok   1 other error   2 usage or invalid job file   3 no such job
  4 no site can run this   5 agent unreachable   6 denied   124 wait timed out
Afterwards (run, job --wait, wait): the job's own code, 128+n for a signal, 125
for a failure that is not the job's. An array's code is that of its lowest
failing task. An interrupt detaches (130) and the job goes on.

Settings: flag, then MRS_ADDR, MRS_TOKEN, MRS_DOMAIN, MRS_OUTPUT, then
$XDG_CONFIG_HOME/mrs/submit.yaml, then the default.`

const rootExamples = `  submit run --wasm pi.wasm -- --digits 1000
  submit run --wasm census.wasm -i ./src:/in --out /out/report.json:report.json
  submit map 'gzip -k {}' --return {}.gz ::: *.txt
  submit job pi.yaml --wait
  submit plan pi.yaml
  submit reserve --at 14:00 --for 2h --cpus 4
  submit why mfrg
  submit describe mfrg -o json | submit job - --parsable`

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "submit", Short: "Submit jobs to the mesh and watch them", Long: longHelp,
		Example:       rootExamples,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown verb %q; `submit --help` lists them", args[0])
			}
			return cmd.Help()
		},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.configure(cmd.Flags()) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &codeError{code: exitUsage, cause: err}
	})
	flags := root.PersistentFlags()
	for _, key := range config.SubmitKeys(a.env) {
		switch key.Name {
		case "output":
			flags.StringP(key.Flag, "o", key.Default, key.Help)
		case "token", "runtime": // not on a command line that others can read; a job's own
		default:
			flags.String(key.Flag, key.Default, key.Help)
		}
	}
	flags.BoolVar(&a.parsable, "parsable", false, "print bare ids and nothing else on standard output")
	root.AddCommand(
		a.runCommand(), a.jobCommand(), a.planCommand(), a.statusCommand(), a.listCommand(),
		a.topCommand(),
		a.mapCommand(), a.sbatchCommand(), a.describeCommand(),
		a.getCommand(), a.logsCommand(), a.waitCommand(), a.cancelCommand(), a.forgetCommand(),
		a.migrateCommand(),
		a.whyCommand(), a.sitesCommand(), a.domainsCommand(),
		a.reserveCommand(), a.reservationsCommand(), a.holdCommand(), a.releaseCommand(),
		a.signCommand(), a.verifyCommand(),
		a.eventsCommand(), a.recoverCommand(), a.versionCommand(),
	)
	root.AddCommand(manual.Commands()...)
	return root
}

// exactly is cobra.ExactArgs with our exit code.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("want %s, have %d arguments", what, len(args))
		}
		return nil
	}
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("want %s, have %d arguments", what, len(args))
		}
		return nil
	}
}

// configure reads the settings and makes the client; it does not connect.
func (a *app) configure(flags *pflag.FlagSet) error {
	set := map[string]string{}
	for _, key := range config.SubmitKeys(a.env) {
		if flag := flags.Lookup(key.Flag); flag != nil && flag.Changed && key.Name != "runtime" &&
			flag.Annotations[ofSbatch] == nil {
			set[key.Flag] = flag.Value.String()
		}
	}
	c, err := config.LoadSubmit(config.Sources{File: config.SubmitFile(a.env), Env: a.env, Flags: set})
	if err != nil {
		return &codeError{code: exitUsage, cause: err}
	}
	if strings.HasPrefix(c.Addr, "http://") && c.Token == "" {
		if data, wrong := os.ReadFile(config.StateTokenPath(a.env)); wrong == nil {
			c.Token = config.Secret(strings.TrimSpace(string(data)))
		}
	}
	a.config = c
	a.client, err = client.New(c.Addr, string(c.Token))
	if err != nil {
		return &codeError{code: exitUsage, cause: err}
	}
	return nil
}

// checkDomain refuses to hand a job to an agent of another domain than the one
// that was asked for.
func (a *app) checkDomain(ctx context.Context) error {
	if a.config.Domain == "" {
		return nil
	}
	status, err := a.client.Status(ctx)
	if err != nil {
		return err
	}
	if string(status.Domain) != a.config.Domain {
		return fmt.Errorf("%w: the agent is of domain %s, not %s; name another agent with --addr",
			view.ErrDenied, status.Domain, a.config.Domain)
	}
	return nil
}
