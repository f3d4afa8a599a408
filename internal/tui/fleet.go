package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// FleetAgent is the agent through which the domain is looked at and steered.
type FleetAgent interface {
	Fleet(ctx context.Context) ([]view.FleetRow, error)
	PauseAt(ctx context.Context, site string, p view.PauseOrder) (view.AgentStatus, error)
	ResumeAt(ctx context.Context, site string) (view.AgentStatus, error)
}

// FleetFacts are what `siteagent top --domain` shows.
type FleetFacts struct {
	Sites []view.FleetRow `json:"sites"`
}

// FleetTop is `siteagent top --domain`.
type FleetTop struct {
	Agent FleetAgent
	// Sharing says whether a site takes jobs at a moment and, if not, why.
	Sharing func(s view.AgentStatus, now time.Time) string
}

// Facts asks the agent for what is shown.
func (t FleetTop) Facts(ctx context.Context) (FleetFacts, error) {
	rows, err := t.Agent.Fleet(ctx)
	return FleetFacts{Sites: rows}, err
}

// fleetSubject is the domain on a screen.
type fleetSubject struct {
	top   FleetTop
	facts FleetFacts
	open  string // the site whose details are shown; empty: none
}

func (v *fleetSubject) look() func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) { return v.top.Facts(ctx) }
}

func (v *fleetSubject) take(facts any) { v.facts, _ = facts.(FleetFacts) }

func (v *fleetSubject) back() bool {
	was := v.open != ""
	v.open = ""
	return was
}

func (v *fleetSubject) bindings() []binding {
	return []binding{
		{"p", "pause", "pause the site under the cursor, or end a pause that came from afar"},
		{"s", "snooze", "pause it for a time"},
		{"l", "leave", "pause it, and its jobs leave when their state is saved"},
		{"enter", "details", "all about it"},
	}
}

// chosen is the site that is open, or under the cursor.
func (v *fleetSubject) chosen(key string) (view.FleetRow, bool) {
	id := cmp.Or(v.open, strings.TrimPrefix(key, ofSite))
	for _, r := range v.facts.Sites {
		if string(r.Site) == id {
			return r, true
		}
	}
	return view.FleetRow{}, false
}

func (v *fleetSubject) press(s *screen, key, row string) {
	site, found := v.chosen(row)
	if !found {
		return
	}
	name := nameOr(site.Name, string(site.Site))
	switch key {
	case "p":
		if site.Status != nil && site.Status.Paused {
			s.do(name+" is resumed", func(ctx context.Context) error {
				_, err := v.top.Agent.ResumeAt(ctx, string(site.Site))
				return err
			})
			return
		}
		s.do(name+" is paused; p resumes it", v.pause(site.Site, view.PauseOrder{}))
	case "s":
		s.askFor("Pause "+name+" for how long? ", "1h", func(text string) {
			v.snooze(s, site.Site, name, text)
		})
	case "l":
		s.ask("Pause "+name+", and let its jobs leave when their state is saved?", func() {
			s.do("jobs leave "+name+" when their state is saved",
				v.pause(site.Site, view.PauseOrder{Leave: true}))
		})
	case "enter":
		if v.open == "" {
			v.open = string(site.Site)
			s.turn()
		}
	}
}

func (v *fleetSubject) pause(site grid.SiteID, p view.PauseOrder) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := v.top.Agent.PauseAt(ctx, string(site), p)
		return err
	}
}

// snooze pauses a site for a time that a person typed.
func (v *fleetSubject) snooze(s *screen, site grid.SiteID, name, text string) {
	length, ok := s.span(text)
	if !ok {
		return
	}
	s.do(name+" is paused for "+text, v.pause(site, view.PauseOrder{Span: length}))
}

func (v *fleetSubject) body(now time.Time, columns int) body {
	if v.open != "" {
		return v.details(now, columns)
	}
	sum := fleetSum(v.facts.Sites)
	return body{
		head: slices.Concat([]said{{"the domain, " + now.Format(time.TimeOnly), strong}},
			wrapped(fmt.Sprintf("%d of %d sites tell their state; %d of those share; %s",
				sum.known, len(v.facts.Sites), sum.share, jobsText(sum.running)), columns),
			wrapped("cores   "+used(sum.taken, sum.cores, columns, cores), columns), []said{{}}),
		sections: []section{v.rows(now)},
	}
}

func jobsText(n int) string {
	if n == 1 {
		return "1 job"
	}
	return strconv.Itoa(n) + " jobs"
}

// sums over the sites that tell their state; cores in thousandths.
type sums struct {
	known, share, running int
	taken, cores          int64
}

func fleetSum(rows []view.FleetRow) (sum sums) {
	for _, r := range rows {
		if r.Status == nil {
			continue
		}
		sum.known++
		sum.running += r.Running
		sum.taken += r.Status.InUse.MilliCPUs
		sum.cores += r.Status.Ceilings.MilliCPUs
		if word, _ := shares(r); word == "yes" {
			sum.share++
		}
	}
	return sum
}

// shares says in a word whether a site takes jobs.
func shares(r view.FleetRow) (string, tone) {
	s := r.Status
	switch {
	case s == nil:
		return "unknown", faint
	case s.Stopping:
		return "stops", warn
	case s.Paused:
		return "paused", warn
	case s.Owner != nil && s.Owner.Busy:
		return "its owner's", warn
	default:
		return "yes", good
	}
}

func (v *fleetSubject) rows(now time.Time) section {
	s := section{
		title: fmt.Sprintf("SITES: %d", len(v.facts.Sites)),
		columns: []column{
			{title: "NAME"},
			{title: "SHARES", rank: 1},
			{title: "CORES", rank: 2},
			{title: "JOBS", right: true, rank: 3},
			{title: "MEMORY", right: true, rank: 5},
			{title: "PROBLEMS", right: true, rank: 4},
			{title: "VERSION", rank: 6},
		},
		none: "no member is known",
	}
	for _, r := range v.facts.Sites {
		word, t := shares(r)
		one := row{key: ofSite + string(r.Site), cells: []said{
			{nameOr(r.Name, string(r.Site)), usual}, {word, t}, {}, {}, {}, {}, {},
		}}
		if r.Status == nil {
			one.more = []said{{r.Trouble, faint}}
		} else {
			one.cells = append(one.cells[:2], fleetCells(r)...)
		}
		if word != "yes" && r.Status != nil {
			one.more = []said{{v.top.Sharing(*r.Status, now), warn}}
		}
		s.rows = append(s.rows, one)
	}
	return s
}

func fleetCells(r view.FleetRow) []said {
	const columns = 10
	has, takes := r.Status.Ceilings, r.Status.InUse
	problems := said{strconv.Itoa(len(r.Status.Notices)), usual}
	if len(r.Status.Notices) > 0 {
		problems.tone = bad
	}
	return []said{
		{bar(takes.MilliCPUs, has.MilliCPUs, columns) + " " + cores(takes.MilliCPUs) + " of " +
			cores(has.MilliCPUs), usual},
		{strconv.Itoa(r.Running), usual},
		{grid.FormatBytes(has.MemoryBytes), usual},
		problems,
		{r.Status.Version, usual},
	}
}

// details are all that the open site says of itself.
func (v *fleetSubject) details(now time.Time, columns int) body {
	r, found := v.chosen("")
	if !found {
		return body{isText: true, text: pairLines([][2]string{
			{"gone", "it is no member any more; esc goes back"},
		}, columns)}
	}
	pairs := [][2]string{
		{"site", string(r.Site)}, {"no state", r.Trouble},
	}
	if s := r.Status; s != nil {
		pairs = append(pairs, [][2]string{
			{"shares", v.top.Sharing(*s, now)},
			{"jobs", strconv.Itoa(r.Running)},
			{"cores", cores(s.InUse.MilliCPUs) + " of " + cores(s.Ceilings.MilliCPUs)},
			{"memory", grid.FormatBytes(s.InUse.MemoryBytes) + " of " +
				grid.FormatBytes(s.Ceilings.MemoryBytes)},
			{"disk", grid.FormatBytes(s.InUse.DiskBytes) + " of " +
				grid.FormatBytes(s.Ceilings.DiskBytes)},
			{"data", grid.FormatBytes(s.DataUsedBytes) + " of " +
				grid.FormatBytes(s.DataQuotaBytes)},
			{"runs", strings.Join(s.Kinds, ", ")},
			{"connected", strconv.Itoa(s.Peers) + " sites"},
			{"version", s.Version},
			{"started", ago(s.Started, now)},
		}...)
		for _, n := range s.Notices {
			pairs = append(pairs, [2]string{"problem", strings.Join(
				filledTexts(n.Text, n.Cause, n.Action), "; ")})
		}
	}
	head := []said{{"site " + nameOr(r.Name, string(r.Site)), strong}, {}}
	return body{head: head, isText: true, text: pairLines(filled(pairs), columns)}
}

// filledTexts leaves out what is empty.
func filledTexts(texts ...string) []string {
	var some []string
	for _, t := range texts {
		if t != "" {
			some = append(some, t)
		}
	}
	return some
}
