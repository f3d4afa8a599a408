package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	unknown = "unknown"
	percent = 100
)

// line is a row of the status: its name and its text.
type line [2]string

// printAll prints everything that the agent knows of itself.
func printAll(out io.Writer, s view.AgentStatus, now time.Time) error {
	g := givenOf(s)
	lines := append(summary(s, now), []line{
		{"id", string(s.Site)},
		{
			"members",
			fmt.Sprintf(
				"%d, %d banned, %s", s.Members, s.Banned,
				plural(s.OpenInvites, "invitation open", "invitations open"),
			),
		},
		{"reach", reachOf(s.Reach)},
		{"disk", g.disk},
		{"computation", g.computation},
		{"bandwidth", g.bandwidth},
		{
			"data",
			fmt.Sprintf("%s of %s", grid.FormatBytes(s.DataUsedBytes), grid.FormatBytes(s.DataQuotaBytes)),
		},
	}...)
	lines = append(lines, machineLines(s.Machine)...)
	lines = append(lines, rankLines(s.Reference)...)
	lines = append(lines, ownerLines(s.Owner)...)
	for _, wall := range s.Walls {
		lines = append(lines, line{"limit", wallText(wall)})
	}
	lines = append(lines, availabilityLines(s.Availability)...)
	for _, r := range s.Running {
		lines = append(lines, line{"job", fmt.Sprintf("%s %s, for %s", r.Task, r.Phase, r.SubmitterName)})
	}
	lines = append(lines, planLines(s.Plan, now)...)
	for _, f := range s.Faults {
		lines = append(lines, line{"failed us", faultText(f, now)})
	}
	for _, n := range s.Notices {
		lines = append(lines, line{"notice", noticeText(n)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
		lines = append(
			lines,
			line{"counted", fmt.Sprintf("%s %d", strings.ReplaceAll(name, "_", " "), s.Counters[name])},
		)
	}
	return printLines(out, lines)
}

// faultText says how often a site has failed this submitter's tasks, and what others say of it.
func faultText(f view.FaultRow, now time.Time) string {
	name := f.Name
	if name == "" {
		name = string(f.Site)
	}
	return fmt.Sprintf("%s: %s; fault index %d", name, f.Text(now), f.Index)
}

// availabilityLines say how likely the machine is to leave within an hour and within
// eight, and how well founded that is.
func availabilityLines(a *view.Availability) []line {
	if a == nil {
		return nil
	}
	var lines []line
	for _, o := range a.Outlook {
		lines = append(lines, line{"likely to leave", fmt.Sprintf("within %.0f h: %s (%s to %s, %s)",
			o.Hours, share(o.Z), share(o.Low), share(o.High), o.Sure)})
	}
	var text strings.Builder
	fmt.Fprintf(&text, "up for %.1f days in %s, %s, left %s", a.Days,
		plural(a.Runs, "start", "starts"),
		plural(a.Crashes, "crash", "crashes"), plural(a.Departures, "time", "times"))
	for _, c := range []struct {
		n    int
		what string
	}{
		{a.Suspends, "suspends"},
		{a.ClockJumps, "clock jumps"},
		{a.WrongClocks, "starts with a wrong clock"},
		{a.Damaged, "damaged lines left out"},
		{a.Unwritten, "entries not written"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&text, ", %d %s", c.n, c.what)
		}
	}
	return append(lines, line{"history", text.String()})
}

// reachOf says in a line how this site and the others reach each other.
func reachOf(r view.Reach) string {
	text := r.Reachability + "; " + plural(r.Direct, "site", "sites") + " directly, " +
		fmt.Sprint(r.Relayed) + " through a relay"
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

// ownerLines say how the site yields to its owner.
func ownerLines(o *view.OwnerView) []line {
	if o == nil {
		return nil
	}
	lines := []line{{"owner", o.How}}
	if o.Hours != "" {
		lines = append(lines, line{"owner", "shared " + o.Hours})
	}
	if o.OtherCores != nil && o.JobCores != nil {
		lines = append(lines, line{"owner", fmt.Sprintf("others use %.1f cores, the agent and its "+
			"jobs %.1f; watching takes %.3f %% of a core",
			*o.OtherCores, *o.JobCores, o.CostPercent)})
	}
	return lines
}

// wallText says how a limit is enforced, and whether its self-test passed.
func wallText(w view.Wall) string {
	text := w.Ceiling + ": " + w.How
	if w.Kind != "" {
		text = w.Kind + " " + text
	}
	switch {
	case w.Tried && w.Fault == "":
		return text + "; self-test passed: " + w.Seen
	case w.Tried:
		return text + "; SELF-TEST FAILED: " + w.Fault
	case w.Fault != "":
		return text + "; " + w.Fault
	default:
		return text
	}
}

// given says how much of what the owner gives is in use, and what other programs
// leave of it where that is less.
type given struct{ cores, memory, disk, computation, bandwidth string }

func givenOf(s view.AgentStatus) given {
	left := s.Ceilings
	if s.Left != nil {
		left = *s.Left
	}
	text := func(used, given, left string) string {
		out := used + " of " + given + " in use"
		if left != given {
			out += "; other programs leave " + left
		}
		return out
	}
	bytes := grid.FormatBytes
	g := given{
		cores: text(cores(s.InUse.MilliCPUs), cores(s.Ceilings.MilliCPUs), cores(left.MilliCPUs)),
		memory: text(
			bytes(s.InUse.MemoryBytes), bytes(s.Ceilings.MemoryBytes), bytes(left.MemoryBytes),
		),
		disk:        text(bytes(s.InUse.DiskBytes), bytes(s.Ceilings.DiskBytes), bytes(left.DiskBytes)),
		computation: unknown + ": jobs that ask for GFLOPS are refused until it is measured",
		bandwidth:   unknown + ": jobs that ask for bandwidth are refused",
	}
	if s.Ceilings.MFLOPS > 0 {
		g.computation = text(gflops(s.InUse.MFLOPS), gflops(s.Ceilings.MFLOPS), gflops(left.MFLOPS)) +
			" (GFLOPS)"
	}
	if s.Ceilings.NetBps > 0 {
		g.bandwidth = text(bitRate(s.InUse.NetBps), bitRate(s.Ceilings.NetBps), bitRate(left.NetBps))
	}
	return g
}

func cores(milli int64) string   { return fmt.Sprintf("%.1f", float64(milli)/1000) }
func gflops(mflops int64) string { return fmt.Sprintf("%.1f", float64(mflops)/1000) }

// machineLines say what was found out about the machine, each quantity that was
// not by name.
func machineLines(m *view.MachineView) []line {
	if m == nil {
		return nil
	}
	model := m.CPUModel
	if model == "" {
		model = "processor " + unknown
	}
	lines := []line{
		{"machine", fmt.Sprintf("%d cores, %s, %s/%s", m.Cores, model, m.OS, m.Arch)},
		{"machine", fmt.Sprintf("memory %s, free %s; disk %s, free %s",
			known(m.MemoryBytes, grid.FormatBytes), known(m.FreeMemoryBytes, grid.FormatBytes),
			known(m.DiskBytes, grid.FormatBytes), known(m.FreeDiskBytes, grid.FormatBytes))},
		{"machine", fmt.Sprintf("a core does %s GFLOPS, now %s; the disk's rate is %s",
			known(m.CoreMFLOPS, gflops), known(m.CoreMFLOPSNow, gflops), known(m.DiskBps, bitRate))},
		{"machine", fmt.Sprintf("others use %s cores, of which stolen by the host %s",
			known(m.OtherCores, oneDigit), known(m.StolenCores, oneDigit))},
		{"machine", fmt.Sprintf("others wait for a processor %s, for memory %s, for a disk %s of the "+
			"time",
			known(m.CPUPressure, share), known(m.MemoryPressure, share), known(m.IOPressure, share))},
	}
	if m.Pending != "" {
		lines = append(lines, line{"measuring", m.Pending})
	}
	return lines
}

// known is the value as text, or the word for one that nobody knows.
func known[T any](v *T, text func(T) string) string {
	if v == nil {
		return unknown
	}
	return text(*v)
}

func oneDigit(v float64) string { return fmt.Sprintf("%.1f", v) }
func share(v float64) string    { return fmt.Sprintf("%.0f %%", percent*v) }

func bitRate(bps int64) string {
	const giga, mega = 1e9, 1e6
	if bps >= giga {
		return fmt.Sprintf("%.1f Gbit/s", float64(bps)/giga)
	}
	return fmt.Sprintf("%.1f Mbit/s", float64(bps)/mega)
}

// rankLines say how near the site is to a job that is the same for all sites, so that
// owners can compare.
func rankLines(s *view.Standing) []line {
	if s == nil {
		return nil
	}
	lines := []line{{"compared by", s.Job}}
	if s.Refusal != "" {
		return append(lines, line{"  its answer", "refused: " + s.Refusal})
	}
	number := func(v *float64) string {
		return known(
			v, func(v float64) string { return fmt.Sprintf("%.4f", v) },
		)
	}
	seconds := func(v *float64) string {
		return known(
			v, func(v float64) string { return fmt.Sprintf("%.1f s", v) },
		)
	}
	return append(lines,
		line{"  its answer", fmt.Sprintf("distance %s, of which computation %s, data %s, likely to "+
			"leave %s",
			number(s.Distance), number(s.X), number(s.Y), number(s.Z))},
		line{"  its answer", fmt.Sprintf("it would wait %s, fetch data for %s and run for %s",
			seconds(s.WaitSeconds), seconds(s.StageInSeconds), seconds(s.RunSeconds))})
}
