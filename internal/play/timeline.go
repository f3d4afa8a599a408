package play

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

const lineColumns = 72

// timeLine draws a line of time for each site, and one below it where something
// happened to the site.
func (rec *Record) timeLine() string {
	lines, end := rec.siteLines()
	width := columnOf(end)
	columns := int(end/width) + 1
	var b strings.Builder
	fmt.Fprintf(&b, "time line: a column is %s\n", width)
	b.WriteString("       " + ruler(columns, width) + "\n")
	for _, l := range lines {
		work, fate := make([]byte, columns), make([]byte, columns)
		for i := range columns {
			of := span{time.Duration(i) * width, time.Duration(i+1) * width}
			work[i], fate[i] = l.work(of), l.fate(of)
		}
		fmt.Fprintf(&b, "  %-4s %s\n", l.name, work)
		if below := strings.TrimRight(string(fate), " "); below != "" {
			fmt.Fprintf(&b, "       %s\n", below)
		}
	}
	b.WriteString("  1-9 tasks run, + more, f frozen, . none, x the agent is dead; below:\n" +
		"  / cut off, m mute, p paused, o its owner is busy, L given up here by the submitter\n")
	return b.String()
}

// columnOf is the time of a column so that all fit.
func columnOf(end time.Duration) time.Duration {
	for unit := 100 * time.Millisecond; ; unit *= 10 {
		for _, width := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if end/width < lineColumns {
				return width
			}
		}
	}
}

// ruler marks every tenth column with its time.
func ruler(columns int, width time.Duration) string {
	var b strings.Builder
	for i := 0; i < columns; i += 10 {
		fmt.Fprintf(&b, "%-10s", (time.Duration(i) * width).String())
	}
	return strings.TrimRight(b.String(), " ")
}

// work is the letter of a column in a site's line.
func (l *siteLine) work(of span) byte {
	switch n := mostAtOnce(l.spans(false), of); {
	case n > 9:
		return '+'
	case n > 0:
		return strconv.Itoa(n)[0]
	}
	switch {
	case mostAtOnce(l.down, of) > 0:
		return 'x'
	case mostAtOnce(l.spans(true), of) > 0:
		return 'f'
	default:
		return '.'
	}
}

// fate is the letter of a column below a site's line.
func (l *siteLine) fate(of span) byte {
	for _, m := range l.marks {
		if m.what == markLost && of.from <= m.at && m.at < of.to {
			return 'L'
		}
	}
	letters := map[scenario.Kind]byte{
		scenario.Isolate: '/', scenario.Silent: 'm', scenario.Pause: 'p', scenario.Busy: 'o',
		scenario.Upset: '!',
	}
	for _, t := range l.troubles {
		if t.touches(of) {
			return letters[t.kind]
		}
	}
	return ' '
}

// mostAtOnce returns the largest number of spans that overlap within another one.
func mostAtOnce(spans []span, within span) int {
	most := 0
	for _, a := range spans {
		if !a.touches(within) {
			continue
		}
		at, n := max(a.from, within.from), 0
		for _, b := range spans {
			if b.from <= at && at < b.to {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
