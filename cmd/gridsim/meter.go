package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// meter tells how far a command is, and how long the rest may take. On a terminal it is one line
// that is redrawn; elsewhere it is a line now and then.
type meter struct {
	out      io.Writer
	now      func() time.Time
	terminal bool
	all      int // runs
	began    time.Time
	next     time.Time // of the next line, no sooner
	drawn    bool      // a line is on the terminal
}

const (
	// lineEvery bounds the time between two lines where nothing can be redrawn.
	lineEvery = 10 * time.Second
	// redrawEvery is as often as people can read.
	redrawEvery = 100 * time.Millisecond
	// barCells is the width of the bar.
	barCells = 24
)

// newMeter is for so many runs. It draws nothing yet.
func newMeter(out io.Writer, now func() time.Time, all int) *meter {
	m := &meter{out: out, now: now, terminal: isTerminal(out), all: all, began: now()}
	m.next = m.began
	if !m.terminal {
		m.next = m.began.Add(lineEvery)
	}
	return m
}

// isTerminal says whether lines can be redrawn there.
func isTerminal(out io.Writer) bool {
	file, is := out.(*os.File)
	return is && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// tell is told after each run how many are done.
func (m *meter) tell(done int) {
	now := m.now()
	if now.Before(m.next) || done >= m.all {
		return
	}
	if !m.terminal {
		m.next = now.Add(lineEvery)
		fmt.Fprintln(m.out, m.words(done, now))
		return
	}
	m.next, m.drawn = now.Add(redrawEvery), true
	full := barCells * done / m.all
	fmt.Fprintf(m.out, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full),
		strings.Repeat(".", barCells-full), m.words(done, now))
}

// clear takes the line off the terminal, so that results begin on an empty one.
func (m *meter) clear() {
	if m.drawn {
		fmt.Fprint(m.out, "\r\x1b[K")
		m.drawn = false
	}
}

// words estimates what is left by what the runs that are done took on average.
func (m *meter) words(done int, now time.Time) string {
	if done == 0 {
		return fmt.Sprintf("0 of %d runs", m.all)
	}
	left := time.Duration(float64(now.Sub(m.began)) / float64(done) * float64(m.all-done))
	return fmt.Sprintf("%d of %d runs, about %s left", done, m.all, roughly(left))
}

// roughly is a time as people say it: 40s, 3m20s, 2h5m.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return d.Round(10 * time.Second).String()
	default:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
}
