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
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

const (
	idleTime = 2 * time.Second        // that a supervisor waits for its next attempt
	idleMost = 4                      // supervisors that wait
	warmTime = 200 * time.Millisecond // that one waits with a sandbox for attempts of its key alone
)

// Pool starts supervisors, each for one attempt at a time. One that is done, and
// says that nothing is left of its attempt, is kept for the next for a moment,
// because its start takes more than most of what it does. Its methods are safe for
// concurrent use.
type Pool struct {
	command    []string
	processors int           // that each supervisor computes on at a time
	patience   time.Duration // with a supervisor that does not stop
	idleTime   time.Duration // that one waits for its next attempt
	pause      time.Duration // after a return, before further ones are started
	warmTime   time.Duration // that one waits with a sandbox before it is any attempt's

	mu    sync.Mutex
	idle  []*child
	warm  []*Warmed // supervisors that wait with a sandbox
	queue queue
}

// NewPool makes a pool of supervisors that are started by the command of which Main
// is the body. They wait for most of their time, and one processor is enough for what they do.
func NewPool(command []string) *Pool {
	return &Pool{
		command: command, processors: 1,
		patience: stopTimeout, idleTime: idleTime, pause: launchPause, warmTime: warmTime,
	}
}

// Hasten has the supervisors compute on two processors: the first attempt of one that starts a
// runner of the agent's own program begins an eighth sooner.
func (pool *Pool) Hasten() *Pool {
	pool.processors = 2
	return pool
}

// child is a supervisor's process as the agent sees it.
type child struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *bufio.Reader
	expiry *time.Timer   // while it is idle
	used   time.Duration // processor time before the current attempt

	warmUsed time.Duration // of its warm sandbox, before the current attempt
	// evicted is called when a warm sandbox has ended that its current attempt cannot use; nil: it
	// had none. With the supervisor, it is one goroutine's at a time.
	evicted func()
}

// Start hands the spec to a supervisor. dir takes the supervisor's log.
func (pool *Pool) Start(
	ctx context.Context, dir string, spec Spec, hooks Hooks,
) (lrm.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(pool.command) == 0 {
		return nil, errors.New("start supervisor: no command")
	}
	line, err := order(dir, &spec)
	if err != nil {
		return nil, err
	}
	for {
		c, fresh, err := pool.obtain(ctx)
		if err != nil {
			return nil, fmt.Errorf("start supervisor: %w", err)
		}
		if fresh {
			if c, err = pool.launch(spec.LogPath); err != nil {
				pool.unused()
				return nil, fmt.Errorf("start supervisor: %w", err)
			}
		}
		// A process that is just being started elsewhere in this one may hold the pipe
		// open for a moment, so that a dead supervisor can still be written to.
		if fresh || !hasExited(c.cmd.Process.Pid) {
			if err = writeLine(c.stdin, line, specDeadline(ctx)); err == nil {
				return pool.follow(c, spec, hooks, fresh), nil
			}
		}
		c.abandon()
		if fresh {
			pool.unused()
			return nil, fmt.Errorf("start supervisor: %w", err)
		}
		pool.gone() // it just died: another one
	}
}

// order makes the line by which a supervisor gets a spec.
func order(dir string, spec *Spec) ([]byte, error) {
	spec.LogPath = filepath.Join(dir, lrm.LogName)
	return encodeLine(command{Attempt: spec.Attempt, Spec: spec})
}

func (pool *Pool) follow(c *child, spec Spec, hooks Hooks, fresh bool) *process {
	p := &process{
		spec: spec, pool: pool, child: c, hooks: hooks, fresh: fresh,
		events: make(chan lrm.Event, eventBuffer), done: make(chan struct{}),
	}
	go p.watch()
	return p
}

// launch starts a supervisor.
func (pool *Pool) launch(logPath string) (*child, error) {
	log, err := os.OpenFile(logPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	stdinRead, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdinRead.Close()
	//nolint:gosec,noctx // the agent's own binary; it outlives ctx
	cmd := exec.Command(pool.command[0], pool.command[1:]...)
	cmd.Stdin, cmd.Stderr, cmd.Dir, cmd.Env = stdinRead, log, nowhere, baseEnv(pool.processors)
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
		return nil, err
	}
	return &child{cmd: cmd, stdin: stdin, stdout: bufio.NewReader(stdout)}, nil
}

// take returns the supervisor that became idle last, nil if none is.
func (pool *Pool) take() *child {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return pool.takeIdle()
}

// takeIdle is take for who holds mu.
func (pool *Pool) takeIdle() *child {
	if len(pool.idle) == 0 {
		return nil
	}
	last := len(pool.idle) - 1
	c := pool.idle[last]
	pool.idle = slices.Delete(pool.idle, last, last+1)
	c.expiry.Stop()
	c.used, _ = processTime(c.cmd.Process.Pid)
	return c
}

// keep takes back a supervisor that is done.
func (pool *Pool) keep(c *child) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.hand(c) {
		return
	}
	if len(pool.idle) >= idleMost {
		go c.dismiss()
		return
	}
	pool.idle = append(pool.idle, c)
	c.expiry = time.AfterFunc(pool.idleTime, func() { pool.expire(c) })
}

func (pool *Pool) expire(c *child) {
	pool.mu.Lock()
	at := slices.Index(pool.idle, c)
	if at >= 0 {
		pool.idle = slices.Delete(pool.idle, at, at+1)
	}
	pool.mu.Unlock()
	if at >= 0 {
		c.dismiss()
	}
}

// dismiss lets an idle supervisor end: the end of its standard input tells it.
func (c *child) dismiss() {
	c.stdin.Close()
	hard := time.AfterFunc(stopTimeout, func() { _ = c.cmd.Process.Kill() })
	_ = c.cmd.Wait()
	hard.Stop()
}

// abandon ends a supervisor that did not get its order.
func (c *child) abandon() {
	_ = c.cmd.Process.Kill()
	c.dismiss()
	c.evict()
}

// evict tells that a sandbox of another attempt's has ended, with its supervisor or because that
// has begun the next attempt.
func (c *child) evict() {
	if c.evicted != nil {
		go c.evicted() // nobody waits until it is cleared away
		c.evicted = nil
	}
}

func encodeLine(c command) ([]byte, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode command: %w", err)
	}
	return append(text, '\n'), nil
}

func writeLine(to *os.File, line []byte, deadline time.Time) error {
	if err := to.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("send command: %w", err)
	}
	if _, err := to.Write(line); err != nil {
		return fmt.Errorf("send command: %w", err)
	}
	return nil
}
