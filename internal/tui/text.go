package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// tone says how a text is meant; colours follow it where there are any.
type tone int

const (
	usual  tone = iota
	good        // as it should be
	warn        // not now
	bad         // something is wrong
	strong      // a heading
	faint       // beside the point
	chosen      // the row under the cursor
)

// said is a text with its tone.
type said struct {
	text string
	tone tone
}

const ellipsis = "…"

// narrow is a width, in columns: a window below it has no space for bars beside numbers.
const narrow = 40

// fit makes of a text one line of at most so many columns that steers no terminal. Every text that
// is drawn passes here or through wrap, also those that strangers wrote.
func fit(text string, columns int) string {
	if columns < 1 {
		return ""
	}
	return ansi.Truncate(grid.Plain(text), columns, ellipsis)
}

// wrap breaks a text into lines of at most so many columns.
func wrap(text string, columns int) []string {
	if columns < 1 {
		return nil
	}
	lines := strings.Split(ansi.Wrap(grid.Plain(text), columns, ""), "\n")
	for i, line := range lines {
		lines[i] = fit(line, columns) // a character may be wider than the window
	}
	return lines
}

// wrapped is a text of the usual tone in as many lines as it takes.
func wrapped(text string, columns int) []said {
	var lines []said
	for _, line := range wrap(text, columns) {
		lines = append(lines, said{line, usual})
	}
	return lines
}

// pad fits a text and fills it with blanks, before it if it is to stand at the right.
func pad(text string, columns int, right bool) string {
	text = fit(text, columns)
	blanks := strings.Repeat(" ", max(columns-ansi.StringWidth(text), 0))
	if right {
		return blanks + text
	}
	return text + blanks
}

// paint gives a text the looks of its tone.
func paint(text string, t tone) string {
	switch t {
	case good:
		return ansi.NewStyle(ansi.AttrGreenForegroundColor).Styled(text)
	case warn:
		return ansi.NewStyle(ansi.AttrYellowForegroundColor).Styled(text)
	case bad:
		return ansi.NewStyle(ansi.AttrRedForegroundColor).Styled(text)
	case strong:
		return ansi.NewStyle(ansi.AttrBold).Styled(text)
	case faint:
		return ansi.NewStyle(ansi.AttrFaint).Styled(text)
	case chosen:
		return ansi.NewStyle(ansi.AttrReverse).Styled(text)
	default:
		return text
	}
}

// bar is "[###.....]" of so many columns, brackets included: how much of a whole. Something is
// never drawn as nothing.
func bar(part, whole int64, columns int) string {
	inside := max(columns-2, 0)
	full := 0
	if part > 0 && whole > 0 {
		full = int(float64(min(part, whole)) / float64(whole) * float64(inside))
		full = min(max(full, 1), inside)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", inside-full) + "]"
}
