package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	drainTimeout = 2 * time.Second        // for streams that a stray child keeps open
	reportWait   = 200 * time.Millisecond // for the report, once the runner is gone
)

// runner is the process that runs the program, leader of a group of its own.
type runner struct {
	cmd      *exec.Cmd
	spec     Spec
	overflow chan struct{}  // a stream is full
	exceeded chan Report    // it took more than it may
	ended    chan runnerEnd // it is gone
	gone     chan struct{}  // closed when its process has ended
	prepares chan bool      // it makes the program ready, or has
	gated    sync.WaitGroup // its program waits at a gate
	stdout   *capture
	stderr   *capture
	warm     *warm        // whose task it is; nil: it has a process of its own
	recorded func() error // returns when the start is on disk: before that nothing of it runs
}

// runnerEnd holds what the system tells about a runner's end.
type runnerEnd struct {
	report     *Report
	code       int
	signal     int // 0 = not killed by one
	text       string
	overflowed bool
	lost       error // why what it printed was not kept; nil: it was
	told       bool  // code is that of a warm sandbox's task
	kept       bool  // the sandbox is ready for the next one
}

// startRunner starts a runner, in the sandbox that was kept where the spec asks for that. A sandbox
// is made while recorded waits; what it is for begins when that has returned, if without an error.
func startRunner(spec Spec, kept *warm, recorded func() error) (*runner, error) {
	r := &runner{
		spec: spec, overflow: make(chan struct{}, 1), exceeded: make(chan Report, 1),
		ended: make(chan runnerEnd, 1), gone: make(chan struct{}),
		prepares: make(chan bool, 2), // on and off
		recorded: recorded,
	}
	r.stdout, r.stderr = r.newCapture(spec.Stdout), r.newCapture(spec.Stderr)
	if spec.Tree {
		adoptOrphans()
	}
	reportRead, err := r.start(kept)
	if err != nil {
		return nil, fmt.Errorf("start runner: %w", err)
	}
	if r.warm != nil {
		go r.attend()
	} else {
		go r.reap(reportRead)
	}
	if spec.isWatched() {
		go r.look()
	}
	return r, nil
}

// start starts the runner, or what it is to become where that can be bounded from
// here. It gives the report's file, nil where there is none.
func (r *runner) start(kept *warm) (report *os.File, err error) {
	if w := r.spec.Warm; w != nil {
		if err = r.startWarm(kept); err == nil || w.Enclosure == nil {
			return nil, err
		}
	}
	if e := r.spec.Enclosure; e != nil {
		if e.Gate == nil {
			if err = r.recorded(); err != nil {
				return nil, err
			}
		}
		r.prepare(enclosed(e))
		var g *gate
		err = startApart(r.gone, func() (err error) {
			g, err = startEnclosed(r.cmd, e, r.spec.Idle)
			return err
		})
		if err == nil {
			r.admit(g)
			return nil, nil
		}
	}
	if err = r.recorded(); err != nil {
		return nil, err
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reportWrite.Close()
	//nolint:gosec,noctx // told by the agent
	cmd := exec.Command(r.spec.Runner[0], r.spec.Runner[1:]...)
	order := r.spec.Stdin
	if e := r.spec.Enclosure; e != nil {
		if order, err = json.Marshal(e); err != nil {
			return nil, errors.Join(err, reportRead.Close())
		}
	}
	lowered := make(chan struct{})
	cmd.Stdin, cmd.Env = laterReader{bytes.NewReader(order), lowered}, r.spec.Env
	cmd.ExtraFiles = []*os.File{reportWrite}
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	r.prepare(cmd)
	if err := startApart(r.gone, cmd.Start); err != nil {
		return nil, errors.Join(err, reportRead.Close())
	}
	sacrificeFirst(r.pid())
	lowerThreads(r.pid(), r.spec.Idle)
	lowerSession(r.pid(), r.spec.Idle)
	close(lowered)
	return reportRead, nil
}

// laterReader gives nothing before ready is closed: a runner begins nothing of others before it has
// been told its work, which it shall not be with a priority like the owner's.
type laterReader struct {
	io.Reader
	ready <-chan struct{}
}

func (l laterReader) Read(p []byte) (int, error) {
	<-l.ready
	return l.Reader.Read(p)
}

// admit lets a program begin that waits at a gate, once it is bounded and its start recorded; one
// that cannot be is killed. reap waits for that.
func (r *runner) admit(g *gate) {
	if g == nil {
		return
	}
	r.gated.Go(func() {
		if err := r.recorded(); err != nil {
			g.close()
			r.exceed(sandboxFailure(err))
			return
		}
		if err := g.open(); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor:", err)
			_ = r.cmd.Process.Kill()
		}
	})
}

// exceed has the program killed, for the first reason there is.
func (r *runner) exceed(why Report) {
	select {
	case r.exceeded <- why:
	default:
	}
}

// prepare gives the command what each has, the runner and what it is to become.
func (r *runner) prepare(cmd *exec.Cmd) {
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.WaitDelay = r.stdout, r.stderr, r.spec.Dir, drainTimeout
	asLeader(cmd)
	r.cmd = cmd
}

// startApart starts a command from a thread of its own. The thread lives until gone is closed: the
// parent-death signal is sent when the thread that started a child ends, not the process. It keeps
// its priority: where that is low and the machine busy, the kernel may take seconds to clear it
// from /proc, in which a parent that waits for it spins.
func startApart(gone <-chan struct{}, start func() error) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := start()
		started <- err
		if err == nil {
			<-gone
		}
	}()
	return <-started
}

func (r *runner) pid() int { return r.cmd.Process.Pid }

func (r *runner) kill() {
	if !r.spec.Tree {
		killGroup(r.pid())
		return
	}
	killTree(r.pid(), r.spec.FreezeDir)
	go func() { // what does not end by the death of its program
		select {
		case <-r.gone:
		case <-time.After(drainTimeout):
			killGroup(r.pid())
		}
	}()
}

func (r *runner) freeze() error {
	if r.spec.Tree {
		return freezeTree(r.pid(), r.spec.FreezeDir)
	}
	return freezeGroup(r.pid())
}

func (r *runner) resume() error {
	if r.spec.Tree {
		return resumeTree(r.pid(), r.spec.FreezeDir, r.spec.OwnMemory > 0)
	}
	return resumeGroup(r.pid())
}

// reap waits for the runner's end and tells it.
func (r *runner) reap(reportFrom *os.File) {
	report := make(chan *Report, 1)
	if reportFrom == nil {
		report <- nil
	} else {
		defer reportFrom.Close()
		go func() { report <- readReport(reportFrom, r.prepares) }()
	}
	err := r.cmd.Wait()
	killGroup(r.pid()) // children that outlived their leader
	close(r.gone)
	if r.spec.Tree {
		endOrphans(drainTimeout)
	}
	r.gated.Wait() // those that told who waits are gone
	if reportFrom != nil {
		_ = reportFrom.SetReadDeadline(time.Now().Add(reportWait))
	}
	end := runnerEnd{report: <-report}
	r.stdout.close()
	r.stderr.close()
	end.overflowed = r.stdout.full.Load() || r.stderr.full.Load()
	end.lost = errors.Join(r.stdout.lost, r.stderr.lost)
	state := r.cmd.ProcessState
	if state == nil {
		end.text = fmt.Sprint(err)
		r.ended <- end
		return
	}
	end.code, end.text, end.signal = state.ExitCode(), state.String(), signalOf(state)
	r.ended <- end
}

// readReport is the runner's report, nil if there is none that can be read. What the runner
// says before that it prepares goes to prepares, as far as somebody reads it.
func readReport(from io.Reader, prepares chan<- bool) *Report {
	lines := json.NewDecoder(io.LimitReader(from, maxReportBytes))
	for {
		var line struct {
			note
			Report
		}
		if err := lines.Decode(&line); err != nil {
			return nil
		}
		if line.Preparing != nil {
			select {
			case prepares <- *line.Preparing:
			default:
			}
			continue
		}
		report := line.Report
		if report.Cause.Validate() != nil || report.Cause > grid.CauseSandbox {
			return nil
		}
		return &report
	}
}

// capture is a stream's file that stops growing at its limit. There is none before something is
// printed: to make a file takes longer than many a program.
type capture struct {
	path     string
	file     *os.File // nil: nothing was printed, or nothing can be kept
	left     int64
	overflow chan<- struct{}
	full     atomic.Bool
	lost     error       // why nothing is kept of what was printed; nil: it is
	failed   func(error) // told of that
}

func (r *runner) newCapture(path string) *capture {
	return &capture{
		path: path, left: r.spec.Limits.OutputBytes, overflow: r.overflow,
		failed: func(err error) { r.exceed(sandboxFailure(err)) },
	}
}

// Write keeps what fits and takes the rest without keeping it, so that the
// program is ended by the supervisor and not by a broken pipe.
func (c *capture) Write(p []byte) (int, error) {
	if !c.opened() {
		return len(p), nil
	}
	keep := p[:min(int64(len(p)), c.left)]
	n, err := c.file.Write(keep)
	c.left -= int64(n)
	if len(keep) < len(p) || err != nil {
		c.full.Store(true)
		select {
		case c.overflow <- struct{}{}:
		default:
		}
	}
	return len(p), nil
}

// opened reports whether there is a file, and makes it when it is asked first.
func (c *capture) opened() bool {
	if c.file != nil || c.lost != nil {
		return c.lost == nil
	}
	file, err := os.OpenFile(c.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		c.lost = fmt.Errorf("keep output: %w", err)
		c.failed(c.lost)
		return false
	}
	c.file = file
	return true
}

func (c *capture) close() {
	if c.file != nil {
		_ = c.file.Close()
	}
}
