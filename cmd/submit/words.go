package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// nameOf is a site's name for people, or its ID.
func nameOf(name string, id grid.SiteID) string {
	if name != "" {
		return name
	}
	return string(id)
}

func plural(n uint32, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', 4, 64)
}

func code(v *int) string {
	if v == nil {
		return ""
	}
	return strconv.Itoa(*v)
}

func moment(t view.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// local is a moment on this machine's clock, with its zone.
func (a *app) local(t view.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(a.now().Location()).Format(time.RFC3339)
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

// savedText is "saved 12:03, 41 %": the state that a task would go on from elsewhere; empty if
// there is none, or it is not needed any more.
func (a *app) savedText(t view.TaskView) string {
	if t.Saved == nil || t.Phase.Ended() {
		return ""
	}
	now := a.now()
	at, layout := t.Saved.At.In(now.Location()), "15:04"
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = "2006-01-02 15:04"
	}
	text := "saved " + at.Format(layout)
	if t.Saved.Percent > 0 {
		return text + fmt.Sprintf(", %d %%", t.Saved.Percent)
	}
	worked := time.Duration(t.Saved.WorkedSeconds * float64(time.Second))
	return text + ", after " + worked.Round(time.Second).String()
}

// rate is a link's rate as people write it, "" for one that was not measured.
func rate(bps int64) string {
	switch {
	case bps <= 0:
		return ""
	case bps >= 1e9:
		return fmt.Sprintf("%.1fGbit/s", float64(bps)/1e9)
	case bps >= 1e6:
		return fmt.Sprintf("%.1fMbit/s", float64(bps)/1e6)
	default:
		return fmt.Sprintf("%.1fkbit/s", float64(bps)/1e3)
	}
}

// counts is "12 done, 3 running" in the usual order of the phases.
func counts(c view.PhaseCounts) string {
	var parts []string
	for _, phase := range view.Phases() {
		if c[phase] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c[phase], phase))
		}
	}
	return strings.Join(parts, ", ")
}
