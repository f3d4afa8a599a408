package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

func statusCommand(o *options) *cobra.Command {
	all, at, f := false, "", (*form)(nil)
	cmd := &cobra.Command{
		Use: "status", Short: "Show whether this site shares, for whom, and what is wrong", Args: noArgs,
		Long: `Show whether this site shares its machine and if not, why; who uses it; how much of
what you give is in use; when it pauses next; and what is wrong, with what to do.
--all shows everything else that the agent knows: what was measured, how each limit
is enforced, the plan, how likely the machine is to leave, and what was counted.
--at shows another site, whose owner allows that: siteagent top --domain shows all.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			status, err := statusOf(cmd.Context(), c, at)
			if err != nil {
				return o.whyDown(err)
			}
			show := printStatus
			switch {
			case all:
				show = printAll
			case at != "":
				show = printAfar
			}
			return f.print(cmd.OutOrStdout(), status, func() error {
				return show(cmd.OutOrStdout(), status, time.Now())
			})
		},
	}
	atFlag(o, cmd, &at)
	cmd.Flags().BoolVar(&all, "all", false, "show everything that the agent knows")
	f = formFlag(cmd)
	return cmd
}

// printStatus prints what an owner wants to know at a glance.
func printStatus(out io.Writer, s view.AgentStatus, now time.Time) error {
	lines := append(summary(s, now), problemLines(s.Notices)...)
	return printLines(out, append(lines, line{"more", "siteagent status --all"}))
}

func printLines(out io.Writer, lines []line) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%s\n", l[0], l[1])
	}
	return w.Flush()
}

// summary is the short status without its problems.
func summary(s view.AgentStatus, now time.Time) []line {
	g := givenOf(s)
	return slices.Concat([]line{
		{"sharing", sharing(s, now)},
		{"for", usersOf(s.Running)},
	}, signersLines(s), []line{
		{"cores", g.cores},
		{"memory", g.memory},
		{"next pause", nextPause(s, now)},
	}, weekLines(s.Week), []line{
		{"site", siteText(s)},
	}, standbyLines(s), controllerLines(s), gatewayLines(s))
}

// signersLines says that not everything is run here, where it is so.
func signersLines(s view.AgentStatus) []line {
	if s.Signers == 0 {
		return nil
	}
	return []line{{"runs", fmt.Sprintf("work signed by %s only (signers)",
		plural(s.Signers, "key", "keys"))}}
}

// sharing says whether the site takes jobs now and, if not, why.
func sharing(s view.AgentStatus, now time.Time) string {
	switch {
	case s.Stopping:
		return fmt.Sprintf(
			"no: stopping as soon as %s", plural(len(s.Running), "job has ended", "jobs have ended"),
		)
	case s.Paused && s.Leaving:
		return "no: " + pausedText(s, now)
	case s.Paused:
		return "no: " + pausedUntil(s, now) + "; siteagent resume ends that"
	case s.Owner != nil && s.Owner.Busy:
		return ownerBusy(s, now)
	case len(s.Kinds) == 0:
		return "no: this machine can run no jobs"
	case s.Machine.DiskFull(), s.Machine.DiskLow():
		return diskText(s.Machine)
	case s.Peers == 0:
		return "yes, but no other site is connected"
	case s.Ceilings.MilliCPUs > 0 && s.InUse.MilliCPUs >= s.Ceilings.MilliCPUs:
		return "yes, all cores that you give are in use"
	case s.Owner != nil && s.Owner.Share > 0:
		return shareText(s, now)
	default:
		return "yes"
	}
}

// shareText says what part of the ceilings is given now, and until when.
func shareText(s view.AgentStatus, now time.Time) string {
	text := fmt.Sprintf("yes, %d %% of the cores", s.Owner.Share)
	if s.Owner.Memory > 0 {
		text += fmt.Sprintf(" and %d %% of the memory", s.Owner.Memory)
	}
	if s.Owner.InUse {
		return text + " while you are there (in-use)"
	}
	hours, err := yield.ParseHours(s.Owner.Hours)
	if until := hours.ShareUntil(now); err == nil && !until.IsZero() {
		text += " until " + dayText(until, now)
	}
	return text + " (owner.hours)"
}

// diskText says why the disk keeps a site from sharing.
func diskText(m *view.MachineView) string {
	if m.DiskFull() {
		return "no: the disk is full"
	}
	return fmt.Sprintf("no: %s of the disk are free, and you keep %s (owner.free-disk)",
		grid.FormatBytes(*m.FreeDiskBytes), grid.FormatBytes(m.KeptDiskBytes))
}

// ownerBusy says why the machine is its owner's now, and until when.
func ownerBusy(s view.AgentStatus, now time.Time) string {
	if hours, err := yield.ParseHours(s.Owner.Hours); err == nil && !hours.Open(now) {
		text := "no: you share this machine " + hours.String()
		if opens, known := nextChange(hours, now); known {
			text += "; again from " + dayText(opens, now)
		}
		return text
	}
	after := "jobs are taken again"
	if n := frozen(s.Running); n > 0 {
		after = plural(n, "job is frozen and resumes", "jobs are frozen and resume")
	}
	for _, c := range [...]struct{ why, then string }{
		{yield.WhyHook, " when it says so"},
		{yield.WhyInput, " when you are away"},
		{yield.WhyBattery, " when it is plugged in (owner.battery)"},
		{yield.WhyMetered, " when it is not (owner.metered)"},
		{yield.WhyHeat, " when a thermometer says so"},
	} {
		if strings.HasPrefix(s.Owner.Why, c.why) {
			return "paused: " + s.Owner.Why + "; " + after + c.then
		}
	}
	why := strings.TrimPrefix(s.Owner.Why, "others use ")
	return fmt.Sprintf("paused: you are using the machine (%s); %s after %.0f s of quiet",
		why, after, yield.DefaultRules().Calm.Seconds())
}

func frozen(running []view.RunningTask) int {
	n := 0
	for _, r := range running {
		if r.Phase == view.PhaseFrozen || r.Phase == view.PhaseSuspended {
			n++
		}
	}
	return n
}

// usersOf says whose jobs are here.
func usersOf(running []view.RunningTask) string {
	if len(running) == 0 {
		return "nobody at the moment"
	}
	var names []string
	jobs := map[string]int{}
	for _, r := range running {
		name := r.SubmitterName
		if name == "" {
			name = string(r.Submitter)
		}
		if jobs[name] == 0 {
			names = append(names, name)
		}
		jobs[name]++
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%s)", name, plural(jobs[name], "job", "jobs"))
	}
	return strings.Join(names, ", ")
}

// nextPause says when the site stops sharing by itself.
func nextPause(s view.AgentStatus, now time.Time) string {
	if s.Owner == nil {
		return unknown
	}
	var when []string
	if hours, err := yield.ParseHours(s.Owner.Hours); err == nil && hours.Open(now) {
		if closes, known := nextChange(hours, now); known {
			when = append(when, fmt.Sprintf("%s (shared %s)", dayText(closes, now), hours))
		}
	}
	if s.Owner.Hook != "" {
		when = append(when, "when owner.hook says so")
	}
	if s.Owner.Input {
		when = append(when, "while keyboard or mouse are in use")
	}
	how, off := strings.CutPrefix(s.Owner.How, "off: ")
	if !off {
		_, how, off = strings.Cut(s.Owner.How, "; jobs do not yield: ")
	}
	switch {
	case !off:
		when = append(when, "whenever you use the machine")
	case len(when) == 0:
		when = append(when, "none by itself: "+how)
	}
	return strings.Join(when, ", and ")
}

// nextChange is when sharing begins or ends next by the hours, on the clock of now.
func nextChange(hours yield.Hours, now time.Time) (time.Time, bool) {
	open, minute := hours.Open(now), now.Truncate(time.Minute)
	for range 7*24*60 + 1 {
		if minute = minute.Add(time.Minute); hours.Open(minute) != open {
			return minute, true
		}
	}
	return time.Time{}, false
}

// dayText is a time on the owner's clock, with the day where that is not today.
func dayText(at, now time.Time) string {
	at = at.In(now.Location())
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format("15:04")
	case at.Sub(now) < 6*24*time.Hour:
		return at.Format("Mon 15:04")
	default:
		return at.Format("2006-01-02 15:04")
	}
}

func siteText(s view.AgentStatus) string {
	return fmt.Sprintf("%s, in domain %s with %s, %d connected", s.Name, s.Domain,
		plural(max(s.Members-1, 0), "other site", "other sites"), s.Peers)
}

// plural is a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// maxProblems are shown at a glance.
const maxProblems = 3

// problemLines are what is wrong, each with what to do about it.
func problemLines(notices []view.Notice) []line {
	if len(notices) == 0 {
		return []line{{"problem", "none"}}
	}
	var lines []line
	for i, n := range notices {
		if i == maxProblems {
			lines = append(lines, line{"problem", fmt.Sprintf("and %d more", len(notices)-i)})
			break
		}
		text := n.Text
		if n.Cause != "" {
			text += ": " + n.Cause
		}
		lines = append(lines, line{"problem", text})
		if n.Action != "" {
			lines = append(lines, line{"  to do", n.Action})
		}
	}
	return lines
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
