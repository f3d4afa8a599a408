package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
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

func statusCommand(o *options) *cobra.Command {
	format := "table"
	cmd := &cobra.Command{
		Use: "status", Short: "Show what this site gives, runs and knows", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			status, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			switch format {
			case "json":
				return json.NewEncoder(cmd.OutOrStdout()).Encode(status)
			case "table":
				return printStatus(cmd.OutOrStdout(), status)
			default:
				return usageError{fmt.Errorf("-o: want table or json, have %q", format)}
			}
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", format, "table or json")
	return cmd
}

func printStatus(out io.Writer, s view.AgentStatus) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("site", "%s (%s)", s.Site, s.Name)
	row("domain", "%s, connected to %d sites", s.Domain, s.Peers)
	row("members", "%d, %d banned, %d invitations open", s.Members, s.Banned, s.OpenInvites)
	row("state", "%s", stateOf(s))
	row("cores", "%.1f of %.1f in use", float64(s.InUse.MilliCPUs)/1000, float64(s.Ceilings.MilliCPUs)/1000)
	row("memory", "%s of %s in use", grid.FormatBytes(s.InUse.MemoryBytes), grid.FormatBytes(s.Ceilings.MemoryBytes))
	row("disk", "%s of %s in use", grid.FormatBytes(s.InUse.DiskBytes), grid.FormatBytes(s.Ceilings.DiskBytes))
	row("computation", "%.1f of %.1f GFLOPS in use", float64(s.InUse.MFLOPS)/1000, float64(s.Ceilings.MFLOPS)/1000)
	row("data", "%s of %s", grid.FormatBytes(s.DataUsedBytes), grid.FormatBytes(s.DataQuotaBytes))
	for _, line := range ownerLines(s.Owner) {
		row("owner", "%s", line)
	}
	for _, wall := range s.Walls {
		row("ceiling", "%s", wallText(wall))
	}
	for _, r := range s.Running {
		row("job", "%s %s for %s", r.Task, r.Phase, r.SubmitterName)
	}
	for _, n := range s.Notices {
		row("notice", "%s", noticeText(n))
	}
	names := make([]string, 0, len(s.Counters))
	for name := range s.Counters {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		row("counted", "%s %d", name, s.Counters[name])
	}
	return w.Flush()
}

// ownerLines say how the site makes way for its owner.
func ownerLines(o *view.OwnerView) []string {
	if o == nil {
		return nil
	}
	lines := []string{o.How}
	if o.Hours != "" {
		lines = append(lines, "shared "+o.Hours)
	}
	if o.OtherCores != nil && o.JobCores != nil {
		lines = append(lines, fmt.Sprintf("others use %.1f cores, the agent and its jobs %.1f; to watch takes %.3f %% of one",
			*o.OtherCores, *o.JobCores, o.CostPercent))
	}
	return lines
}

// wallText is how a ceiling is enforced, and whether that was found to work.
func wallText(w view.Wall) string {
	text := w.Ceiling + ": " + w.How
	if w.Kind != "" {
		text = w.Kind + " " + text
	}
	switch {
	case w.Tried && w.Fault == "":
		return text + "; tried: " + w.Seen
	case w.Tried:
		return text + "; TRIED AND FAILED: " + w.Fault
	case w.Fault != "":
		return text + "; " + w.Fault
	default:
		return text
	}
}

func stateOf(s view.AgentStatus) string {
	switch {
	case s.Stopping:
		return "stopping"
	case s.Paused && s.PausedUntil.IsZero():
		return "paused until siteagent resume"
	case s.Paused:
		return "paused until " + s.PausedUntil.Local().Format(time.DateTime)
	case s.Owner != nil && s.Owner.Busy:
		return "the machine is its owner's: " + s.Owner.Why + "; what runs stands still"
	default:
		return fmt.Sprintf("sharing, %d jobs run here", len(s.Running))
	}
}

// noticeText is a notice in a line, with its cause and what to do if it has them.
func noticeText(n view.Notice) string {
	text := n.Text
	if n.Cause != "" {
		text += ": " + n.Cause
	}
	if n.Action != "" {
		text += "; " + n.Action
	}
	return text
}
