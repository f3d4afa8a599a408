package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"
)

// Terminal has the two ends of a terminal: keys come from one, pictures go to the other.
type Terminal struct {
	In  io.Reader
	Out io.Writer
	Now func() time.Time
}

// Drawable reports whether it is a terminal on which a screen can be drawn.
func (t Terminal) Drawable() bool {
	in, inFile := t.In.(*os.File)
	out, outFile := t.Out.(*os.File)
	return inFile && outFile && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) &&
		os.Getenv("TERM") != "dumb"
}

const (
	lookEvery = time.Second     // at the agent, while the screen is open
	patience  = 5 * time.Second // with one answer of the agent
	frames    = 10              // a second, at most
)

// Run shows the screen, which begins with facts, until the person quits or the context ends;
// neither is an error. NO_COLOR is obeyed.
func (t SiteTop) Run(ctx context.Context, on Terminal, facts SiteFacts) error {
	return show(ctx, on, newScreen(&siteSubject{top: t}, facts, on.Now()))
}

// Run shows the screen, which begins with facts, until the person quits or the context ends;
// neither is an error. NO_COLOR is obeyed.
func (t JobsTop) Run(ctx context.Context, on Terminal, facts JobsFacts) error {
	return show(ctx, on, newScreen(&jobsSubject{top: t}, facts, on.Now()))
}

// Run shows the screen, which begins with facts, until the person quits or the context ends;
// neither is an error. NO_COLOR is obeyed.
func (t FleetTop) Run(ctx context.Context, on Terminal, facts FleetFacts) error {
	return show(ctx, on, newScreen(&fleetSubject{top: t}, facts, on.Now()))
}

func show(ctx context.Context, on Terminal, s *screen) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &program{
		screen: s,
		make: func(c call) tea.Cmd {
			return func() tea.Msg { return timed(within, on.Now, c) }
		},
		later: func() tea.Cmd {
			return tea.Tick(lookEvery, func(time.Time) tea.Msg { return tick{at: on.Now()} })
		},
	}
	// Signals are the caller's: they end the context.
	running := tea.NewProgram(p, tea.WithInput(on.In), tea.WithOutput(on.Out),
		tea.WithoutSignalHandler(), tea.WithFPS(frames))
	stop := context.AfterFunc(ctx, running.Quit)
	defer stop()
	if _, err := running.Run(); err != nil {
		return fmt.Errorf("draw on the terminal: %w", err)
	}
	return nil
}

// timed makes a call, with patience, and tells how long an answer took.
func timed(ctx context.Context, now func() time.Time, c call) tea.Msg {
	once, end := context.WithTimeout(ctx, patience)
	defer end()
	began := now()
	msg := c(once)
	if a, is := msg.(answer); is {
		a.took = now().Sub(began)
		return a
	}
	return msg
}

// program is a screen as the library wants it.
type program struct {
	screen *screen
	make   func(call) tea.Cmd
	later  func() tea.Cmd
}

// Init begins to look once a second.
func (p *program) Init() tea.Cmd { return p.later() }

// Update hands a message to the screen and makes the calls that it asks for.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmds []tea.Cmd
	for _, c := range p.screen.update(msg) {
		cmds = append(cmds, p.make(c))
	}
	if p.screen.ended {
		return p, tea.Quit
	}
	if _, passed := msg.(tick); passed {
		cmds = append(cmds, p.later())
	}
	return p, tea.Batch(cmds...)
}

// View draws the screen in the terminal's second buffer, so that quitting leaves no trace.
func (p *program) View() tea.View {
	v := tea.NewView(strings.Join(p.screen.lines(), "\n"))
	v.AltScreen = true
	return v
}
