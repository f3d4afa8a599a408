package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// column is one of a section. Columns are left out, those with the highest rank first, until the
// rest fits; the first column is never left out and is the one that shrinks.
type column struct {
	title string
	right bool // numbers stand at the right
	rank  int
}

// row is one of a section that the cursor can be on.
type row struct {
	key   string // what it is about, so that the cursor stays with it
	cells []said
	more  []said // lines below it
}

// section holds rows under a heading.
type section struct {
	title   string
	columns []column
	rows    []row
	none    string // said instead of rows
}

const (
	gap       = 2 // columns between two cells
	margin    = 2 // columns before a row, for the cursor
	leastHead = 7 // columns that the first cell keeps while others can be left out
)

// keysOf lists the rows of all sections.
func keysOf(sections []section) []string {
	var keys []string
	for _, s := range sections {
		for _, r := range s.rows {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// drawSections draws all sections, and says in which line the row under the cursor begins.
func drawSections(sections []section, columns int, cursor string) (lines []string, at int) {
	for i, s := range sections {
		if i > 0 {
			lines = append(lines, "")
		}
		if s.title != "" {
			lines = append(lines, paint(fit(s.title, columns), strong))
		}
		if len(s.rows) == 0 {
			lines = append(lines, paint(fit(strings.Repeat(" ", margin)+s.none, columns), faint))
			continue
		}
		shown, widths := s.layout(columns - margin)
		if s.columns[0].title != "" {
			lines = append(lines, s.heading(shown, widths, columns))
		}
		for _, r := range s.rows {
			if r.key == cursor {
				at = len(lines)
			}
			lines = append(lines, r.draw(s.columns, shown, widths, columns, r.key == cursor)...)
		}
	}
	return lines, at
}

// layout chooses the columns that fit, by their numbers, and how wide each is.
func (s section) layout(columns int) (shown, widths []int) {
	natural := make([]int, len(s.columns))
	for i, c := range s.columns {
		natural[i] = ansi.StringWidth(c.title)
		for _, r := range s.rows {
			natural[i] = max(natural[i], ansi.StringWidth(fit(r.cells[i].text, columns)))
		}
		shown = append(shown, i)
	}
	for len(shown) > 1 && s.needed(shown, natural) > columns {
		drop := 1
		for at := range shown {
			if at > 0 && s.columns[shown[at]].rank >= s.columns[shown[drop]].rank {
				drop = at
			}
		}
		shown = append(shown[:drop:drop], shown[drop+1:]...)
	}
	rest := columns
	for _, i := range shown[1:] {
		rest -= natural[i] + gap
	}
	for _, i := range shown {
		widths = append(widths, natural[i])
	}
	widths[0] = max(min(natural[shown[0]], rest), 1)
	return shown, widths
}

// needed is the width of some columns with the first one as narrow as it may be.
func (s section) needed(shown, natural []int) int {
	total := min(natural[shown[0]], leastHead)
	for _, i := range shown[1:] {
		total += natural[i] + gap
	}
	return total
}

func (s section) heading(shown, widths []int, columns int) string {
	parts := make([]string, 0, len(shown))
	for at, i := range shown {
		parts = append(parts, pad(s.columns[i].title, widths[at], s.columns[i].right))
	}
	text := strings.Repeat(" ", margin) + strings.Join(parts, strings.Repeat(" ", gap))
	return paint(fit(strings.TrimRight(text, " "), columns), faint)
}

// draw is the row in its line, and the lines below it.
func (r row) draw(all []column, shown, widths []int, columns int, cursor bool) []string {
	var plain, painted strings.Builder
	for at, i := range shown {
		blanks := gap
		if at == 0 {
			blanks = margin
		}
		cell := pad(r.cells[i].text, widths[at], all[i].right)
		plain.WriteString(strings.Repeat(" ", blanks) + cell)
		painted.WriteString(strings.Repeat(" ", blanks) + paint(cell, r.cells[i].tone))
	}
	line := painted.String()
	switch {
	case cursor: // the mark is for those without colours
		line = paint(fit("> "+plain.String()[margin:], columns), chosen)
	case ansi.StringWidth(line) > columns:
		line = fit(plain.String(), columns)
	default:
		line = strings.TrimRight(line, " ")
	}
	lines := []string{line}
	for _, m := range r.more {
		text := fit(strings.Repeat(" ", 2*margin)+m.text, columns)
		lines = append(lines, paint(text, m.tone))
	}
	return lines
}
