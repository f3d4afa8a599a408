package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

func (v *jobsSubject) body(now time.Time, columns int) body {
	switch {
	case v.log != nil:
		return v.log.body(columns)
	case v.open != "":
		return v.tasksBody(now, columns)
	default:
		return v.jobsBody(now)
	}
}

// states sorts a job's tasks into the columns that are shown.
type states struct{ done, running, waiting, failed uint32 }

func statesOf(counts view.PhaseCounts) (n states) {
	for phase, c := range counts {
		switch phase {
		case view.PhaseDone, view.PhaseOver:
			n.done += c
		case view.PhaseFailed, view.PhaseRefused, view.PhaseLost, view.PhaseCancelled,
			view.PhaseReleased:
			n.failed += c
		case view.PhaseWaiting, view.PhaseAnnounced, view.PhaseAwarded, view.PhaseHeld:
			n.waiting += c
		default:
			n.running += c
		}
	}
	return n
}

func (v *jobsSubject) jobsBody(now time.Time) body {
	s := section{
		columns: []column{
			{title: "NAME"},
			{title: "STATE", rank: 1},
			{title: "DONE", rank: 2},
			{title: "LEFT", right: true, rank: 3},
			{title: "TASKS", right: true, rank: 6},
			{title: "RUN", right: true, rank: 5},
			{title: "WAIT", right: true, rank: 5},
			{title: "FAIL", right: true, rank: 4},
			{title: "SUBMITTED", rank: 7},
			{title: "ID", rank: 8},
		},
		none: "no jobs yet; submit run hands one in",
	}
	if len(v.before) > 0 {
		s.none = "no older jobs"
	}
	if v.filter != "" {
		s.none = "none has " + v.filter + "; esc shows all"
	}
	open := 0
	for _, j := range v.facts.Jobs {
		if !v.shows(j) {
			continue
		}
		if !j.Phase.Ended() {
			open++
		}
		s.rows = append(s.rows, v.jobRow(j, now))
	}
	title := fmt.Sprintf("%s, %d open", plural(len(s.rows), "job", "jobs"), open)
	if n := len(v.before); n > 0 {
		title += fmt.Sprintf(", page %d", n+1)
	}
	if len(v.facts.Jobs) >= jobsAPage && v.filter == "" {
		title += ", older ones below"
	}
	if v.filter != "" {
		title += fmt.Sprintf(", filter %s among the newest %d", v.filter, filtered)
	}
	title += ", " + now.Format(time.TimeOnly)
	return body{head: []said{{title, strong}, {}}, sections: []section{s}}
}

func (v *jobsSubject) jobRow(j view.JobView, now time.Time) row {
	n := statesOf(j.Tasks)
	state, t := string(j.Phase), phaseTone(j.Phase)
	if j.Held {
		state, t = "held", warn
	}
	left := strings.TrimSuffix(v.top.Left(j), " left")
	if j.Phase.Ended() {
		left = ""
	}
	return row{key: string(j.ID), cells: []said{
		{jobName(j), usual},
		{state, t},
		{doneBar(j), usual},
		{left, usual},
		{number(n.done) + "/" + number(j.Count), usual},
		{number(n.running), usual},
		{number(n.waiting), usual},
		failedCell(n.failed),
		{j.Submitted.Clock(now), usual},
		{string(j.ID), faint},
	}}
}

func failedCell(n uint32) said {
	if n == 0 {
		return said{"0", usual}
	}
	return said{number(n), bad}
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// doneBar shows how many of the tasks are done: a bar, and percent.
func doneBar(j view.JobView) string {
	const columns = 10
	done, all := int64(statesOf(j.Tasks).done), int64(j.Count)
	return fmt.Sprintf("%s %3d %%", bar(done, all, columns), donePercent(j))
}

func donePercent(j view.JobView) int64 {
	return 100 * int64(statesOf(j.Tasks).done) / max(int64(j.Count), 1)
}

// tasksBody shows a job: how it stands, why, and a page of its tasks.
func (v *jobsSubject) tasksBody(now time.Time, columns int) body {
	j, n := v.job, statesOf(v.job.Tasks)
	b := body{head: []said{{"job " + jobName(j) + ", " + string(j.ID), strong}}}
	line := doneBar(j) + " " + string(j.Phase)
	if columns < narrow {
		line = fmt.Sprintf("%d %% %s", donePercent(j), j.Phase)
	}
	if left := v.top.Left(j); left != "" && !j.Phase.Ended() {
		line += ", " + left
	}
	b.head = append(b.head, said{line, phaseTone(j.Phase)})
	times := "submitted " + j.Submitted.Clock(now)
	if !j.Started.IsZero() {
		times += ", began " + j.Started.Clock(now)
	}
	if !j.Ended.IsZero() {
		times += ", ended " + j.Ended.Clock(now)
	}
	times += fmt.Sprintf("; %d done, %d running, %d waiting, %d failed",
		n.done, n.running, n.waiting, n.failed)
	b.head = append(b.head, wrapped(times, columns)...)
	const mostWhy = 4 // lines
	var why []said
	for _, text := range v.top.Why(j, v.tasks) {
		why = append(why, wrapped(text, columns)...)
	}
	b.head = append(append(b.head, why[:min(len(why), mostWhy)]...), said{})
	b.sections = []section{v.taskSection(now)}
	return b
}

func (v *jobsSubject) taskSection(now time.Time) section {
	title := "TASKS"
	if n := len(v.tasks); n > 0 {
		first, last := v.tasks[0].Index, v.tasks[n-1].Index
		title = fmt.Sprintf("TASKS %d TO %d OF %d", first, last, v.job.Count)
	}
	s := section{
		title: title,
		columns: []column{
			{title: "TASK", right: true},
			{title: "STATE", rank: 1},
			{title: "SITE", rank: 2},
			{title: "TIME", right: true, rank: 3},
			{title: "TRIES", right: true, rank: 6},
			{title: "CODE", right: true, rank: 4},
			{title: "ITEM", rank: 7},
			{title: "MORE", rank: 5},
		},
		none: "the agent is asked for them",
	}
	for _, t := range v.tasks {
		s.rows = append(s.rows, row{key: t.ID, cells: []said{
			{number(t.Index), usual},
			{string(t.Phase), phaseTone(t.Phase)},
			{nameOr(t.SiteName, nameOr(string(t.Site), string(t.Domain))), usual},
			{tookTime(t, now), usual},
			{strconv.Itoa(len(t.Attempts)), usual},
			{codeOf(t), usual},
			{t.Item, usual},
			{moreOf(t), usual},
		}})
	}
	return s
}

// tookTime is the time that a task has run so far, or ran.
func tookTime(t view.TaskView, now time.Time) string {
	switch {
	case t.Started.IsZero():
		return ""
	case !t.Ended.IsZero():
		return span(t.Ended.Sub(t.Started.Time))
	default:
		return since(t.Started, now)
	}
}

func codeOf(t view.TaskView) string {
	if t.Code == nil {
		return ""
	}
	return strconv.Itoa(*t.Code)
}

// moreOf tells what a person should know of a task, and how much of its work is saved.
func moreOf(t view.TaskView) string {
	text := nameOr(t.Text, t.Cause)
	if t.Saved != nil && t.Saved.Percent > 0 && !t.Phase.Ended() {
		text = strings.TrimSpace(fmt.Sprintf("%d %% saved %s", t.Saved.Percent, text))
	}
	return text
}
