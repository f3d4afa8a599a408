package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
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
