package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ErrUnsupported means that attempts cannot be supervised on this system.
var ErrUnsupported = errors.New("supervising processes is not supported on this system")

const (
	eventBuffer  = 16
	writeTimeout = time.Second      // for a command
	specTimeout  = 10 * time.Second // for the first line, while a busy machine starts the supervisor
	orphanGrace  = time.Second      // for a sandbox whose supervisor died
	stopTimeout  = 5 * time.Second  // then a supervisor that does not stop is killed itself
	logName      = "supervisor.log"
)

// Finish makes the result of an attempt's end. It is called once, when the
// runner is gone.
type Finish func(Ending) lrm.Result

// Start starts a supervisor, by the command of which Main is the body, and hands
// it the spec. dir takes the supervisor's log.
func Start(ctx context.Context, command []string, dir string, spec Spec, finish Finish) (lrm.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(command) == 0 {
		return nil, errors.New("start supervisor: no command")
	}
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	defer log.Close()
	stdinRead, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	defer stdinRead.Close()
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the agent's own binary; it outlives ctx
	cmd.Stdin, cmd.Stderr, cmd.Dir, cmd.Env = stdinRead, log, dir, baseEnv()
	if err = detach(cmd); err != nil {
		stdin.Close()
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stdin.Close()
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	p := &process{
		spec: spec, cmd: cmd, stdin: stdin, finish: finish,
		events: make(chan lrm.Event, eventBuffer), done: make(chan struct{}),
	}
	go p.watch(bufio.NewReader(stdout))
	if err := p.send(spec, specDeadline(ctx)); err != nil {
		p.abandon()
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	return p, nil
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
func baseEnv() []string {
	env := []string{"LANG=C"}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return env
}

// process is the agent's side of a supervisor.
type process struct {
	spec   Spec
	cmd    *exec.Cmd
	finish Finish
	events chan lrm.Event
	done   chan struct{} // closed when result is set

	mu    sync.Mutex // guards stdin
	stdin *os.File

	runner atomic.Int64 // process ID; 0 = not started; written by watch alone
	result lrm.Result
}

// SetLease implements lrm.Control.
func (p *process) SetLease(until lrm.BootTime) error { return p.command(command{Lease: &until}) }

// Suspend implements lrm.Control.
func (p *process) Suspend(on bool) error { return p.command(command{Suspend: &on}) }

// Stop implements lrm.Control.
func (p *process) Stop(why string) error {
	hard := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	go func() {
		<-p.done
		hard.Stop()
	}()
	return p.command(command{Stop: &why})
}

// CPUTime implements lrm.Meter: what the supervisor and its children used, and
// what its runner uses.
func (p *process) CPUTime() (time.Duration, bool) {
	select {
	case <-p.done:
		return 0, false
	default:
	}
	used, ok := processTime(p.cmd.Process.Pid)
	if runner := int(p.runner.Load()); ok && runner != 0 {
		if more, known := p.spec.runnerTime(runner); known {
			used += more
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

func (p *process) command(c command) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	err := p.send(c, time.Now().Add(writeTimeout))
	if errors.Is(err, os.ErrClosed) || isBrokenPipe(err) {
		return nil // it just ended
	}
	return err
}

func (p *process) send(line any, deadline time.Time) error {
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode command: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stdin.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("send command: %w", err)
	}
	if _, err := p.stdin.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("send command: %w", err)
	}
	return nil
}

// abandon ends a supervisor that could not be told what to do.
func (p *process) abandon() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// watch reads the supervisor's messages until its end and makes the result.
func (p *process) watch(from *bufio.Reader) {
	var end *Ending
	for end == nil {
		line, err := from.ReadBytes('\n')
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		if m.PID != 0 {
			p.runner.Store(int64(m.PID))
		}
		if m.Event != 0 {
			p.emit(lrm.Event{Kind: m.Event, At: m.At})
		}
		end = m.Exited
	}
	_ = p.cmd.Wait()
	if end == nil {
		end = p.orphaned()
	}
	p.result = p.finish(*end)
	p.mu.Lock()
	p.stdin.Close()
	p.mu.Unlock()
	close(p.events)
	close(p.done)
}

// orphaned ends an attempt whose supervisor died without a word.
func (p *process) orphaned() *Ending {
	text := "the attempt's supervisor died"
	if p.cmd.ProcessState != nil {
		text += " (" + p.cmd.ProcessState.String() + ")"
	}
	runner := int(p.runner.Load())
	if runner == 0 {
		// Whether the runner was started is unknown; if so it got the parent-death
		// signal and its end remains without a record.
		return &Ending{Report: Report{Cause: grid.CauseSandbox, Text: text}}
	}
	killGroup(runner)
	if p.spec.Tree {
		// The end of the sandbox's outer process kills the first process inside, and
		// with it all others; by now that signal is on its way.
		time.Sleep(orphanGrace)
	}
	if awaitGroupGone(runner, stopTimeout) {
		appendEnd(p.spec, grid.CauseSandbox)
	}
	return &Ending{Report: Report{Cause: grid.CauseSandbox, Text: text}}
}

// emit hands an event to a reader; the oldest makes room for the newest.
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
