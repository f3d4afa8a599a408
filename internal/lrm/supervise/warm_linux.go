package supervise

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	warmReady   = "ready" // what a warm sandbox says first
	warmLine    = 64      // bytes of what it says at a time, at most
	warmMembers = 2       // its processes below the outermost while no task runs
	warmSettle  = 100 * time.Millisecond
	warmPoll    = 500 * time.Microsecond
)

// warm is a sandbox that takes one task after the other.
type warm struct {
	key    string
	cmd    *exec.Cmd
	dead   chan struct{} // closed when nothing of it is left
	tasks  *os.File      // takes a task
	done   *os.File      // tells how it ended
	told   *bufio.Reader // of done
	prints [2]*os.File   // what its tasks print to their two streams
	calm   []member      // its processes while no task runs; nil before it is ready
	meter  meter         // of all its tasks together, between two of them
}

// startWarm gives the runner's task to the sandbox that was kept, if there is one and it lives,
// and else to a new one.
func (r *runner) startWarm(kept *warm) error {
	w := kept
	if w == nil || w.isDead() {
		w.end()
		if r.spec.Warm.Enclosure == nil {
			return errors.New("the sandbox has just ended")
		}
		var err error
		if w, err = r.openWarm(); err != nil {
			return err
		}
	}
	r.warm, r.cmd = w, w.cmd
	return nil
}

// openWarm starts a sandbox.
func (r *runner) openWarm() (*warm, error) {
	w := &warm{key: r.spec.Warm.Key, dead: make(chan struct{})}
	theirs, err := w.connect()
	defer func() { closeAll(theirs) }()
	if err != nil {
		w.close()
		return nil, err
	}
	e := new(*r.spec.Warm.Enclosure)
	e.Filter = r.spec.Enclosure.Filter
	w.cmd = enclosed(e)
	w.cmd.Stdout, w.cmd.Stderr, w.cmd.Dir = theirs[2], theirs[3], nowhere
	asLeader(w.cmd)
	r.cmd = w.cmd
	var g *gate
	err = startApart(w.dead, func() (err error) {
		g, err = startEnclosed(w.cmd, e, r.spec.Idle, theirs[0], theirs[1])
		return err
	})
	if err != nil {
		w.close()
		return nil, err
	}
	r.admit(g)
	go w.reap()
	return w, nil
}

// connect makes the pipes, and returns the sandbox's ends: for its tasks, for what it tells, and
// for the two streams.
func (w *warm) connect() (theirs []*os.File, err error) {
	pipe := func() (read, write *os.File) {
		if err != nil {
			return nil, nil
		}
		read, write, err = os.Pipe()
		return read, write
	}
	var task, done, out, errs *os.File
	task, w.tasks = pipe()
	w.done, done = pipe()
	w.prints[0], out = pipe()
	w.prints[1], errs = pipe()
	w.told = bufio.NewReaderSize(w.done, warmLine)
	return []*os.File{task, done, out, errs}, err
}

// close closes this side's ends.
func (w *warm) close() { closeAll([]*os.File{w.tasks, w.done, w.prints[0], w.prints[1]}) }

// reap waits for the sandbox's end.
func (w *warm) reap() {
	_ = w.cmd.Wait()
	killGroup(w.cmd.Process.Pid)
	endOrphans(drainTimeout)
	close(w.dead)
}

func (w *warm) isDead() bool {
	select {
	case <-w.dead:
		return true
	default:
		return false
	}
}

// died is closed when nothing of the sandbox is left; nil if there is none.
func (w *warm) died() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.dead
}

// end ends a sandbox between two tasks, if there is one. Its shell ends by itself when it hears
// that no further task comes, which is less work than to look for its processes.
func (w *warm) end() {
	if w == nil {
		return
	}
	w.tasks.Close()
	select {
	case <-w.dead:
	case <-time.After(warmSettle):
	}
	w.destroy()
}

// destroy ends a sandbox in whatever state it is, if there is one.
func (w *warm) destroy() {
	if w == nil {
		return
	}
	if !w.isDead() {
		w.kill("")
	}
	w.close()
}

// kill returns when nothing of the sandbox is left. dir is its group, as in Spec.FreezeDir.
func (w *warm) kill(dir string) {
	killTree(w.cmd.Process.Pid, dir)
	select {
	case <-w.dead:
	case <-time.After(drainTimeout):
		killGroup(w.cmd.Process.Pid)
		<-w.dead
	}
}

// fits reports whether an attempt may have the sandbox.
func (w *warm) fits(spec Spec) bool {
	return w != nil && spec.Warm != nil && spec.Warm.Key == w.key
}

// attend waits for the end of the runner's task, and keeps the sandbox if nothing is left of that.
func (r *runner) attend() {
	w := r.warm
	pumps := [2]*pump{newPump(w.prints[0], r.stdout), newPump(w.prints[1], r.stderr)}
	code, clean, err := r.runWarm()
	kept := err == nil && clean && w.settled()
	if !kept {
		w.kill(r.spec.FreezeDir)
	}
	close(r.gone)
	for _, p := range pumps {
		p.stop()
	}
	if !kept {
		w.close()
	}
	r.gated.Wait()
	r.stdout.close()
	r.stderr.close()
	end := runnerEnd{
		overflowed: r.stdout.full.Load() || r.stderr.full.Load(), kept: kept,
		lost: errors.Join(r.stdout.lost, r.stderr.lost),
	}
	state := w.cmd.ProcessState
	switch {
	case err == nil:
		end.code, end.told = code, true
	case state != nil: // it has ended with its task, by the exit code of its shell
		end.code, end.text, end.signal = state.ExitCode(), state.String(), signalOf(state)
		end.told = w.calm != nil && end.signal == 0
	default:
		end.text = err.Error()
	}
	r.ended <- end
}

// runWarm runs the task once its start is recorded.
func (r *runner) runWarm() (code int, clean bool, err error) {
	if err = r.recorded(); err != nil {
		r.exceed(sandboxFailure(err))
		<-r.warm.dead // so that this counts, and not its end
		return 0, false, err
	}
	return r.warm.run(r.spec.Warm.Task)
}

var errWarm = errors.New("a warm sandbox does not tell how its task ended")

// run gives the sandbox a task and waits for its end: its exit code, and whether nothing is left
// of it that the kernel would show to the next one. What a task makes the sandbox say concerns
// tasks of its own job alone.
func (w *warm) run(task string) (code int, clean bool, err error) {
	if w.calm == nil {
		if word, wrong := w.line(); wrong != nil || word != warmReady {
			return 0, false, errors.Join(errWarm, wrong)
		}
		w.calm = append([]member{}, nearby(w.cmd.Process.Pid)...)
	}
	if _, err = w.tasks.WriteString(task + "\n"); err != nil {
		return 0, false, errors.Join(errWarm, err)
	}
	line, err := w.line()
	if err != nil {
		return 0, false, errors.Join(errWarm, err)
	}
	const mostCode = 255
	text, left := strings.CutSuffix(line, " left")
	if code, err = strconv.Atoi(text); err != nil || code < 0 || code > mostCode {
		return 0, false, errWarm
	}
	return code, !left && w.told.Buffered() == 0, nil
}

func (w *warm) line() (string, error) {
	line, err := w.told.ReadSlice('\n')
	return strings.TrimSuffix(string(line), "\n"), err
}

// settled waits for a moment until the sandbox's processes are those that it had before its first
// task.
func (w *warm) settled() bool {
	if len(w.calm) != warmMembers {
		return false
	}
	deadline := time.Now().Add(warmSettle)
	for quiet := 0; ; {
		if slices.Equal(nearby(w.cmd.Process.Pid), w.calm) {
			if quiet++; quiet == stillRounds {
				return true
			}
			continue
		}
		quiet = 0
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(warmPoll)
	}
}

// pump moves what a task prints.
type pump struct {
	from *os.File
	to   io.Writer
	done chan struct{}
}

func newPump(from *os.File, to io.Writer) *pump {
	p := &pump{from: from, to: to, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_, _ = io.Copy(p.to, p.from)
	}()
	return p
}

// stop ends the pump when nobody prints any more, with what is still in the pipe.
func (p *pump) stop() {
	_ = p.from.SetReadDeadline(time.Unix(1, 0))
	<-p.done
	_ = p.from.SetReadDeadline(time.Time{})
	raw, err := p.from.SyscallConn()
	if err != nil {
		return // it is closed
	}
	buffer := make([]byte, pumpBytes)
	_ = raw.Read(func(fd uintptr) bool {
		for {
			n, err := unix.Read(int(fd), buffer)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n <= 0 {
				return true
			}
			_, _ = p.to.Write(buffer[:n])
		}
	})
}

const pumpBytes = 32 << 10
