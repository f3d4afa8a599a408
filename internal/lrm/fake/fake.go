// Package fake is an adapter that runs nothing and plays the effects of scripts
// instead, for tests of what is above lrm and for demonstrations. It keeps leases
// and limits, writes the run record and leaves files as the real adapters do. Its
// attempts live in this process, so none outlives its agent.
package fake

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Behaviour says what a program does, as seen from outside. The zero
// value exits with code 0 immediately and leaves nothing.
type Behaviour struct {
	FailStart error // Start answers this and nothing runs
	// how long it runs, frozen time left out; negative: until it is stopped
	Run     time.Duration
	Cause   grid.ExitCause    // how it ends; 0 is CauseExited
	Code    int               // exit code or signal
	Text    string            // of the end
	Stdout  string            // printed at the start
	Stderr  string            // printed at the start
	Lines   int               // lines printed to stdout evenly over Run
	Files   map[string]string // sandbox path to content, written at the end
	Memory  int64             // bytes it wants; beyond the limit it ends with CauseMemory immediately
	Disk    int64             // bytes it writes; beyond the limit it ends with CauseDisk immediately
	Save    time.Duration     // it saves its state so often, and goes on from one; 0: it does not
	Note    string            // one line that its state holds beside the time that it has run
	Endless bool              // prints without end: ends with CauseOutput immediately
}

// Config says what the adapter plays.
type Config struct {
	// Kind is the kind of work it claims to run; 0 is grid.KindWasm.
	Kind grid.WorkKind
	// Script chooses what an attempt does; nil is ByArgs.
	Script func(lrm.Attempt) Behaviour
	// Now is the clock of leases; nil is lrm.BootNow. A test in a bubble of virtual
	// time gives one made from time.Now.
	Now func() lrm.BootTime
}

// Adapter implements lrm.Adapter.
type Adapter struct {
	config Config
}

// New makes an adapter.
func New(config Config) *Adapter {
	if config.Kind == 0 {
		config.Kind = grid.KindWasm
	}
	if config.Script == nil {
		config.Script = byArgs
	}
	if config.Now == nil {
		config.Now = lrm.BootNow
	}
	return &Adapter{config: config}
}

// Probe implements lrm.Adapter.
func (a *Adapter) Probe(context.Context) lrm.Support {
	return lrm.Support{
		Kinds: []grid.WorkKind{a.config.Kind}, Freeze: true,
		Notes: []string{"plays programs instead of running them"},
	}
}

// Recover implements lrm.Adapter: attempts of an earlier agent ended with it.
func (a *Adapter) Recover(ctx context.Context) error { return ctx.Err() }

// Start implements lrm.Adapter.
func (a *Adapter) Start(ctx context.Context, at lrm.Attempt) (lrm.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := at.Validate(); err != nil {
		return nil, err
	}
	does := a.config.Script(at)
	if does.FailStart != nil {
		return nil, does.FailStart
	}
	if err := lrm.PrepareDir(at); err != nil {
		return nil, fmt.Errorf("prepare sandbox: %w", err)
	}
	recorder, err := lrm.OpenRecorder(at.RecordPath, at.ID)
	if err != nil {
		return nil, err
	}
	at.Limits = at.Limits.OrDefault()
	p := &process{
		at: at, does: does, now: a.config.Now, recorder: recorder, lease: at.LeaseUntil,
		commands: make(chan command), events: make(chan lrm.Event, eventBuffer),
		done: make(chan struct{}),
	}
	if err := p.print(); err != nil {
		recorder.Close()
		return nil, err
	}
	go p.run()
	return p, nil
}

// print leaves what is printed at the start, as far as the limits let it.
func (p *process) print() error {
	keep := func(path, text string) error {
		text = text[:min(int64(len(text)), p.at.Limits.OutputBytes)]
		return os.WriteFile(path, []byte(text), 0o600)
	}
	if err := keep(p.at.StdoutPath(), p.does.Stdout); err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	if err := keep(p.at.StderrPath(), p.does.Stderr); err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	return nil
}
