package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
)

func initCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "Make this site's identity and configuration", Args: noArgs,
		Long: `Make this site's identity and configuration, keep what is there already, and
print the site's name, by which the others list it under peers.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.loadFile(false) // it is about to be written
			if err != nil {
				return err
			}
			return initialise(cmd.OutOrStdout(), cmd.ErrOrStderr(), c, o.file)
		},
	}
}

func initialise(out, notes io.Writer, c config.Agent, file string) error {
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	identity, err := p2p.LoadIdentity(filepath.Join(c.StateDir, "identity.key"))
	if err != nil {
		return err
	}
	if file == "" {
		file = config.AgentFile(os.LookupEnv)
	}
	if _, err := os.Stat(file); os.IsNotExist(err) {
		if err := writeConfig(file, c); err != nil {
			return err
		}
		fmt.Fprintf(notes, "wrote %s\n", file)
	} else {
		fmt.Fprintf(notes, "kept %s\n", file)
	}
	fmt.Fprintf(notes, "state in %s; start the site with: siteagent run\n", c.StateDir)
	fmt.Fprintln(out, identity.Site())
	return nil
}

func writeConfig(file string, c config.Agent) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the configuration's directory: %w", err)
	}
	if err := os.WriteFile(file, c.File(), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}
