package audit

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// maxLines bounds how many lost and doubled tasks are written out.
const maxLines = 20

// Summary is "L lost, D doubled", counted in tasks, and in front of it what else there is:
// stuck, without a result, silently late.
func (r Report) Summary() string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{len(r.Stuck), "stuck"},
		{len(r.Missing), "without a result"},
		{len(r.SilentlyLate()), "silently late"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	parts = append(parts, fmt.Sprintf("%d lost, %d doubled", r.Total.Lost, r.Total.Doubled))
	return strings.Join(parts, ", ")
}

// Write writes the report as a table of jobs, what is wrong with which task, and
// the summary as the last line.
func (r Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := []string{
		"JOB\tTASKS\tDONE\tFAILED\tCANCELLED\tREFUSED\tOPEN\tLOST\tDOUBLED\tATTEMPTS\tMOVED",
	}
	wide := r.Total.Stuck+r.Total.Missing+r.Total.Late > 0 // columns that are seldom wanted
	if wide {
		rows[0] += "\tSTUCK\tMISSING\tLATE"
	}
	for i := range r.Jobs {
		rows = append(rows, r.Jobs[i].line(string(r.Jobs[i].Job), wide))
	}
	rows = append(rows, r.Total.line("total", wide))
	_, _ = fmt.Fprintln(table, strings.Join(rows, "\n")) // a table writes nothing until Flush
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	if _, err := fmt.Fprintln(w, strings.Join(append(r.details(), r.Summary()), "\n")); err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	return nil
}

func (j *JobReport) line(name string, wide bool) string {
	var cells []string
	numbers := []int{
		j.Tasks, j.Done, j.Failed, j.Cancelled, j.Refused, j.Open, j.Lost, j.Doubled, j.Attempts, j.Moved,
	}
	if wide {
		numbers = append(numbers, j.Stuck, j.Missing, j.Late)
	}
	for _, n := range numbers {
		cells = append(cells, fmt.Sprint(n))
	}
	return name + "\t" + strings.Join(cells, "\t")
}

// findings names what is stuck, without a result or late.
func (r Report) findings() []string {
	var lines []string
	for _, id := range r.Stuck[:min(maxLines, len(r.Stuck))] {
		lines = append(lines, fmt.Sprintf("stuck: nothing happened with task %s for %s", id, stuckAfter))
	}
	for _, id := range r.Missing[:min(maxLines, len(r.Missing))] {
		lines = append(lines, fmt.Sprintf("missing: task %s is done, and its result is not here", id))
	}
	for _, l := range r.Late[:min(maxLines, len(r.Late))] {
		said := "its submitter says so"
		if !l.Said {
			said = "its submitter says nothing of it"
		}
		var what []string
		if l.Start != 0 {
			what = append(what, fmt.Sprintf("began %s late", l.Start.Round(time.Millisecond)))
		}
		if l.End != 0 {
			what = append(what, fmt.Sprintf("ended %s late", l.End.Round(time.Millisecond)))
		}
		lines = append(lines,
			fmt.Sprintf("late: task %s %s; %s", l.Task, strings.Join(what, " and "), said))
	}
	return lines
}

func (r Report) details() []string {
	var lines []string
	for i, id := range r.Lost {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf("... and %d more tasks lost", len(r.Lost)-i))
			break
		}
		lines = append(lines,
			fmt.Sprintf("lost: task %s has not ended, and its submitter does not work on it", id))
	}
	for i, d := range r.Doubled {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf("... and %d more pairs of attempts", len(r.Doubled)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("doubled: %s on %s and %s on %s ran together for %s",
			d.A, d.SiteA, d.B, d.SiteB, d.Overlap))
	}
	lines = append(lines, r.findings()...)
	if r.Unseen > 0 {
		lines = append(lines,
			fmt.Sprintf("%d tasks are done, but no site wrote down that it ran them", r.Unseen))
	}
	if r.Unended > 0 {
		lines = append(lines, fmt.Sprintf("%d attempts have no written end", r.Unended))
	}
	if r.Strays > 0 {
		lines = append(lines, fmt.Sprintf("%d attempts belong to jobs of submitters that are not "+
			"part of this audit", r.Strays))
	}
	for _, n := range r.Notes {
		lines = append(lines, "note: "+n)
	}
	return lines
}
