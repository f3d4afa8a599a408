package fake

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	eventBuffer = 16
	forever     = 24 * time.Hour // until the next look at the clock when nothing is due
)

// command is a word from the agent.
type command struct {
	lease   *lrm.BootTime
	stop    *string
	suspend *bool
}

// process plays one attempt. Its state belongs to the goroutine of run.
type process struct {
	at       lrm.Attempt
	does     Behaviour
	now      func() lrm.BootTime
	recorder *lrm.Recorder
	commands chan command
	events   chan lrm.Event
	done     chan struct{} // closed when result is set
	result   lrm.Result

	lease     lrm.BootTime
	frozen    bool
	suspended bool
	since     time.Time     // when it last began to run
	before    time.Duration // what it ran before since
	lines     int           // printed so far
	saved     time.Duration // run time in the state that was saved last
}

// SetLease implements lrm.Control.
func (p *process) SetLease(until lrm.BootTime) error { return p.send(command{lease: &until}) }

// Suspend implements lrm.Control.
func (p *process) Suspend(on bool) error { return p.send(command{suspend: &on}) }

// Stop implements lrm.Control.
func (p *process) Stop(why string) error { return p.send(command{stop: &why}) }

func (p *process) send(c command) error {
	select {
	case p.commands <- c:
	case <-p.done:
	}
	return nil
}

// Events implements lrm.Watch.
func (p *process) Events() <-chan lrm.Event { return p.events }

// Wait implements lrm.Watch.
func (p *process) Wait(ctx context.Context) (lrm.Result, error) {
	select {
	case <-p.done:
		return p.result, nil
	case <-ctx.Done():
		return lrm.Result{}, ctx.Err()
	}
}

func (p *process) run() {
	exit, outputs := lrm.EndWith(p.at, p.play())
	p.result = lrm.Result{
		Exit: exit, Outputs: outputs,
		Stdout: lrm.StreamFile(p.at.StdoutPath()), Stderr: lrm.StreamFile(p.at.StderrPath()),
	}
	p.recorder.Close()
	close(p.events)
	close(p.done)
}

func (p *process) play() grid.Exit {
	if p.now() >= p.lease {
		return grid.Exit{Cause: grid.CauseStopped, Text: "the lease ended before the start"}
	}
	if err := p.recorder.Append(lrm.Record{Event: lrm.RecordStarted}); err != nil {
		return grid.Exit{Cause: grid.CauseSandbox, Text: err.Error()}
	}
	p.goOn()
	p.since = time.Now()
	p.emit(lrm.Started)
	exit, ended := p.overLimit()
	for !ended {
		exit, ended = p.step()
	}
	exit.Wall = max(p.ran(), 1)
	if err := p.recorder.Append(lrm.Record{
		Event: lrm.RecordEnded, Cause: exit.Cause.String(),
	}); err != nil {
		return grid.Exit{Cause: grid.CauseSandbox, Text: err.Error(), Wall: exit.Wall}
	}
	return exit
}

// overLimit ends an attempt that wants more than it may have.
func (p *process) overLimit() (grid.Exit, bool) {
	limits := p.at.Limits
	switch {
	case p.does.Memory > limits.MemoryBytes:
		return grid.Exit{
			Cause: grid.CauseMemory,
			Text:  "wanted more than its " + grid.FormatBytes(limits.MemoryBytes) + " of memory",
		}, true
	case p.does.Disk > limits.DiskBytes:
		return grid.Exit{
			Cause: grid.CauseDisk,
			Text:  "wanted more than its " + grid.FormatBytes(limits.DiskBytes) + " of disk",
		}, true
	case p.does.Endless:
		p.append(strings.Repeat("x", int(limits.OutputBytes)-len(p.does.Stdout)))
		return grid.Exit{
			Cause: grid.CauseOutput, Text: "printed more than " + grid.FormatBytes(limits.OutputBytes),
		}, true
	default:
		return grid.Exit{}, false
	}
}

// step does what is due, then waits for the next thing.
func (p *process) step() (exit grid.Exit, ended bool) {
	p.followLease()
	if !p.frozen {
		p.printDue()
		p.saveDue()
		switch limit := p.at.Limits.WallTime; {
		case p.does.Run >= 0 && p.ran() >= p.does.Run:
			return p.finish(), true
		case limit > 0 && p.ran() >= limit:
			return grid.Exit{Cause: grid.CauseTimeLimit, Text: "ran longer than " + limit.String()}, true
		}
	}
	timer := time.NewTimer(p.untilNext())
	defer timer.Stop()
	select {
	case c := <-p.commands:
		if c.stop != nil {
			return grid.Exit{Cause: grid.CauseStopped, Text: *c.stop}, true
		}
		if c.lease != nil {
			p.lease = *c.lease
		}
		if c.suspend != nil {
			p.suspended = *c.suspend
		}
	case <-timer.C:
	}
	return grid.Exit{}, false
}

// followLease freezes or resumes, as lease and suspension say.
func (p *process) followLease() {
	over := p.suspended || p.now() >= p.lease
	switch {
	case over && !p.frozen:
		p.before, p.frozen = p.ran(), true
		_ = p.recorder.Append(lrm.Record{Event: lrm.RecordFrozen})
		p.emit(lrm.Frozen)
	case !over && p.frozen:
		_ = p.recorder.Append(lrm.Record{Event: lrm.RecordResumed})
		p.since, p.frozen = time.Now(), false
		p.emit(lrm.Resumed)
	}
}

func (p *process) ran() time.Duration {
	if p.frozen {
		return p.before
	}
	return p.before + time.Since(p.since)
}

// untilNext is the time until the lease, the end, a limit or a line is due.
func (p *process) untilNext() time.Duration {
	if p.frozen {
		return forever
	}
	next := min(forever, p.lease.Sub(p.now()))
	if p.does.Run >= 0 {
		next = min(next, p.does.Run-p.ran())
	}
	if limit := p.at.Limits.WallTime; limit > 0 {
		next = min(next, limit-p.ran())
	}
	if p.saves() {
		next = min(next, p.saved+p.does.Save-p.ran())
	}
	if p.lines < p.does.Lines {
		next = min(next, p.lineAt(p.lines)-p.ran())
	}
	return max(next, 0)
}

// lineAt is when, in running time, line i is printed.
func (p *process) lineAt(i int) time.Duration {
	return time.Duration(int64(p.does.Run) / int64(p.does.Lines) * int64(i))
}

func (p *process) printDue() {
	for p.lines < p.does.Lines && p.ran() >= p.lineAt(p.lines) {
		p.append(fmt.Sprintf("tick %d\n", p.lines))
		p.lines++
	}
}

func (p *process) append(text string) {
	f, err := os.OpenFile(p.at.StdoutPath(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	_, _ = f.WriteString(text)
	f.Close()
}

// finish is the end that the script asks for.
func (p *process) finish() grid.Exit {
	for name, content := range p.does.Files {
		if err := p.put(name, content); err != nil {
			return grid.Exit{Cause: grid.CauseSandbox, Text: err.Error()}
		}
	}
	exit := grid.Exit{Cause: p.does.Cause, Code: p.does.Code, Text: p.does.Text}
	if exit.Cause == 0 {
		exit.Cause = grid.CauseExited
	}
	return exit
}

func (p *process) put(name, content string) error {
	root, err := os.OpenRoot(p.at.WorkDir())
	if err != nil {
		return err
	}
	defer root.Close()
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return root.WriteFile(name, []byte(content), 0o600)
}

// emit hands an event to a reader; a full queue drops the oldest.
func (p *process) emit(kind lrm.EventKind) {
	for {
		select {
		case p.events <- lrm.Event{Kind: kind, At: p.now()}:
			return
		default:
		}
		select {
		case <-p.events:
		default:
		}
	}
}
