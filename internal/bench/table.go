package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// columns are the table's, in order.
func columns() []string {
	return []string{
		"figure", "value", "unit", "min", "p95", "n", "raw limit", "raw", "ratio", "goal", "met",
	}
}

// cells are a figure's row.
func (f *figure) cells() []string {
	if f.N == 0 && f.Value == 0 {
		return []string{f.Figure, "-", "", "", "", "", "", "", "", f.Goal, f.Note}
	}
	row := []string{f.Figure, number(f.Value), f.Unit, "", "", "", f.Raw, "", "", f.Goal, ""}
	if f.N > 1 {
		row[3], row[4], row[5] = number(f.Min), number(f.P95), strconv.Itoa(f.N)
	}
	if f.Ratio != nil {
		row[7], row[8] = number(f.RawValue), number(*f.Ratio)
	}
	if f.Met != nil {
		row[10] = map[bool]string{true: "yes", false: "no"}[*f.Met]
	}
	if f.Note != "" {
		row[0] += " (" + f.Note + ")"
	}
	return row
}

// number writes three digits that count.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func (r *report) rows() [][]string {
	rows := [][]string{columns()}
	for i := range r.Figures {
		rows = append(rows, r.Figures[i].cells())
	}
	return rows
}

func (h header) lines() []string {
	kind := ""
	if h.Quick {
		kind = ", quick"
	}
	return []string{
		fmt.Sprintf("%s, %d cores, Linux %s, %s, commit %s", h.CPU, h.Cores, h.Kernel, h.Go, h.Commit),
		fmt.Sprintf("%s, state on %s, load before %s, took %s%s", h.Date, h.Disk, h.Load, h.Took, kind),
	}
}

// print shows the table for people.
func (r *report) print(to io.Writer) {
	for _, line := range r.Header.lines() {
		_, _ = fmt.Fprintln(to, line)
	}
	rows := r.rows()
	widths := make([]int, len(columns()))
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell))+2))
		}
		_, _ = fmt.Fprintln(to, strings.TrimRight(line.String(), " "))
	}
}

// The table in a page stands between these lines.
const (
	tableBegin = "<!-- bench: begin, written by make bench-docs -->"
	tableEnd   = "<!-- bench: end -->"
)

// markdown is the table for a page.
func (r *report) markdown() string {
	var b strings.Builder
	for _, line := range r.Header.lines() {
		b.WriteString(line + "  \n")
	}
	b.WriteString("\n")
	for i, row := range r.rows() {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|-", len(row)) + "|\n")
		}
	}
	return b.String()
}

// intoPage replaces the table in a page.
func (r *report) intoPage(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // G703: the caller names the page
	if err != nil {
		return fmt.Errorf("write table into page: %w", err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return fmt.Errorf("write table into %s: it lacks the lines %q and %q", path, tableBegin, tableEnd)
	}
	page := before + tableBegin + "\n" + r.markdown() + tableEnd + after
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil { //nolint:gosec // G306: public
		return fmt.Errorf("write table into page: %w", err)
	}
	return nil
}
