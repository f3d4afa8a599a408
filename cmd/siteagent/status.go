package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

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
	row("reach", "%s", reachOf(s.Reach))
	row("members", "%d, %d banned, %d invitations open", s.Members, s.Banned, s.OpenInvites)
	row("state", "%s", stateOf(s))
	for _, line := range append(givenLines(s), machineLines(s.Machine)...) {
		row(line[0], "%s", line[1])
	}
	for _, line := range referenceLines(s.Reference) {
		row("reference", "%s", line)
	}
	row("data", "%s of %s", grid.FormatBytes(s.DataUsedBytes), grid.FormatBytes(s.DataQuotaBytes))
	for _, line := range ownerLines(s.Owner) {
		row("owner", "%s", line)
	}
	for _, wall := range s.Walls {
		row("ceiling", "%s", wallText(wall))
	}
	availabilityRows(row, s.Availability)
	for _, r := range s.Running {
		row("job", "%s %s for %s", r.Task, r.Phase, r.SubmitterName)
	}
	for _, line := range planLines(s.Plan, time.Now()) {
		row(line[0], "%s", line[1])
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

// availabilityRows says what the site's z is for jobs of an hour and of eight, and how
// well founded that is.
func availabilityRows(row func(name, format string, args ...any), a *view.Availability) {
	if a == nil {
		return
	}
	for _, o := range a.Outlook {
		row(fmt.Sprintf("z for %.0f h", o.Hours), "%.3f (%.3f to %.3f, %s)", o.Z, o.Low, o.High, o.Sure)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%.1f days available, %d crashes, %d departures in %d runs", a.Days, a.Crashes, a.Departures, a.Runs)
	for _, c := range []struct {
		n    int
		what string
	}{
		{a.Suspends, "suspends"},
		{a.ClockJumps, "clock jumps"},
		{a.WrongClocks, "runs with a wrong clock"},
		{a.Damaged, "damaged lines left out"},
		{a.Unwritten, "entries not written"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&text, ", %d %s", c.n, c.what)
		}
	}
	if a.OwnerBusy {
		text.WriteString("; the owner wants the machine now")
	}
	row("learned from", "%s", text.String())
}

// reachOf says in a line how this site and the others reach each other.
func reachOf(r view.Reach) string {
	text := r.Reachability + fmt.Sprintf("; %d sites directly, %d through a relay", r.Direct, r.Relayed)
	if r.Serving {
		text += "; relays for members"
	}
	if len(r.Relays) > 0 {
		var ids []string
		for _, id := range r.Relays {
			ids = append(ids, string(id))
		}
		text += "; reached through " + strings.Join(ids, " and ")
	}
	return text
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
