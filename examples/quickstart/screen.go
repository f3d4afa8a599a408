package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// screen is where the quickstart speaks. On a terminal its progress is one line
// that is drawn again and again; elsewhere a line now and then.
type screen struct {
	out      io.Writer
	terminal bool
	verbose  bool
	began    time.Time
	drawn    string    // the progress that stands on the terminal, or was printed last
	printed  time.Time // when, if not on a terminal
}

const (
	clearLine    = "\r\x1b[K"
	plainEvery   = 2 * time.Second
	terminalCols = 78
)

func newScreen(out *os.File, verbose bool) *screen {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &screen{out: out, terminal: terminal, verbose: verbose, began: time.Now()}
}

// say prints a line that stays.
func (s *screen) say(format string, args ...any) {
	s.wipe()
	fmt.Fprintf(s.out, "[%5.1fs] %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// detail prints a line for those who asked for it.
func (s *screen) detail(format string, args ...any) {
	if s.verbose {
		s.say(format, args...)
	}
}

// final prints the last line as it is.
func (s *screen) final(line string) {
	s.wipe()
	fmt.Fprintln(s.out, line)
}

// rows is where tables are written.
func (s *screen) rows() io.Writer {
	s.wipe()
	return s.out
}

// progress shows how far things are.
func (s *screen) progress(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	switch {
	case line == s.drawn:
	case s.terminal:
		if s.drawn = line; len(line) > terminalCols {
			line = line[:terminalCols]
		}
		fmt.Fprint(s.out, clearLine+line)
	case time.Since(s.printed) >= plainEvery:
		s.drawn, s.printed = line, time.Now()
		fmt.Fprintf(s.out, "[%5.1fs] %s\n", time.Since(s.began).Seconds(), line)
	}
}

// wipe clears a line of progress that still stands on the terminal.
func (s *screen) wipe() {
	if s.terminal && s.drawn != "" {
		fmt.Fprint(s.out, clearLine)
	}
	s.drawn = ""
}
