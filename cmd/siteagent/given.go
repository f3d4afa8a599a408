package main

import (
	"fmt"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	unknown = "unknown"
	percent = 100
)

// line is a row of the status: its name and its text.
type line [2]string

// givenLines say what the owner gives, how much of it is taken, and what other
// programs leave of it where that is less.
func givenLines(s view.AgentStatus) []line {
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
	computation := unknown + ": jobs that ask for GFLOPS are refused until it is measured"
	if s.Ceilings.MFLOPS > 0 {
		computation = text(gflops(s.InUse.MFLOPS), gflops(s.Ceilings.MFLOPS), gflops(left.MFLOPS)) + " (GFLOPS)"
	}
	bandwidth := unknown + ": jobs that ask for bandwidth are refused"
	if s.Ceilings.NetBps > 0 {
		bandwidth = text(bitRate(s.InUse.NetBps), bitRate(s.Ceilings.NetBps), bitRate(left.NetBps))
	}
	return []line{
		{"cores", text(cores(s.InUse.MilliCPUs), cores(s.Ceilings.MilliCPUs), cores(left.MilliCPUs))},
		{"memory", text(bytes(s.InUse.MemoryBytes), bytes(s.Ceilings.MemoryBytes), bytes(left.MemoryBytes))},
		{"disk", text(bytes(s.InUse.DiskBytes), bytes(s.Ceilings.DiskBytes), bytes(left.DiskBytes))},
		{"computation", computation},
		{"bandwidth", bandwidth},
	}
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
		{"machine", fmt.Sprintf("others wait for a processor %s, for memory %s, for a disk %s of the time",
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

// referenceLines say where the site stands for the reference job.
func referenceLines(s *view.Standing) []string {
	if s == nil {
		return nil
	}
	if s.Refusal != "" {
		return []string{s.Job, "it would be refused: " + s.Refusal}
	}
	number := func(v *float64) string { return known(v, func(v float64) string { return fmt.Sprintf("%.4f", v) }) }
	seconds := func(v *float64) string { return known(v, func(v float64) string { return fmt.Sprintf("%.1f s", v) }) }
	return []string{
		s.Job,
		strings.Join([]string{"x " + number(s.X), "y " + number(s.Y), "z " + number(s.Z), "distance " + number(s.Distance)}, ", "),
		fmt.Sprintf("waits %s, fetches for %s, runs for %s", seconds(s.WaitSeconds), seconds(s.StageInSeconds), seconds(s.RunSeconds)),
	}
}
