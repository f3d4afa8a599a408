package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The beginnings of the keys of rows.
const (
	ofJob    = "job "
	ofSite   = "site "
	ofNotice = "notice "
)

func (v *siteSubject) body(now time.Time, columns int) body {
	if v.open != "" {
		return v.details(now, columns)
	}
	return body{
		head: v.head(now, columns),
		sections: []section{
			jobsHere(v.facts.Status.Running, now), sitesKnown(v.facts.Sites, now),
			noticesOf(v.facts.Status.Notices),
		},
	}
}

// head is the state of the site in a few lines.
func (v *siteSubject) head(now time.Time, columns int) []said {
	s := v.facts.Status
	name, has, takes := nameOr(s.Name, string(s.Site)), s.Ceilings, s.InUse
	memory := used(takes.MemoryBytes, has.MemoryBytes, columns, grid.FormatBytes)
	reach := fmt.Sprintf("%s; %d connected: %d directly, %d by a relay", reachWord(s.Reach),
		s.Peers, s.Reach.Direct, s.Reach.Relayed)
	title := fmt.Sprintf("%s in domain %s, %s", name, s.Domain, now.Format(time.TimeOnly))
	return slices.Concat([]said{{title, strong}}, v.sharing(now, columns),
		wrapped("cores   "+used(takes.MilliCPUs, has.MilliCPUs, columns, cores), columns),
		wrapped("memory  "+memory, columns), wrapped("reach   "+reach, columns), []said{{}},
	)
}

// sharing says whether the site takes jobs now and, if not, why, in as few lines as will do.
func (v *siteSubject) sharing(now time.Time, columns int) []said {
	const most = 3 // lines
	t := good
	if s := v.facts.Status; s.Paused || s.Stopping || s.Owner != nil && s.Owner.Busy {
		t = warn
	}
	var lines []said
	for _, text := range wrap("sharing "+v.top.Sharing(v.facts.Status, now), columns) {
		lines = append(lines, said{text, t})
	}
	return lines[:min(len(lines), most)]
}

func reachWord(r view.Reach) string {
	text := r.Reachability
	if text == "" {
		text = "unknown"
	}
	if r.Serving {
		text += ", relays for others"
	}
	return text
}

// used is a bar and "1.0 of 4.0 in use", in a narrow window the numbers alone.
func used(part, whole int64, columns int, write func(int64) string) string {
	const most = 26
	text := fmt.Sprintf("%s of %s", write(part), write(whole))
	if columns < narrow {
		return text
	}
	return fmt.Sprintf("%s %s in use", bar(part, whole, min(most, columns/3)), text)
}

func cores(milli int64) string { return fmt.Sprintf("%.1f", float64(milli)/1000) }

func nameOr(name, id string) string {
	if name != "" {
		return name
	}
	return id
}

func jobsHere(running []view.RunningTask, now time.Time) section {
	s := section{
		title: fmt.Sprintf("JOBS HERE: %d", len(running)),
		columns: []column{
			{title: "NAME"},
			{title: "FOR", rank: 2},
			{title: "STATE", rank: 1},
			{title: "TIME", right: true, rank: 3},
			{title: "CORES", right: true, rank: 4},
			{title: "WAITS FOR", rank: 5},
		},
		none: "none at the moment",
	}
	for _, r := range running {
		s.rows = append(s.rows, row{key: ofJob + r.Task, cells: []said{
			{nameOr(r.Name, r.Task), usual},
			{nameOr(r.SubmitterName, string(r.Submitter)), usual},
			{string(r.Phase), phaseTone(r.Phase)},
			{since(r.Started, now), usual},
			{cores(r.Need.MilliCPUs), usual},
			{waitsFor(r), usual},
		}})
	}
	return s
}

// waitsFor says what a job at a site waits for.
func waitsFor(r view.RunningTask) string {
	switch {
	case r.Leaves != "":
		return "another site: " + r.Leaves
	case r.Phase == view.PhaseStaging:
		return "its inputs"
	case r.Phase == view.PhasePreparing:
		return "the compiler"
	case r.Phase == view.PhaseFrozen:
		return "its submitter"
	case r.Phase == view.PhaseSuspended:
		return "quiet on this machine"
	case r.Phase == view.PhaseAwarded:
		return "its turn"
	default:
		return ""
	}
}

func phaseTone(p view.Phase) tone {
	switch p {
	case view.PhaseRunning, view.PhaseOpen, view.PhaseDone, view.PhaseOver:
		return good
	case view.PhaseFailed, view.PhaseRefused, view.PhaseLost:
		return bad
	case view.PhaseCancelled, view.PhaseReleased:
		return faint
	default:
		return warn
	}
}

func since(t view.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(now.Sub(t.Time))
}

func sitesKnown(sites []view.SiteRow, now time.Time) section {
	s := section{
		title: fmt.Sprintf("SITES: %d", len(sites)),
		columns: []column{
			{title: "NAME"},
			{title: "REACHED", rank: 1},
			{title: "CORES", rank: 2},
			{title: "MEMORY", right: true, rank: 4},
			{title: "FAULTS", right: true, rank: 3},
			{title: "STAYS 1H", right: true, rank: 6},
			{title: "DOMAIN", rank: 5},
		},
		none: "none is known yet",
	}
	var most int64
	for _, r := range sites {
		if r.Total != nil {
			most = max(most, r.Total.MilliCPUs)
		}
	}
	for _, r := range sites {
		reached, t := reachedHow(r, now)
		s.rows = append(s.rows, row{key: ofSite + string(r.ID), cells: []said{
			{nameOr(r.Name, string(r.ID)), usual},
			{reached, t},
			{coresBar(r, most), usual},
			{memoryOf(r), usual},
			faultsOf(r),
			{stays(r), usual},
			{string(r.Domain), usual},
		}})
	}
	return s
}

// reachedHow says whether a site is there and how far it is.
func reachedHow(r view.SiteRow, now time.Time) (string, tone) {
	switch {
	case r.Self:
		return "this site", usual
	case r.Connected && r.RoundTripMS != nil:
		return fmt.Sprintf("in %.0f ms", *r.RoundTripMS), good
	case r.Connected:
		return "connected", good
	case r.Trouble != "":
		return "away: " + r.Trouble, bad
	case !r.LastSeen.IsZero():
		return "away " + since(r.LastSeen, now), warn
	default:
		return "away", warn
	}
}

// coresBar compares what a site gives with the largest that is known.
func coresBar(r view.SiteRow, most int64) string {
	const columns = 10
	if r.Total == nil {
		return ""
	}
	return bar(r.Total.MilliCPUs, most, columns) + " " + cores(r.Total.MilliCPUs)
}

func memoryOf(r view.SiteRow) string {
	if r.Total == nil {
		return ""
	}
	return grid.FormatBytes(r.Total.MemoryBytes)
}

// faultsOf are the faults that this agent saw, and after a + those that others tell of.
func faultsOf(r view.SiteRow) said {
	text, t := strconv.Itoa(r.FaultIndex), usual
	if r.Fault != nil && r.Fault.Shared > 0 {
		text += fmt.Sprintf(" +%.1f", r.Fault.Shared)
	}
	if r.FaultIndex > 0 {
		t = warn
	}
	return said{text, t}
}

// stays is the probability that the site is still there in an hour.
func stays(r view.SiteRow) string {
	if r.ZHour == nil {
		return ""
	}
	kept := 1 - *r.ZHour
	return view.Percent(&kept)
}

func noticesOf(notices []view.Notice) section {
	s := section{
		title: fmt.Sprintf("NOTICES: %d", len(notices)), columns: []column{{}},
		none: "nothing is wrong",
	}
	for i, n := range notices {
		text := n.Text
		if n.Cause != "" {
			text += ": " + n.Cause
		}
		r := row{key: ofNotice + strconv.Itoa(i), cells: []said{{text, bad}}}
		if n.Action != "" {
			r.more = []said{{"to do: " + n.Action, usual}}
		}
		s.rows = append(s.rows, r)
	}
	return s
}

// details are all that is known about the row that was opened.
func (v *siteSubject) details(now time.Time, columns int) body {
	title, pairs := "notice", v.noticeDetails(strings.TrimPrefix(v.open, ofNotice))
	if task, is := strings.CutPrefix(v.open, ofJob); is {
		title, pairs = v.jobDetails(task, now)
	} else if id, is := strings.CutPrefix(v.open, ofSite); is {
		title, pairs = v.siteDetails(grid.SiteID(id), now)
	}
	if len(pairs) == 0 {
		pairs = [][2]string{{"gone", "it is no longer here; esc goes back"}}
	}
	head := slices.Concat([]said{{title, strong}}, v.sharing(now, columns), []said{{}})
	return body{head: head, isText: true, text: pairLines(pairs, columns)}
}

func (v *siteSubject) jobDetails(task string, now time.Time) (string, [][2]string) {
	for _, r := range v.facts.Status.Running {
		if r.Task != task {
			continue
		}
		return "job " + nameOr(r.Name, task), filled([][2]string{
			{"task", fmt.Sprintf("%s, attempt %d", r.Task, r.Token)},
			{"submitter", r.SubmitterName},
			{"its site", string(r.Submitter)},
			{"state", string(r.Phase)},
			{"started", ago(r.Started, now)},
			{"waits for", waitsFor(r)},
			{"cores", cores(r.Need.MilliCPUs)},
			{"memory", grid.FormatBytes(r.Need.MemoryBytes)},
			{"disk", grid.FormatBytes(r.Need.DiskBytes)},
		})
	}
	return "job " + task, nil
}

func (v *siteSubject) siteDetails(id grid.SiteID, now time.Time) (string, [][2]string) {
	for _, r := range v.facts.Sites {
		if r.ID != id {
			continue
		}
		reached, _ := reachedHow(r, now)
		faults := ""
		if r.Fault != nil {
			faults = r.Fault.Text(now)
		}
		pairs := [][2]string{
			{"site", string(r.ID)},
			{"domain", string(r.Domain)},
			{"reached", reached},
			{"since", ago(r.Since, now)},
			{"seen", ago(r.LastSeen, now)},
			{"system", strings.TrimSpace(r.OS + " " + r.Arch)},
			{"runs", strings.Join(r.Kinds, ", ")},
			{"faults", faultsOf(r).text},
			{"failed", faults},
			{"stays 1 h", stays(r)},
			{"addresses", strings.Join(r.Addresses, " ")},
		}
		if r.Total != nil {
			pairs = append(pairs, [2]string{"cores", cores(r.Total.MilliCPUs)},
				[2]string{"memory", grid.FormatBytes(r.Total.MemoryBytes)},
				[2]string{"disk", grid.FormatBytes(r.Total.DiskBytes)})
		}
		return "site " + nameOr(r.Name, string(r.ID)), filled(pairs)
	}
	return "site " + string(id), nil
}

func (v *siteSubject) noticeDetails(number string) [][2]string {
	i, err := strconv.Atoi(number)
	if err != nil || i >= len(v.facts.Status.Notices) {
		return nil
	}
	n := v.facts.Status.Notices[i]
	pairs := [][2]string{{"problem", n.Text}, {"cause", n.Cause}, {"to do", n.Action}}
	return filled(pairs)
}

// filled leaves out what is not known.
func filled(pairs [][2]string) [][2]string {
	var known [][2]string
	for _, p := range pairs {
		if p[1] != "" {
			known = append(known, p)
		}
	}
	return known
}

// pairLines writes names with what belongs to them, which may take several lines.
func pairLines(pairs [][2]string, columns int) []said {
	const nameColumns = 11
	names := min(nameColumns, columns/2)
	var lines []said
	for _, p := range pairs {
		name := p[0]
		for _, text := range wrap(p[1], columns-names) {
			lines = append(lines, said{pad(name, names, false) + text, usual})
			name = ""
		}
	}
	return lines
}

func ago(t view.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return since(t, now) + " ago"
}
