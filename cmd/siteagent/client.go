package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// dial connects to the agent of this configuration.
func (o *options) dial() (*client.Client, error) {
	src := o.readable()
	if _, err := os.Stat(src.File); src.Required && err != nil {
		return nil, usageError{fmt.Errorf("read configuration: %w", err)}
	}
	return connect(src)
}

// connect is dial by a configuration that may not be there yet.
func connect(src config.Sources) (*client.Client, error) {
	socket := config.AgentSocket(src) // also of a file with a mistake: the agent runs all the same
	if socket == "off" {
		return nil, usageError{errors.New("api.socket is off; these commands need the agent's socket")}
	}
	return client.New("unix:"+socket, "")
}

// plain is an error in a sentence for the owner, without the steps that led to it, where
// there is one.
func plain(err error) error {
	if taken, is := errors.AsType[p2p.PortTakenError](err); is {
		return taken
	}
	unreachable := errors.Is(err, client.ErrUnreachable)
	if unreachable && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)) {
		return errors.New("the agent does not run; start it with: siteagent run")
	}
	return err
}

// whyDown is why the agent does not answer, where it has left word of that.
func (o *options) whyDown(err error) error {
	c, unread := o.load()
	if unread != nil || !errors.Is(err, client.ErrUnreachable) {
		return err
	}
	if newer, is, _ := store.Superseded(c.StateDir); is {
		return newer.Explain(c.StateDir)
	}
	return err
}

// order is a command that tells the agent something and prints a line, or the state then as JSON.
func order(
	o *options, use, short, long string,
	do func(context.Context, *client.Client, []string) (string, view.AgentStatus, error),
) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			said, now, err := do(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), said)
			return f.print(cmd.OutOrStdout(), now, nil)
		},
	}
	f = formFlag(cmd)
	return cmd
}
