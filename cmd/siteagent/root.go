package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/cmd/internal/manual"
	"github.com/mrsmesh/mrsmesh/internal/config"
)

const rootHelp = `siteagent runs one site of a scheduling mesh: no hub, no scheduler, no database.

Your machine offers what you give it, answers announced jobs with how well it
fits them, and runs what it is awarded in a sandbox. You stay in charge:
siteagent pause takes effect immediately, and siteagent stop --now moves running jobs.

First steps:
  siteagent init                 make this site's identity and configuration
  siteagent join TOKEN           join the domain of the site that printed the token
  siteagent run                  run it (^C stops it)
  siteagent invite               print a token with which another site joins this one
  siteagent status               what it gives, runs, has promised and knows
  siteagent given                what it gave, and for whom
  siteagent top                  the same as a screen that stays up to date, with keys
  siteagent open                 the same in a browser
  siteagent leave                take back what join did

  siteagent config show          every setting, and where its value comes from

Every setting can be given as a flag, as a variable MRS_*, or in the
configuration file, in this order of strength: siteagent help settings.`

// options are what every command shares.
type options struct {
	file   string // configuration file
	socket string // of the agent
	cmd    *cobra.Command
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use: "siteagent", Short: "Run one site of the mesh", Long: rootHelp,
		SilenceUsage: true, SilenceErrors: true, Version: version(),
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { o.cmd = cmd },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(
		&o.file, "config", "", "configuration file (default "+config.AgentFile(os.LookupEnv)+")",
	)
	flags.StringVar(&o.socket, "socket", "", "socket of the agent (default as api.socket says)")
	addSettings(flags)
	root.AddCommand(
		configCommand(o), settingsTopic(),
		initCommand(o), runCommand(o), policyCommand(o),
		statusCommand(o), givenCommand(o), topCommand(o), openCommand(o),
		pauseCommand(o), resumeCommand(o), stopCommand(o),
		inviteCommand(o), joinCommand(o), leaveCommand(o),
		membersCommand(o), admitCommand(o), banCommand(o),
		domainCommand(o), domainsCommand(o),
		checkCommand(o), adoptCommand(o),
		replayCommand(o), auditCommand(o), repairCommand(o),
	)
	root.AddCommand(manual.Commands()...)
	return root
}

// load reads the configuration from flags, variables and file; a file that was
// named must exist.
func (o *options) load() (config.Agent, error) { return o.loadFile(o.file != "") }

func (o *options) loadFile(required bool) (config.Agent, error) {
	src := o.sources()
	src.Required = required
	c, err := config.LoadAgent(src)
	if err != nil {
		return c, usageError{err}
	}
	if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		return c, fmt.Errorf("state directory: %w", err)
	}
	return c, nil
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && (args[0] == "true" || args[0] == "false") {
		return usageError{
			fmt.Errorf(
				"%s takes no argument; a flag that is true or false is written --flag=%s", cmd.Name(), args[0],
			),
		}
	}
	if len(args) > 0 {
		return usageError{
			fmt.Errorf("%s takes no argument, have %s", cmd.Name(), strings.Join(args, " ")),
		}
	}
	return nil
}
