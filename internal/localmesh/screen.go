package localmesh

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Screen is a program's output to the person who started it. On a terminal its progress
// is one line that is redrawn; elsewhere it prints a line now and then.
type Screen struct {
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

// NewScreen speaks to a terminal, a file or anything else; with verbose it prints details, too.
func NewScreen(out io.Writer, verbose bool) *Screen {
	terminal := false
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return &Screen{out: out, terminal: terminal, verbose: verbose, began: time.Now()}
}

// Say prints a line that stays.
func (s *Screen) Say(format string, args ...any) {
	s.wipe()
	fmt.Fprintf(s.out, "[%5.1fs] %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// Detail prints a line for those who asked for it.
func (s *Screen) Detail(format string, args ...any) {
	if s.verbose {
		s.Say(format, args...)
	}
}

// Verbose reports whether details are wanted.
func (s *Screen) Verbose() bool { return s.verbose }

// Final prints the last line as it is.
func (s *Screen) Final(line string) {
	s.wipe()
	fmt.Fprintln(s.out, line)
}

// Rows returns the writer for tables.
func (s *Screen) Rows() io.Writer {
	s.wipe()
	return s.out
}

// Progress shows how far things are.
func (s *Screen) Progress(format string, args ...any) {
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
func (s *Screen) wipe() {
	if s.terminal && s.drawn != "" {
		fmt.Fprint(s.out, clearLine)
	}
	s.drawn = ""
}
