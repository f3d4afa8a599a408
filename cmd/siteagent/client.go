package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
)

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
