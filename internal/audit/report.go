package audit

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// maxLines bounds how many lost and doubled tasks are written out.
const maxLines = 20

// Summary is "L lost, D doubled", both counted in tasks.
func (r Report) Summary() string {
	return fmt.Sprintf("%d lost, %d doubled", r.Total.Lost, r.Total.Doubled)
}

// Write writes the report as a table of jobs, what is wrong with which task, and
// the summary as the last line.
func (r Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := []string{
		"JOB\tTASKS\tDONE\tFAILED\tCANCELLED\tREFUSED\tOPEN\tLOST\tDOUBLED\tATTEMPTS\tMOVED",
	}
	for i := range r.Jobs {
		rows = append(rows, r.Jobs[i].line(string(r.Jobs[i].Job)))
	}
	rows = append(rows, r.Total.line("total"))
	if _, err := fmt.Fprintln(table, strings.Join(rows, "\n")); err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	if _, err := fmt.Fprintln(w, strings.Join(append(r.details(), r.Summary()), "\n")); err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	return nil
}

func (j *JobReport) line(name string) string {
	var cells []string
	for _, n := range []int{
		j.Tasks, j.Done, j.Failed, j.Cancelled, j.Refused, j.Open, j.Lost, j.Doubled, j.Attempts, j.Moved,
	} {
		cells = append(cells, fmt.Sprint(n))
	}
	return name + "\t" + strings.Join(cells, "\t")
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
