//go:build e2e && unix

package e2e_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// terminal is a program on a terminal of its own, with a screen that can be read.
type terminal struct {
	t            *testing.T
	name         string // for what is kept and said of it
	keys, inside *os.File
	cmd          *exec.Cmd
	ended        chan struct{} // closed when the program has ended
	drawn        chan struct{} // closed when all that it wrote is on the screen
	answered     chan struct{} // closed when the screen asks nothing more

	mu      sync.Mutex
	screen  *vt.Emulator // guarded by mu
	before  *term.State
	written []byte // guarded by mu
	shown   int    // screens that were kept
}

// Sizes of a terminal: the usual one, a part of a window, and next to nothing.
var usualSize, halfSize, tinySize = [2]int{80, 24}, [2]int{60, 20}, [2]int{20, 10}

// screenLimit bounds the time for anything to be seen, on a busy machine.
const screenLimit = 40 * time.Second

// openTerminal starts a program on a terminal of the usual size. It is killed with the test if it
// has not ended.
func openTerminal(t *testing.T, name string, env []string, program ...string) *terminal {
	t.Helper()
	keys, inside, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	w := &terminal{
		t: t, name: name, keys: keys, inside: inside, ended: make(chan struct{}),
		drawn: make(chan struct{}), answered: make(chan struct{}),
		screen: vt.NewEmulator(usualSize[0], usualSize[1]),
	}
	w.resize(usualSize)
	if w.before, err = term.GetState(int(inside.Fd())); err != nil {
		t.Fatal(err)
	}
	w.cmd = exec.Command(program[0], program[1:]...)
	w.cmd.Env = append(env, "TERM=xterm-256color")
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = inside, inside, inside
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = w.cmd.Wait(); close(w.ended) }()
	go w.draw()
	go func() { // what a program asks the terminal, such as its colours
		_, _ = io.Copy(keys, w.screen)
		close(w.answered)
	}()
	t.Cleanup(w.close)
	return w
}

// draw puts what the program writes on the screen until the terminal is closed.
func (w *terminal) draw() {
	defer close(w.drawn)
	for part := make([]byte, 4096); ; {
		n, err := w.keys.Read(part)
		w.mu.Lock()
		w.written = append(w.written, part[:n]...)
		_, _ = w.screen.Write(part[:n]) // it takes all
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// close ends the program if it has not ended, and the terminal.
func (w *terminal) close() {
	_ = w.cmd.Process.Kill() // it may have ended
	<-w.ended
	_ = w.inside.Close() // the reader sees the end
	<-w.drawn
	_ = w.screen.Close()
	<-w.answered
	_ = w.keys.Close()
}

func (w *terminal) resize(size [2]int) {
	w.t.Helper()
	w.mu.Lock()
	w.screen.Resize(size[0], size[1])
	w.mu.Unlock()
	to := pty.Winsize{Cols: uint16(size[0]), Rows: uint16(size[1])}
	if err := pty.Setsize(w.keys, &to); err != nil {
		w.t.Fatal(err)
	}
}

// lines are those of the screen, without blanks at their ends.
func (w *terminal) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := strings.Split(w.screen.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}

func (w *terminal) text() string { return strings.Join(w.lines(), "\n") }

// see waits until a pattern is on the screen, whose lines are joined by newlines.
func (w *terminal) see(pattern string) {
	w.t.Helper()
	wanted := regexp.MustCompile("(?m)" + pattern)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(screenLimit); time.Now().Before(deadline); <-tick.C {
		if wanted.MatchString(w.text()) {
			return
		}
	}
	w.keep("failed")
	w.t.Fatalf("%s: no match for %s within %s on the screen:\n%s",
		w.name, pattern, screenLimit, w.text())
}

// press types keys.
func (w *terminal) press(keys string) {
	w.t.Helper()
	if _, err := w.keys.WriteString(keys); err != nil {
		w.t.Fatal(err)
	}
}

// answer types a line.
func (w *terminal) answer(line string) { w.t.Helper(); w.press(line + "\r") }

// keep puts the screen into the folder that MRS_WALK_SCREENS names, as text.
func (w *terminal) keep(what string) {
	w.t.Helper()
	dir := os.Getenv("MRS_WALK_SCREENS")
	if dir == "" {
		return
	}
	w.shown++
	name := fmt.Sprintf("%s-%02d-%s.txt", w.name, w.shown, what)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(w.text()+"\n"), 0o600); err != nil {
		w.t.Error(err)
	}
}

// wantDrawn waits until a program has drawn its full screen anew at a size: the first and the last
// line are there, in full, and no line is wider. It is kept.
func (w *terminal) wantDrawn(size [2]int, first, last string) {
	w.t.Helper()
	w.resize(size)
	top, bottom := regexp.MustCompile("^"+first+"$"), regexp.MustCompile("^"+last+"$")
	drawn := func() bool {
		lines := w.lines()
		return len(lines) == size[1] && top.MatchString(lines[0]) &&
			bottom.MatchString(lines[size[1]-1])
	}
	what := fmt.Sprintf("%dx%d", size[0], size[1])
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(screenLimit); !drawn(); <-tick.C {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s at %s: want %s to %s on the screen:\n%s",
				w.name, what, first, last, w.text())
		}
	}
	w.keep(what)
	for _, line := range w.lines() {
		if ansi.StringWidth(line) > size[0] {
			w.t.Errorf("%s at %s: a wide line: %s", w.name, what, line)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.screen.IsAltScreen() || !w.screen.CursorHidden() {
		w.t.Errorf("%s at %s: it draws on the first screen, or shows the cursor", w.name, what)
	}
}

// wantEnd waits until the program has ended with that code, and wants the terminal given back: its
// first screen, with the cursor, and keys as they were.
func (w *terminal) wantEnd(code int) {
	w.t.Helper()
	select {
	case <-w.ended:
	case <-time.After(screenLimit):
		w.t.Fatalf("%s: the program did not end; its screen:\n%s", w.name, w.text())
	}
	after, err := term.GetState(int(w.inside.Fd()))
	if err != nil || !reflect.DeepEqual(w.before, after) {
		w.t.Errorf("%s: the terminal was in the state %v and is in %v (%v)",
			w.name, *w.before, after, err)
	}
	_ = w.inside.Close()
	<-w.drawn
	if have := w.cmd.ProcessState.ExitCode(); have != code {
		w.t.Errorf("%s: the program ended with code %d, want %d:\n%s", w.name, have, code, w.text())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.screen.IsAltScreen() || w.screen.CursorHidden() {
		w.t.Errorf("%s: the second screen is left on: %v, and the cursor hidden: %v",
			w.name, w.screen.IsAltScreen(), w.screen.CursorHidden())
	}
}

// wantNarrow wants no line that a program wrote to be wider than the terminal, which would break it
// within a word, unless it is a single word, such as a path. Programs that draw a full screen are
// held by wantDrawn.
func (w *terminal) wantNarrow() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range regexp.MustCompile(`[\r\n]+`).Split(string(w.written), -1) {
		plain := strings.TrimSpace(ansi.Strip(line))
		if n := ansi.StringWidth(plain); n > usualSize[0] && strings.Contains(plain, " ") {
			w.t.Errorf("%s: a line of %d columns: %s", w.name, n, plain)
		}
	}
}
