package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func givenCommand(o *options) *cobra.Command {
	var span givenSpan
	var f *form
	cmd := &cobra.Command{
		Use: "given", Short: "Show what this site gave, and for whom", Args: noArgs,
		Long: `Show how much this site computed for others, and for whom: core-hours are the
processor time that their tasks used here, tasks those that came to an end of their own here,
well or not. What a task used before it moved to another site counts in hours alone. Your own
jobs are a row of their own, and not in the sum.

The account stays on this machine, in given.json of the state directory. It has the last 42
days on which something was given, by the clock of this machine, and outlives crashes: only
what the last seconds gave may be missing after one.

Example: siteagent given --since 7d -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			since, err := span.first(time.Now())
			if err != nil {
				return err
			}
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			days, err := c.Given(cmd.Context())
			if err != nil {
				return err
			}
			given := view.SumGiven(days, since)
			return f.print(cmd.OutOrStdout(), given, func() error {
				return printGiven(cmd.OutOrStdout(), given)
			})
		},
	}
	cmd.Flags().BoolVar(&span.week, "week", false, "since Monday")
	cmd.Flags().StringVar(&span.since, "since", "",
		"from that day on, such as 2026-03-02, or for so long until now, such as 7d")
	f = formFlag(cmd)
	return cmd
}

// givenSpan is the time that is asked for, all of it if nothing is said.
type givenSpan struct {
	week  bool
	since string
}

// first is the first day of it, empty for all.
func (s givenSpan) first(now time.Time) (string, error) {
	switch {
	case s.week && s.since != "":
		return "", usageError{fmt.Errorf("--week and --since: want one of them")}
	case s.week:
		return view.Monday(now), nil
	case s.since == "":
		return "", nil
	}
	if _, err := time.Parse(time.DateOnly, s.since); err == nil {
		return s.since, nil
	}
	span, err := grid.ParseSpan(s.since)
	if err != nil || span <= 0 {
		return "", usageError{fmt.Errorf(
			"--since: want a day such as 2026-03-02, or a time such as 7d, have %q", s.since,
		)}
	}
	return now.Add(-span).Format(time.DateOnly), nil
}

// printGiven shows for whom, and the sum of what others were given.
func printGiven(out io.Writer, g view.Given) error {
	since := ""
	if g.Since != "" {
		since = " since " + g.Since
	} else if len(g.Days) > 0 {
		since = " since " + g.Days[0].Date
	}
	if len(g.For) == 0 {
		_, err := fmt.Fprintf(out, "nothing was given%s\n", since)
		return err
	}
	const gap = 2
	w := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	fmt.Fprintln(w, "FOR\tCORE-HOURS\tTASKS")
	for _, s := range g.For {
		fmt.Fprintf(w, "%s\t%s\t%d\n", sharerName(s), coreHours(s.CoreSeconds), s.Tasks)
	}
	fmt.Fprintf(w, "others together%s\t%s\t%d\n", since, coreHours(g.CoreSeconds), g.Tasks)
	return w.Flush()
}

// sharerName is a submitter as people call it.
func sharerName(s view.GivenShare) string {
	switch {
	case s.Own:
		return "your own jobs"
	case s.Site == "":
		return "further sites"
	default:
		return nameOr(s.Name, string(s.Site))
	}
}

// coreHours are core-seconds as core-hours, of little with more places.
func coreHours(seconds float64) string {
	hours := seconds / time.Hour.Seconds()
	const little = .1
	if hours < little {
		return strconv.FormatFloat(hours, 'f', 4, 64)
	}
	return strconv.FormatFloat(hours, 'f', 1, 64)
}

// maxSharers are named at a glance.
const maxSharers = 3

// weekLines say what was given this week; nothing if nothing was.
func weekLines(g *view.Given) []line {
	if g == nil || g.CoreSeconds <= 0 && g.Tasks == 0 {
		return nil
	}
	const hours = " core-hours"
	text := coreTime(g.CoreSeconds)
	others := slices.DeleteFunc(slices.Clone(g.For), func(s view.GivenShare) bool { return s.Own })
	var names []string
	for _, s := range others[:min(len(others), maxSharers)] {
		part := fmt.Sprintf("%.1f", s.CoreSeconds/time.Hour.Seconds())
		if !strings.HasSuffix(text, hours) { // in the unit of the sum
			part = fmt.Sprintf("%.0f", s.CoreSeconds)
		}
		names = append(names, fmt.Sprintf("%s (%s)", sharerName(s), part))
	}
	if more := len(others) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	text += ", " + plural(g.Tasks, "task", "tasks")
	return []line{{"this week", text + ", for " + strings.Join(names, ", ")}}
}
