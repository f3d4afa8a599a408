package supervise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	drainTimeout = 2 * time.Second        // for streams that a stray child keeps open
	reportWait   = 200 * time.Millisecond // for the report, once the runner is gone
	lookEvery    = 25 * time.Millisecond  // between two looks at files or processes, at least
	lookShare    = 20                     // and so many times what the last look took,
	lookLatest   = time.Second            // but no more than this
)

// runner is the process that runs the program, leader of a group of its own.
type runner struct {
	cmd      *exec.Cmd
	spec     Spec
	overflow chan struct{}  // a stream is full
	exceeded chan Report    // it took more than it may
	ended    chan runnerEnd // it is gone
	gone     chan struct{}  // closed when its process has ended
	stdout   *capture
	stderr   *capture
}

// runnerEnd is what the system tells of a runner's end.
type runnerEnd struct {
	report     *Report
	code       int
	signal     int // 0 = not killed by one
	text       string
	overflowed bool
}

func startRunner(spec Spec) (*runner, error) {
	r := &runner{
		spec: spec, overflow: make(chan struct{}, 1), exceeded: make(chan Report, 1),
		ended: make(chan runnerEnd, 1), gone: make(chan struct{}),
	}
	var err error
	if r.stdout, err = newCapture(spec.Stdout, spec.Limits.OutputBytes, r.overflow); err != nil {
		return nil, err
	}
	if r.stderr, err = newCapture(spec.Stderr, spec.Limits.OutputBytes, r.overflow); err != nil {
		return nil, err
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start runner: %w", err)
	}
	defer reportWrite.Close()
	r.cmd = exec.Command(spec.Runner[0], spec.Runner[1:]...) //nolint:gosec,noctx // told by the agent
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = bytes.NewReader(spec.Stdin), r.stdout, r.stderr
	r.cmd.Dir, r.cmd.Env, r.cmd.ExtraFiles = spec.Dir, spec.Env, []*os.File{reportWrite}
	r.cmd.WaitDelay = drainTimeout
	if r.cmd.Env == nil {
		r.cmd.Env = []string{}
	}
	asLeader(r.cmd)
	if spec.Tree {
		adoptOrphans()
	}
	if err := startLowly(r.cmd, spec.Idle, r.gone); err != nil {
		reportRead.Close()
		return nil, fmt.Errorf("start runner: %w", err)
	}
	sacrificeFirst(r.pid())
	lowerSession(r.pid(), spec.Idle)
	go r.reap(reportRead)
	if spec.WatchDir != "" || spec.Processes > 0 || spec.WatchMemory {
		go r.look()
	}
	return r, nil
}

// startLowly starts the command from a thread of low priority, which the command
// inherits. The thread lives until gone is closed: the parent-death signal is
// sent when the thread that started a child ends, not the process.
func startLowly(cmd *exec.Cmd, idle bool, gone <-chan struct{}) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		lowerPriority(idle)
		err := cmd.Start()
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
		return resumeTree(r.pid(), r.spec.FreezeDir)
	}
	return resumeGroup(r.pid())
}

// reap waits for the runner's end and tells it.
func (r *runner) reap(reportFrom *os.File) {
	report := make(chan *Report, 1)
	go func() { report <- readReport(reportFrom) }()
	err := r.cmd.Wait()
	killGroup(r.pid()) // children that outlived their leader
	close(r.gone)
	if r.spec.Tree {
		endOrphans(drainTimeout)
	}
	_ = reportFrom.SetReadDeadline(time.Now().Add(reportWait))
	end := runnerEnd{report: <-report}
	reportFrom.Close()
	r.stdout.close()
	r.stderr.close()
	end.overflowed = r.stdout.full.Load() || r.stderr.full.Load()
	state := r.cmd.ProcessState
	if state == nil {
		end.text = fmt.Sprint(err)
		r.ended <- end
		return
	}
	end.code, end.text, end.signal = state.ExitCode(), state.String(), signalOf(state)
	r.ended <- end
}

// readReport is the runner's report, nil if there is none that can be read.
func readReport(from io.Reader) *Report {
	var report Report
	if err := json.NewDecoder(io.LimitReader(from, maxReportBytes)).Decode(&report); err != nil {
		return nil
	}
	if report.Cause.Validate() != nil || report.Cause > grid.CauseSandbox {
		return nil
	}
	return &report
}

// capture is a stream's file that stops growing at its limit.
type capture struct {
	file     *os.File
	left     int64
	overflow chan<- struct{}
	full     atomic.Bool
}

func newCapture(path string, limit int64, overflow chan<- struct{}) (*capture, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	return &capture{file: f, left: limit, overflow: overflow}, nil
}

// Write keeps what fits and takes the rest without keeping it, so that the
// program is ended by the supervisor and not by a broken pipe.
func (c *capture) Write(p []byte) (int, error) {
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

func (c *capture) close() { _ = c.file.Close() }

// look looks at what the runner takes now and then, until it is gone.
func (r *runner) look() {
	wait := lookEvery
	var lowered time.Time
	for {
		select {
		case <-r.gone:
			return
		case <-time.After(wait):
		}
		began := time.Now()
		if report, over := r.measure(); over {
			r.exceeded <- report
			return
		}
		if r.spec.Tree && r.spec.MeterCPU && began.Sub(lowered) > lookLatest {
			lowered = began // a sandbox begins sessions of its own
			lowerTree(r.pid(), r.spec.Idle)
		}
		took := time.Since(began)
		wait = max(lookEvery, min(lookShare*took, lookLatest), took)
	}
}

// measure reports what the runner has taken too much of.
func (r *runner) measure() (Report, bool) {
	limits := r.spec.Limits
	if report, over := r.disk(); over {
		return report, true
	}
	if r.spec.Processes > 0 && treeCount(r.pid()) > r.spec.Processes {
		return Report{Cause: grid.CauseBadWork, Text: fmt.Sprintf("started more than %d processes", r.spec.Processes)}, true
	}
	if r.spec.WatchMemory && r.memory() > limits.MemoryBytes {
		return Report{Cause: grid.CauseMemory, Text: "wanted more than its " + grid.FormatBytes(limits.MemoryBytes) + " of memory"}, true
	}
	return Report{}, false
}

// disk reports that the runner writes more than it may, or hides what it writes.
func (r *runner) disk() (Report, bool) {
	limits := r.spec.Limits
	if r.spec.WatchDir == "" {
		return Report{}, false
	}
	use, wild := treeUse(r.spec.WatchDir)
	if wild != "" {
		return Report{Cause: grid.CauseDisk, Text: wild}, true
	}
	if r.spec.Tree && use <= limits.DiskBytes {
		disk, memory := namelessUse(r.pid())
		use += disk
		if r.spec.OwnMemory == 0 { // memory that has a descriptor may be mapped nowhere
			use += memory
		}
	}
	return Report{Cause: grid.CauseDisk, Text: diskText(limits)}, use > limits.DiskBytes
}

// memory is what the tree's programs have of it, in bytes.
func (r *runner) memory() int64 {
	if r.spec.OwnMemory > 0 {
		return ownMemory(r.pid()) - r.spec.OwnMemory
	}
	return treeMemory(r.pid(), r.spec.Limits.MemoryBytes)
}
