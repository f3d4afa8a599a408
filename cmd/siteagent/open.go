package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

func openCommand(o *options) *cobra.Command {
	guest, printOnly, f := false, false, (*form)(nil)
	cmd := &cobra.Command{
		Use: "open", Short: "Look at this site in a browser, and steer it", Args: noArgs,
		Long: `Print a link to the page of this agent, and open it where there is a screen.

The link is good once and for a minute; the browser that opens it stays signed in for
12 hours, as the owner. With --guest it stays for 24 hours and may only look: at the
site, its domain and the names of jobs, not at results, output or settings. A link that
another browser uses again is refused, and the first is signed out. A restart of the
agent signs out all.

The page is served on a loopback address alone: that of api.listen, or a free port that
the agent keeps until it ends. To look from another machine, carry the port there:

  ssh -L PORT:127.0.0.1:PORT THIS-MACHINE

with the PORT of the link, and open the link in the browser there.`,
		Example: "  siteagent open\n  siteagent open --guest --print",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			link, err := c.PageLink(cmd.Context(), guest)
			if err != nil {
				return o.whyDown(err)
			}
			err = f.print(cmd.OutOrStdout(), link, func() error {
				_, failed := fmt.Fprintln(cmd.OutOrStdout(), link.URL)
				return failed
			})
			if err != nil {
				return err
			}
			notes := cmd.ErrOrStderr()
			lasts := time.Duration(link.ExpiresInMS) * time.Millisecond
			fmt.Fprintf(notes, "good once, within %.0f s\n", lasts.Seconds())
			if !printOnly && haveScreen(os.Getenv) && startBrowser(cmd.Context(), link.URL) != nil {
				fmt.Fprintln(notes, "no browser starts from here: open the link yourself")
			}
			if away, port := overSSH(os.Getenv), portOf(link.URL); away && port != "" {
				fmt.Fprintf(notes,
					"from your own machine: ssh -L %s:127.0.0.1:%s HERE\n", port, port)
			}
			return nil
		},
	}
	f = formFlag(cmd)
	cmd.Flags().BoolVar(&guest, "guest", false, "for someone who may look, and change nothing")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the link, open nothing")
	return cmd
}

// haveScreen reports whether this is a session on a screen.
func haveScreen(env func(string) string) bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return !overSSH(env)
	}
	return env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != ""
}

func overSSH(env func(string) string) bool { return env("SSH_CONNECTION") != "" }

func portOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.Port()
}

// startBrowser opens a link as the system opens links, and does not wait for it.
func startBrowser(ctx context.Context, link string) error {
	words := []string{"xdg-open", link}
	switch runtime.GOOS {
	case "darwin":
		words[0] = "open"
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler", link}
	}
	// it goes on when this program has ended
	browser := exec.CommandContext( //nolint:gosec // G204: our own agent's link, and no shell
		context.WithoutCancel(ctx), words[0], words[1:]...)
	if err := browser.Start(); err != nil {
		return fmt.Errorf("start a browser: %w", err)
	}
	return browser.Process.Release()
}
