//go:build unix

package scripttest

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"
)

const (
	screenLimit  = 30 * time.Second // for what is to be seen
	screenRedraw = time.Second      // before the window is asked to draw everything anew
	usualColumns = 80
)

// escapes are the sequences that move the cursor, set colours and the like.
var escapes = regexp.MustCompile(
	`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P][^\x07\x1b]*(\x07|\x1b\\)|\x1b[@-_]`)

// colors are the sequences that set one.
var colors = regexp.MustCompile(`\x1b\[([0-9]+;)*[349][0-9](;[0-9]+)*m`)

// terminal runs a program on a terminal of 80 columns and 24 lines and works with it as a file
// says: lines "see PATTERN", "press KEYS" and "agent ARGS". Then the program has to end by itself,
// with code 0 or the one that is wanted, and to leave the terminal as it was.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	flags := flag.NewFlagSet("terminal", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	columns := flags.Uint("columns", usualColumns, "")
	lines, code := flags.Bool("lines", false, ""), flags.Int("code", 0, "")
	err := flags.Parse(args)
	args = flags.Args()
	if neg || err != nil || len(args) < 2 || *columns == 0 || *columns > 1000 {
		ts.Fatalf("usage: terminal [-columns N] [-lines] [-code N] FILE PROGRAM ARGS")
	}
	w, err := openWindow(ts, uint16(*columns), args[1], args[2:])
	ts.Check(err)
	defer w.close()
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		order, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch order {
		case "":
		case "see":
			ts.Check(w.see(regexp.MustCompile(what)))
		case "press":
			ts.Check(w.press(ts, what))
		case "agent":
			agent(ts, false, strings.Fields(what))
		default:
			ts.Fatalf("%s: %q: want see, press or agent", args[0], order)
		}
	}
	ts.Check(w.restored(*code))
	if !*lines {
		ts.Check(w.cleared())
	}
}

// window is a program on a terminal of its own.
type window struct {
	keys, inside *os.File // the two ends of the terminal
	columns      uint16
	before       *term.State
	cmd          *exec.Cmd
	plain        bool       // NO_COLOR is set
	ended        chan error // how the program ended
	drawn        chan struct{}
	news         chan struct{} // capacity 1: something was drawn

	mu   sync.Mutex
	text []byte // guarded by mu: what was drawn
	from int    // where what was drawn since the last key begins
}

func openWindow(
	ts *testscript.TestScript, columns uint16, program string, args []string,
) (*window, error) {
	keys, inside, err := pty.Open()
	if err != nil {
		return nil, err
	}
	w := &window{
		keys: keys, inside: inside, columns: columns, ended: make(chan error, 1),
		drawn: make(chan struct{}), news: make(chan struct{}, 1),
	}
	w.plain = ts.Getenv("NO_COLOR") != ""
	if err = w.resize(24); err != nil {
		return nil, err
	}
	if w.before, err = term.GetState(int(inside.Fd())); err != nil {
		return nil, err
	}
	env, err := environment(ts)
	if err != nil {
		return nil, err
	}
	line := stageOf(ts).command(ts, program, args)
	w.cmd = exec.Command(line[0], line[1:]...) //nolint:noctx,gosec // close ends it; what we built
	w.cmd.Dir, w.cmd.Env = ts.MkAbs("."), append(env, "TERM=xterm-256color")
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = inside, inside, inside
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { w.ended <- w.cmd.Wait() }()
	go w.read()
	return w, nil
}

// read keeps what is drawn until the terminal is closed.
func (w *window) read() {
	defer close(w.drawn)
	for part := make([]byte, 4096); ; {
		n, err := w.keys.Read(part)
		w.mu.Lock()
		w.text = append(w.text, part[:n]...)
		w.mu.Unlock()
		select {
		case w.news <- struct{}{}:
		default: // it is to look anyway
		}
		if err != nil {
			return
		}
	}
}

func (w *window) resize(rows uint16) error {
	return pty.Setsize(w.keys, &pty.Winsize{Rows: rows, Cols: w.columns})
}

// shown are the texts drawn since the last key, without the sequences that move the cursor.
func (w *window) shown() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return escapes.ReplaceAllString(string(w.text[w.from:]), " ")
}

// see waits until a pattern is drawn. A program draws only what differs from before, so after a
// while it is made to draw everything, by another size for a moment.
func (w *window) see(pattern *regexp.Regexp) error {
	limit, redraw := time.NewTimer(screenLimit), time.NewTicker(screenRedraw)
	defer limit.Stop()
	defer redraw.Stop()
	for size := uint16(23); !pattern.MatchString(w.shown()); {
		select {
		case <-w.news:
		case <-limit.C:
			return fmt.Errorf("no match for %s within %s in:\n%s", pattern, screenLimit, w.shown())
		case <-redraw.C:
			if err := w.resize(size); err != nil {
				return err
			}
			size = 23 + 24 - size
		}
	}
	return w.resize(24)
}

func (w *window) press(ts *testscript.TestScript, keys string) error {
	w.mu.Lock()
	w.from = len(w.text)
	w.mu.Unlock()
	switch keys {
	case "enter":
		keys = "\r"
	case "tab":
		keys = "\t"
	case "^C":
		keys = "\x03"
	default:
		keys = os.Expand(keys, ts.Getenv)
	}
	_, err := w.keys.WriteString(keys)
	return err
}

// restored waits for the end, and wants the exit code, and the terminal as it was.
func (w *window) restored(code int) error {
	select {
	case err := <-w.ended:
		w.ended <- err
		if have := w.cmd.ProcessState.ExitCode(); have != code {
			return fmt.Errorf("the program ended with code %d, want %d:\n%s", have, code, w.shown())
		}
	case <-time.After(screenLimit):
		return fmt.Errorf("the program did not end within %s:\n%s", screenLimit, w.shown())
	}
	after, err := term.GetState(int(w.inside.Fd()))
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(w.before, after) {
		return fmt.Errorf("the terminal was in the state %v and is in %v", *w.before, *after)
	}
	w.close()
	return nil
}

// cleared wants the screen given back by a program that drew on all of it.
func (w *window) cleared() error {
	for _, order := range []string{"\x1b[?1049l", "\x1b[?25h"} { // its first buffer, and the cursor
		if !strings.Contains(string(w.text), order) {
			return fmt.Errorf("the program did not write %q at its end", order)
		}
	}
	if color := colors.FindString(string(w.text)); w.plain && color != "" {
		return fmt.Errorf("the program wrote %q, with NO_COLOR", color)
	}
	return nil
}

// close ends the program if it has not ended, and waits for the last of what it drew.
func (w *window) close() {
	_ = w.cmd.Process.Kill() // it may have ended
	w.ended <- <-w.ended
	_ = w.inside.Close() // a second time, too
	<-w.drawn
	_ = w.keys.Close() // likewise
}
