package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// placingFlags are the flags of run that say when, after what, in what and beside
// whom a job runs.
type placingFlags struct {
	at, notBefore, deadline, priority, reservation, project, overrun, split, communication string
	after                                                                                  []string
	flood                                                                                  bool
}

func (f *placingFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.at, "at", "", `start exactly then, such as 14:00, "tomorrow 09:00" or +30s`)
	flags.StringVar(&f.notBefore, "not-before", "", "earliest start, such as 14:00")
	flags.StringVar(&f.deadline, "deadline", "", "latest end, such as 18:00")
	flags.StringVar(&f.priority, "priority", "", "among your own jobs, higher goes first, -1000 to 1000")
	flags.StringSliceVar(&f.after, "after", nil, "start when these jobs are done")
	flags.StringVar(&f.reservation, "reservation", "", "run in this reservation")
	flags.StringVar(&f.project, "project", "", "whose share of a site it counts against")
	flags.StringVar(&f.overrun, "overrun", "", "when it runs for too long and its place is promised: suspend or stop")
	flags.StringVar(&f.split, "split", "", "the tasks are parts that run together: never, if-needed or greedy")
	flags.StringVar(&f.communication, "communication", "", "what each part exchanges with the others, such as 10MiB")
	flags.BoolVar(&f.flood, "flood", false, "queue it at several sites; the first whose turn it is runs it")
}

// given is a flag's value and where it belongs in a job file.
type given struct {
	into        map[string]any
	name, value string
}

// writeGiven writes the values that are not empty.
func writeGiven(flags []given) {
	for _, g := range flags {
		if g.value != "" {
			g.into[g.name] = g.value
		}
	}
}

// write adds the flags that were given to a job file.
func (f *placingFlags) write(doc map[string]any) {
	start := map[string]any{}
	writeGiven([]given{
		{start, "at", f.at},
		{start, "notBefore", f.notBefore},
		{doc, "deadline", f.deadline},
		{doc, "priority", f.priority},
		{doc, "reservation", f.reservation},
		{doc, "project", f.project},
		{doc, "overrun", f.overrun},
		{doc, "split", f.split},
		{doc, "communication", f.communication},
	})
	if len(start) > 0 {
		doc["start"] = start
	}
	if len(f.after) > 0 {
		doc["after"] = f.after
	}
	if f.flood {
		doc["placing"] = "flood"
	}
}

// findNamed completes the ID of a job that a job file names.
func (a *app) findNamed(ctx context.Context, ref jobfile.Ref) (grid.JobID, error) {
	if ref.Field == "reservation" {
		return a.findReservation(ctx, ref.Text)
	}
	return a.findJob(ctx, ref.Text)
}

// skewLimit is from which on a difference of clocks matters to a start that was
// asked for: sites start by their own clocks.
const skewLimit = 500 * time.Millisecond

// warnOfClocks says whose clock is wrong, or that ours is, when a time is asked for.
func (a *app) warnOfClocks(ctx context.Context, w grid.Window) error {
	if !w.Promised() {
		return nil
	}
	sites, err := a.client.Sites(ctx)
	if err != nil {
		return err
	}
	for _, s := range sites {
		if s.Connected && s.SkewSeconds != nil && math.Abs(*s.SkewSeconds) >= skewLimit.Seconds() {
			a.say("warning: the clock of %s differs from this one by %s, and it keeps times by its own; set the clocks by NTP",
				clean(nameOf(s.Name, s.ID)), skew(s.SkewSeconds))
		}
	}
	return nil
}

// skew is "+12ms" for a clock that is ahead of ours.
func skew(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	if math.Abs(*seconds) < 10 {
		return fmt.Sprintf("%+.0fms", *seconds*1000)
	}
	return fmt.Sprintf("%+.1fs", *seconds)
}

// local is a moment on this machine's clock, with its zone.
func (a *app) local(t view.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(a.now().Location()).Format(time.RFC3339)
}

// planText is "planned for 14:00:30 on ben, kept with 97 %", with the day where that
// is not today; empty for a task that no site has promised to start, or that has.
func (a *app) planText(t view.TaskView) string {
	if t.Planned.IsZero() || !t.Started.IsZero() || t.Phase.Ended() {
		return ""
	}
	now := a.now()
	at, layout := t.Planned.In(now.Location()), time.TimeOnly
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = time.DateTime
	}
	text := fmt.Sprintf("planned for %s on %s", at.Format(layout), clean(nameOf(t.SiteName, t.Site)))
	if t.Kept != nil {
		text += ", kept with " + view.Percent(t.Kept)
	}
	return text
}

// earliest is the earliest time that a site which refused could promise.
func earliest(offers view.OfferTable) (site string, at view.Time) {
	for _, row := range offers.Rows {
		if !row.CouldPromise.IsZero() && (at.IsZero() || row.CouldPromise.Before(at.Time)) {
			site, at = nameOf(row.Name, row.Site), row.CouldPromise
		}
	}
	return site, at
}

// sayRefused says why nobody takes a job, and what could have been promised instead of
// what was asked for.
func (a *app) sayRefused(ctx context.Context, what string, v view.JobView) {
	reasons := strings.Join(v.Reasons, "; ")
	var site string
	var at view.Time
	if offers, err := a.client.Offers(ctx, v.ID); err == nil { // else why says more
		site, at = earliest(offers)
	}
	if at.IsZero() {
		a.say("%s %s can never be placed: %s", what, v.ID, reasons)
		return
	}
	a.say("%s %s cannot be promised: %s", what, v.ID, reasons)
	a.say("the earliest that could be promised: %s, by %s", a.local(at), clean(site))
}
