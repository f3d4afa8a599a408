package main

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// chunk holds the output of one moment, counted from the start of the command.
type chunk struct {
	at   time.Duration
	text string
}

// still is one line of the screen for as long as it looked the same.
type still struct {
	row         int
	text        string
	from, until time.Duration
}

// film is a whole recording.
type film struct {
	stills  []still
	rows    int
	columns int // of the longest line
	end     time.Duration
}

const (
	frame   = 120 * time.Millisecond // chunks closer than this are one picture
	reading = 6 * time.Second        // for the last screen
	tabStop = 8
)

// shorten cuts pauses and joins what is too close to be told apart.
func shorten(chunks []chunk, longest time.Duration) []chunk {
	var short []chunk
	var last, at time.Duration // of the original and of the shortened time
	for _, c := range chunks {
		pause := min(c.at-last, longest)
		last = c.at
		at += pause
		if n := len(short); n > 0 && at-short[n-1].at < frame {
			short[n-1].text += c.text
			continue
		}
		short = append(short, chunk{at, c.text})
	}
	return short
}

// play shows the chunks on a terminal that is as high as they need.
func play(chunks []chunk, columns int) *film {
	f := &film{}
	var open []still // by row
	t := terminal{columns: columns}
	for _, c := range chunks {
		t.write(c.text)
		f.end = c.at
		for row := range t.lines {
			open = f.show(open, row, t.line(row), c.at)
		}
	}
	f.end += reading
	for _, s := range open {
		f.close(s, f.end)
	}
	f.rows = len(open)
	slices.SortStableFunc(f.stills, func(a, b still) int { return int(a.from - b.from) })
	return f
}

// show notes that a row looks like this from now on.
func (f *film) show(open []still, row int, text string, at time.Duration) []still {
	if row == len(open) {
		return append(open, still{row: row, text: text, from: at})
	}
	if open[row].text != text {
		f.close(open[row], at)
		open[row] = still{row: row, text: text, from: at}
	}
	return open
}

func (f *film) close(s still, at time.Duration) {
	s.until = at
	if s.text == "" || s.until <= s.from {
		return
	}
	f.columns = max(f.columns, utf8.RuneCountInString(s.text))
	f.stills = append(f.stills, s)
}

// terminal understands what our programs print: lines, carriage returns, tabs, and
// "erase to the end of the line". Other control sequences are skipped.
type terminal struct {
	columns  int
	lines    [][]rune
	row, col int
	escape   string // a control sequence that has begun
}

func (t *terminal) line(row int) string { return strings.TrimRight(string(t.lines[row]), " ") }

func (t *terminal) write(text string) {
	for _, r := range text {
		switch {
		case t.escape != "" || r == '\x1b':
			t.control(r)
		case r == '\r':
			t.col = 0
		case r == '\n':
			t.row, t.col = t.row+1, 0
		case r == '\t':
			t.col = (t.col/tabStop + 1) * tabStop
		case r >= ' ':
			t.put(r)
		}
	}
}

func (t *terminal) put(r rune) {
	if t.col >= t.columns {
		t.row, t.col = t.row+1, 0
	}
	for len(t.lines) <= t.row {
		t.lines = append(t.lines, nil)
	}
	for len(t.lines[t.row]) <= t.col {
		t.lines[t.row] = append(t.lines[t.row], ' ')
	}
	t.lines[t.row][t.col] = r
	t.col++
}

// control takes the next character of a sequence, which ends with a letter.
func (t *terminal) control(r rune) {
	t.escape += string(r)
	if r == '\x1b' || r == '[' || r == '?' || r == ';' || (r >= '0' && r <= '9') {
		return
	}
	if r == 'K' && t.row < len(t.lines) {
		t.lines[t.row] = t.lines[t.row][:min(t.col, len(t.lines[t.row]))]
	}
	t.escape = ""
}
