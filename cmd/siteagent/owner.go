package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
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

// dial connects to the agent of this configuration.
func (o *options) dial() (*client.Client, error) {
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	if c.API.Socket == "off" {
		return nil, usageError{fmt.Errorf("api.socket is off; these commands talk to the agent through its socket")}
	}
	return client.New("unix:"+c.API.Socket, "")
}

// order is a command that tells the agent something and prints a line.
func order(o *options, use, short, long string, do func(ctx context.Context, c *client.Client, args []string) (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			said, err := do(cmd.Context(), c, args)
			if err == nil {
				fmt.Fprintln(cmd.ErrOrStderr(), said)
			}
			return err
		},
	}
}

func pauseCommand(o *options) *cobra.Command {
	return order(o, "pause [1h]", "Take no new work", `Take no new work, for a while or until siteagent resume. What runs goes on;
siteagent stop --now moves it.`,
		func(ctx context.Context, c *client.Client, args []string) (string, error) {
			if len(args) == 0 {
				return "paused until: siteagent resume", c.Pause(ctx, 0)
			}
			span, err := time.ParseDuration(args[0])
			if err != nil || span <= 0 {
				return "", usageError{fmt.Errorf("pause: want a time such as 30m or 1h, have %q", args[0])}
			}
			return "paused for " + span.String(), c.Pause(ctx, span)
		})
}

func resumeCommand(o *options) *cobra.Command {
	return order(o, "resume", "Take work again", "Take work again after siteagent pause.",
		func(ctx context.Context, c *client.Client, _ []string) (string, error) {
			return "resumed", c.Resume(ctx)
		})
}

func stopCommand(o *options) *cobra.Command {
	now := false
	cmd := order(o, "stop", "End the agent when its jobs have ended", `End the agent: it takes no new work and ends when what runs has ended. With
--now what runs is stopped and continues on other sites.`,
		func(ctx context.Context, c *client.Client, _ []string) (string, error) {
			return "stopping", c.Stop(ctx, now)
		})
	cmd.Flags().BoolVar(&now, "now", false, "stop what runs; its submitters move it")
	return cmd
}
