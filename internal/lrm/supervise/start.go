package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ErrUnsupported means that attempts cannot be supervised on this system.
var ErrUnsupported = errors.New("supervising processes is not supported on this system")

// isProcess reports whether a process ID can be that of a runner.
func isProcess(pid int) bool { return pid > 1 }

const (
	eventBuffer  = 16
	writeTimeout = time.Second      // for a command
	specTimeout  = 10 * time.Second // for the first line, while a busy machine starts the supervisor
	orphanGrace  = time.Second      // for a sandbox whose supervisor died
	stopTimeout  = 5 * time.Second  // then a supervisor that does not stop is killed itself
)

// Hooks are what an adapter does for an attempt besides.
type Hooks struct {
	// Finish makes the result of an attempt's end. It is called once, when the runner is gone, or
	// when nothing but its warm sandbox is left. kept: that stays.
	Finish func(e Ending, kept bool) lrm.Result
	// Empty removes all that the attempt left in its warm sandbox, and moves the sandbox's root
	// out of the attempt's directory; nil where there is no such sandbox.
	Empty func() (root string, err error)
	// Gone is called when a warm sandbox has ended that was kept. root: the place to which Empty
	// moved it; empty: it is still in the attempt's directory.
	Gone func(root string)
}

func specDeadline(ctx context.Context) time.Time {
	deadline := time.Now().Add(specTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		return d
	}
	return deadline
}

// baseEnv is the environment of supervisors: nothing of the agent's own, which
// may hold secrets, but what the Go runtime wants for measuring tests.
func baseEnv(processors int) []string {
	env := []string{"LANG=C", "GOMAXPROCS=" + strconv.Itoa(processors)}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return env
}

// process is the agent's side of a supervisor.
type process struct {
	spec   Spec
	pool   *Pool
	hooks  Hooks
	events chan lrm.Event
	done   chan struct{} // closed when result is set
	fresh  bool          // its supervisor has said nothing since its start; for watch alone

	mu    sync.Mutex // guards child, and is held while it is written to
	child *child     // nil when the attempt has ended
	kept  *child     // guarded by mu; has the warm sandbox until that is emptied; nil: none

	runner atomic.Int64 // process ID; 0 = not started; written by watch alone
	result lrm.Result
}

// SetLease implements lrm.Control.
func (p *process) SetLease(until lrm.BootTime) error { return p.command(command{Lease: &until}) }

// Suspend implements lrm.Control.
func (p *process) Suspend(on bool) error { return p.command(command{Suspend: &on}) }

// Stop implements lrm.Control.
func (p *process) Stop(why string) error {
	hard := time.AfterFunc(p.pool.patience, p.killSupervisor)
	go func() {
		<-p.done
		hard.Stop()
	}()
	return p.command(command{Stop: &why})
}

// killSupervisor kills the supervisor while it is this attempt's.
func (p *process) killSupervisor() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child != nil {
		_ = p.child.cmd.Process.Kill()
	}
}

// CPUTime implements lrm.Meter: what the supervisor and its children used for this
// attempt, and what its runner uses.
func (p *process) CPUTime() (time.Duration, bool) {
	p.mu.Lock()
	c := p.child
	if c == nil {
		p.mu.Unlock()
		return 0, false
	}
	before, warmBefore := c.used, c.warmUsed
	p.mu.Unlock()
	used, ok := processTime(c.cmd.Process.Pid)
	used = max(used-before, 0)
	if runner := int(p.runner.Load()); ok && runner != 0 {
		if more, known := p.spec.runnerTime(runner); known {
			used += max(more-warmBefore, 0)
		}
	}
	return used, ok
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

// command tells the supervisor, while it is this attempt's.
func (p *process) command(c command) error {
	c.Attempt = p.spec.Attempt
	line, err := encodeLine(c)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		return nil // it has ended
	}
	err = writeLine(p.child.stdin, line, time.Now().Add(writeTimeout))
	if isBrokenPipe(err) {
		return nil // it just ended
	}
	return err
}

// watch reads the supervisor's messages until the attempt's end and makes the
// result.
func (p *process) watch() {
	c := p.child // nobody else changes it
	end, again, kept := p.listen(c)
	p.land()
	used, _ := processTime(c.cmd.Process.Pid)
	if !again {
		_ = c.cmd.Wait()
		used = max(used, endedTime(c.cmd.ProcessState))
	}
	var all time.Duration // of its warm sandbox
	if kept {
		all, _ = p.spec.runnerTime(int(p.runner.Load()))
	}
	if end == nil {
		end = p.orphaned(c)
	}
	p.mu.Lock()
	p.child = nil              // CPUTime looks at it no more, for it may have its next attempt soon
	used = max(used-c.used, 0) // by this attempt
	if kept {
		used += max(all-c.warmUsed, 0)
		c.warmUsed = max(all, c.warmUsed)
	} else { // it has waited for the sandbox, with all tasks before
		used = max(used-c.warmUsed, 0)
		c.warmUsed = 0
	}
	p.mu.Unlock()
	switch {
	case kept:
		p.hold(c)
	case again:
		p.pool.keep(c)
	default:
		c.stdin.Close()
		p.pool.gone()
	}
	p.result = p.hooks.Finish(*end, kept)
	p.result.CPU = used
	close(p.events)
	close(p.done)
}

// endedTime is the processor time that a process has used that has ended, and those of its
// children that it has waited for.
func endedTime(s *os.ProcessState) time.Duration {
	if s == nil {
		return 0
	}
	return s.UserTime() + s.SystemTime()
}

// land tells the pool that a fresh supervisor has said something, or has ended.
func (p *process) land() {
	if p.fresh {
		p.fresh = false
		p.pool.landed()
	}
}

// listen passes on the supervisor's messages until the attempt's end, nil if it
// told none. again means that the supervisor waits for another attempt, and kept that it does so
// with the sandbox of this one.
func (p *process) listen(c *child) (end *Ending, again, kept bool) {
	for {
		line, err := c.stdout.ReadBytes('\n')
		c.evict()
		if err != nil {
			return nil, false, false
		}
		p.land()
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		if isProcess(m.PID) {
			p.runner.Store(int64(m.PID))
		}
		if m.Event != 0 {
			p.emit(lrm.Event{Kind: m.Event, At: m.At})
		}
		if m.Exited != nil {
			return m.Exited, m.Again, m.Again && m.Kept && p.hooks.Empty != nil
		}
	}
}

// orphaned ends an attempt whose supervisor died silently.
func (p *process) orphaned(c *child) *Ending {
	text := "the attempt's supervisor died"
	if c.cmd.ProcessState != nil {
		text += " (" + c.cmd.ProcessState.String() + ")"
	}
	runner := int(p.runner.Load())
	if runner == 0 {
		// Whether the runner was started is unknown; if so it got the parent-death
		// signal and its end remains without a record.
		text += " before it told what it had started"
		return &Ending{Report: Report{Cause: grid.CauseSandbox, Text: text}}
	}
	killGroup(runner)
	gone := awaitGroupGone(runner, stopTimeout)
	if p.spec.Tree {
		// The end of the sandbox's outer process kills the first process inside, and
		// with it all others; by now that signal is on its way.
		time.Sleep(orphanGrace)
	}
	if gone {
		appendEnd(p.spec, grid.CauseSandbox)
	}
	return &Ending{Report: Report{Cause: grid.CauseSandbox, Text: text}}
}

// emit hands an event to a reader; a full queue drops the oldest.
func (p *process) emit(e lrm.Event) {
	for {
		select {
		case p.events <- e:
			return
		default:
		}
		select {
		case <-p.events:
		default:
		}
	}
}

func appendEnd(spec Spec, cause grid.ExitCause) {
	rec, err := lrm.OpenRecorder(spec.RecordPath, spec.Attempt)
	if err != nil {
		return // the audit takes the agent's end for it
	}
	defer rec.Close()
	_ = rec.Append(lrm.Record{Event: lrm.RecordEnded, Cause: cause.String()})
}
