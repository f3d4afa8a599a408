package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Arg is the hidden argument with which an executable runs itself again as the process of an
// intake: main calls Main then, with the arguments behind it.
const Arg = "__take-in"

// ErrProcess means that the process could not be started, died, or said what it should not. What
// it was to take in may be fine.
var ErrProcess = errors.New("the process that takes in content failed")

const (
	atATime    = 2                // processes; others wait
	endTimeout = 10 * time.Second // for a process that has nothing more to say
	maxStderr  = 1 << 10          // bytes of what it says of its end
)

// Store takes content, and what was built, as data.Store does.
type Store interface {
	Add(ctx context.Context, from data.Source) (data.Ref, error)
	Limits() data.Limits
	AddBuilt(
		ctx context.Context,
		build func(ctx context.Context, dir string, take func(data.Block) error) (grid.CID, error),
	) (data.Ref, error)
}

// Intake starts the processes. Its methods are safe for concurrent use.
type Intake struct {
	command []string
	slots   chan struct{} // one for each process
	began   func(pid int) // for tests
}

// New makes an intake whose processes are started by the command of which Main is the body.
func New(command []string) *Intake {
	return &Intake{
		command: command, slots: make(chan struct{}, atATime), began: func(int) {},
	}
}

// Take stores content under the name that the store would give it. The content's errors are those
// of the store's own methods; ErrProcess says that another way may work. When the context ends,
// the process is killed.
func (in *Intake) Take(ctx context.Context, store Store, c Content) (data.Ref, error) {
	select {
	case in.slots <- struct{}{}:
		defer func() { <-in.slots }()
	case <-ctx.Done():
		return data.Ref{}, ctx.Err()
	}
	o := order{
		Dir: c.Dir, Executable: c.Executable, Key: c.Key, Limits: store.Limits(),
	}
	return store.AddBuilt(ctx, func(
		ctx context.Context, shelf string, take func(data.Block) error,
	) (grid.CID, error) {
		o.Shelf = shelf
		return in.build(ctx, o, c.File, take)
	})
}

// build has a process build a graph, and returns when that has ended.
func (in *Intake) build(
	ctx context.Context, o order, file *os.File, take func(data.Block) error,
) (grid.CID, error) {
	p, err := in.start(file)
	if err != nil {
		return "", fmt.Errorf("%w: start it: %w", ErrProcess, err)
	}
	in.began(p.cmd.Process.Pid)
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	var root grid.CID
	if err = writeLine(p.stdin, o); err != nil {
		err = fmt.Errorf("%w: give it its order: %w", ErrProcess, err)
	} else {
		root, err = receive(p.stdout, take, p.acknowledge)
	}
	ended := p.end(errors.Is(err, io.EOF))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, ErrProcess):
		return "", fmt.Errorf("%w (%s)", err, ended)
	}
	return root, err
}

// process is one process that builds a graph.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *beginning
	done   chan struct{} // closed when it has ended
}

// start starts a process, for which a goroutine waits until its end.
func (in *Intake) start(file *os.File) (*process, error) {
	if len(in.command) == 0 {
		return nil, errors.New("no command")
	}
	stdin, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	read, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), write.Close())
	}
	cmd := exec.Command(in.command[0], in.command[1:]...) //nolint:gosec,noctx // itself; see build
	p := &process{
		cmd: cmd, stdin: write, stdout: read, stderr: &beginning{}, done: make(chan struct{}),
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = stdin, stdout, p.stderr, environment()
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	apart(cmd)
	started := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread() // the kernel ends the process when the thread ends that started it
		defer runtime.UnlockOSThread()
		failed := cmd.Start()
		started <- failed
		if failed == nil {
			_ = cmd.Wait() // its state is read in end
		}
	}()
	err = <-started
	_, _ = stdin.Close(), stdout.Close() // the process has them
	if err != nil {
		<-p.done
		return nil, errors.Join(err, write.Close(), read.Close())
	}
	return p, nil
}

// environment is all that the process sees of the agent's. One thread at a time runs its code.
func environment() []string {
	env := []string{"LANG=C", "GOMAXPROCS=1", "GOMEMLIMIT=256MiB"}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return env
}

// acknowledge tells the process that blocks were taken. One that is dead is noticed elsewhere.
func (p *process) acknowledge(n int) { _, _ = p.stdin.Write([]byte{byte(n)}) }

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// end ends the process and tells how it ended. One that ends by itself gets some time for that.
func (p *process) end(byItself bool) string {
	_ = p.stdin.Close()
	if byItself {
		hard := time.AfterFunc(endTimeout, p.kill)
		defer hard.Stop()
	} else {
		p.kill()
	}
	<-p.done
	_ = p.stdout.Close() // only read from
	if said := p.stderr.text(); said != "" {
		return p.cmd.ProcessState.String() + ": " + said
	}
	return p.cmd.ProcessState.String()
}

// beginning keeps how a text begins. It is safe for concurrent use.
type beginning struct {
	mu   sync.Mutex
	kept bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (b *beginning) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept.Write(text[:min(len(text), maxStderr-b.kept.Len())])
	return len(text), nil
}

// text is the first line.
func (b *beginning) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	line, _, _ := strings.Cut(b.kept.String(), "\n")
	return line
}
