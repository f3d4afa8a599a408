package supervise

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// shellPool is a pool whose supervisors are shells that run the script; they wait for long.
func shellPool(script string) *Pool {
	pool := NewPool([]string{"/bin/sh", "-c", script})
	pool.idleTime = time.Hour
	return pool
}

// launched is a supervisor of the pool that has come so far as to say so, or that has ended if
// it has nothing to say.
func launched(t *testing.T, pool *Pool) *child {
	t.Helper()
	c, err := pool.launch(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() }) // to wait for it is the pool's
	_, _ = c.stdout.ReadString('\n')
	return c
}

// waiting are those of the pool that wait.
func (pool *Pool) waiting() []*child {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return slices.Clone(pool.idle)
}

// Some supervisors are kept for a moment, the last first, and what they used is not the next
// attempt's.
func TestIdleSupervisors(t *testing.T) {
	t.Parallel()
	pool := shellPool(`i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo 1; read x; true`)
	if pool.take() != nil {
		t.Error("one from nowhere")
	}
	var all []*child
	for range idleMost {
		all = append(all, launched(t, pool))
		pool.keep(all[len(all)-1])
	}
	if got := pool.waiting(); !slices.Equal(got, all) {
		t.Fatalf("%d wait, want %d", len(got), len(all))
	}
	more := launched(t, pool)
	pool.keep(more) // one too many
	if got := pool.waiting(); !slices.Equal(got, all) {
		t.Errorf("%d wait, want %d", len(got), len(all))
	}
	awaitState(t, more.cmd.Process.Pid, "ZX")
	for _, c := range []*child{all[0], all[2]} {
		pool.expire(c)
		if c.cmd.ProcessState == nil || !c.cmd.ProcessState.Success() {
			t.Errorf("one whose time is over ended with %v", c.cmd.ProcessState)
		}
		all = slices.DeleteFunc(all, func(other *child) bool { return other == c })
		if got := pool.waiting(); !slices.Equal(got, all) {
			t.Errorf("%d wait, want %d", len(got), len(all))
		}
	}
	for i, last := range slices.Backward(all) {
		c := pool.take()
		if c != last || !slices.Equal(pool.waiting(), all[:i]) {
			t.Fatalf("took another than the last one kept, which is number %d", i)
		}
		if c.used < clockTick {
			t.Errorf("used %s before, want some", c.used)
		}
		if c.expiry.Stop() {
			t.Error("its time goes on while it has an attempt")
		}
		pool.expire(c) // too late
		awaitState(t, c.cmd.Process.Pid, "S")
		c.dismiss()
	}
	pool.idleTime = time.Millisecond
	last := launched(t, pool)
	pool.keep(last)
	awaitState(t, last.cmd.Process.Pid, "ZX")
}

// Supervisors start where no attempt's directory is kept by them, with their log at its end.
func TestLaunchingASupervisor(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := shellPool(`pwd; echo said >&2; read x; echo "$x"; cut -d' ' -f5,6 /proc/$$/stat; echo $$`)
	c, err := pool.launch(log)
	if err != nil {
		t.Fatal(err)
	}
	if heldOpen(t, log) {
		t.Error("the log stays open here")
	}
	if err := writeLine(c.stdin, []byte("told\n"), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(c.cmd.Process.Pid)
	for _, want := range []string{"/", "told", pid + " " + pid, pid} {
		if got, err := c.stdout.ReadString('\n'); err != nil || got != want+"\n" {
			t.Errorf("it says %q, %v, want %q", got, err, want)
		}
	}
	c.dismiss()
	if got := content(t, log); got != "before\nsaid\n" || !c.cmd.ProcessState.Success() {
		t.Errorf("the log holds %q, ended with %v", got, c.cmd.ProcessState)
	}
	if _, err := pool.launch(filepath.Join(t.TempDir(), "none", "log")); err == nil {
		t.Error("launched without a log")
	}
	dead := launched(t, shellPool("exit 0"))
	await(t, "its input to be closed", func() bool {
		return isBrokenPipe(writeLine(dead.stdin, []byte("x"), time.Now().Add(time.Minute)))
	})
}

// obedient is a supervisor that notes its order and says that the attempt has ended.
const obedient = `read x; echo "$x" > order; echo '{"exited":{"cause":1,"code":7}}'`

// An order goes to a supervisor that waits and lives, else to a new one; of one that died while
// it waited nothing is left.
func TestWhoGetsTheOrder(t *testing.T) {
	t.Parallel()
	finish := Hooks{Finish: func(e Ending, _ bool) lrm.Result {
		return lrm.Result{Exit: grid.Exit{Code: e.Code}}
	}}
	spec := Spec{Attempt: one(), Stdin: []byte("input")}
	dir := t.TempDir()
	pool := shellPool("cd " + dir + "; " + obedient)
	begin := func(want int) {
		t.Helper()
		p, err := pool.Start(t.Context(), dir, spec, finish)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Wait(t.Context())
		if err != nil || r.Exit.Code != want {
			t.Errorf("ended with %d, %v, want %d", r.Exit.Code, err, want)
		}
	}
	begin(7)
	order := content(t, dir+"/order")
	for _, part := range []string{`"Stdin":"aW5wdXQ="`, `"LogPath":"` + dir + `/supervisor.log"`} {
		if strings.Count(order, "\n") != 1 || !strings.Contains(order, part) {
			t.Errorf("the order %q lacks %q", order, part)
		}
	}
	lives := launched(t, shellPool(`echo 1; read x; echo '{"exited":{"cause":1,"code":8}}'`))
	pool.keep(lives)
	dead := launched(t, shellPool("exit 0"))
	read, write, err := os.Pipe() // somebody holds the other end still
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	dead.stdin = write
	awaitState(t, dead.cmd.Process.Pid, "Z")
	pool.keep(dead)
	begin(8)
	if dead.cmd.ProcessState == nil {
		t.Error("the dead one was not waited for")
	}
	if _, err := write.WriteString("x"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("its input is still open: %v", err)
	}
	begin(7)
	if n := len(pool.waiting()); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// Who takes no order is ended, and the attempt has not begun.
func TestASupervisorThatTakesNoOrder(t *testing.T) {
	t.Parallel()
	never := Hooks{Finish: func(Ending, bool) lrm.Result {
		t.Error("an attempt that did not begin has ended")
		return lrm.Result{}
	}}
	large := Spec{Attempt: one(), Stdin: make([]byte, 1<<20)} // more than a pipe takes
	for name, c := range map[string]struct {
		script string
		limit  time.Duration
		waits  bool // there was one before
	}{
		"hears nothing": {"", time.Second, true},
		"is deaf":       {"exec sleep 1000 <&-", time.Minute, false},
	} {
		dir := t.TempDir()
		pool := shellPool("echo $$ > " + dir + "/pid; " + c.script)
		if c.waits {
			pool.keep(launched(t, shellPool("echo $$ > "+dir+"/pid; echo 1; exec sleep 1000")))
			pool.command = []string{filepath.Join(dir, "none")}
		}
		ctx, cancel := context.WithTimeout(t.Context(), c.limit)
		defer cancel()
		_, err := pool.Start(ctx, dir, large, never)
		if err == nil || !strings.HasPrefix(err.Error(), "start supervisor: ") {
			t.Errorf("%s: %v", name, err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(content(t, dir+"/pid")))
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("%s: it is left", name)
		}
	}
	if _, err := NewPool(nil).Start(t.Context(), t.TempDir(), large, never); err == nil {
		t.Error("started without a command")
	}
}

// attended is an attempt under a supervisor that the test plays: what it is told can be read,
// and what it says is the text.
func attended(t *testing.T, text string) (p *process, told *bufio.Reader, ended *Ending) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		read.Close()
		write.Close()
	})
	cmd := exec.Command("/bin/sh", "-c", "exit 3")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := sync.OnceFunc(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Wait()
		}
	})
	t.Cleanup(waited)
	ended = new(Ending)
	p = &process{
		spec: Spec{Attempt: one(), RecordPath: filepath.Join(t.TempDir(), "runs")}, pool: NewPool(nil),
		child:  &child{cmd: cmd, stdin: write, stdout: bufio.NewReader(strings.NewReader(text))},
		events: make(chan lrm.Event, eventBuffer), done: make(chan struct{}),
	}
	p.hooks.Finish = func(e Ending, _ bool) lrm.Result {
		*ended = e
		return lrm.Result{Exit: grid.Exit{Code: 5}}
	}
	return p, bufio.NewReader(read), ended
}

// The end of an attempt is the end of what holds it: its events, its supervisor's input, and
// the way to its supervisor.
func TestTheAgentsSideOfTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
		kept       bool
	}{
		"told": {`{"exited":{"cause":1,"text":"x"}}` + "\n", "x", false},
		"told, and waits for another": {
			`{"exited":{"cause":1,"text":"x"},"again":true}` + "\n", "x", true,
		},
		"not told": {
			"", "the attempt's supervisor died (exit status 3) before it told what it had started", false,
		},
	} {
		p, _, ended := attended(t, c.text)
		was := p.child
		stdin := was.stdin
		p.pool.idleTime = time.Hour
		p.watch()
		r, err := p.Wait(t.Context())
		if err != nil || r.Exit.Code != 5 || ended.Text != c.want {
			t.Errorf("%s: %+v, %v, ended %+v", name, r, err, ended)
		}
		if _, open := <-p.events; open || p.child != nil {
			t.Errorf("%s: its events, or its supervisor, are left", name)
		}
		if kept := p.pool.waiting(); slices.Equal(kept, []*child{was}) != c.kept {
			t.Errorf("%s: %v wait for the next attempt", name, kept)
		}
		if _, err := stdin.WriteString("x"); (err == nil) != c.kept {
			t.Errorf("%s: its input: %v", name, err)
		}
		if (was.cmd.ProcessState != nil) == c.kept {
			t.Errorf("%s: it was waited for: %v", name, !c.kept)
		}
		if c.kept {
			was.expiry.Stop()
		}
	}
}

// What the agent says comes as one line each, for that attempt; who has just ended is not
// missed, and who does not listen is not waited for.
func TestWhatTheAgentSays(t *testing.T) {
	t.Parallel()
	p, told, _ := attended(t, "")
	const id = `{"attempt":{"Task":{"Job":"mfrggzdfmztwq2lk","Index":0},"Token":1},`
	for want, say := range map[string]func() error{
		id + `"lease":77}`:      func() error { return p.SetLease(77) },
		id + `"suspend":true}`:  func() error { return p.Suspend(true) },
		id + `"suspend":false}`: func() error { return p.Suspend(false) },
		id + `"stop":"enough"}`: func() error { return p.Stop("enough") },
	} {
		if err := say(); err != nil {
			t.Fatal(err)
		}
		if got, err := told.ReadString('\n'); err != nil || got != want+"\n" {
			t.Errorf("%q was said, %v, want %q", got, err, want)
		}
	}
	deaf, _, _ := attended(t, "")
	for began, err := time.Now(), error(nil); !errors.Is(err, os.ErrDeadlineExceeded); {
		if err = deaf.Suspend(true); time.Since(began) > time.Minute {
			t.Fatal("who does not listen is waited for")
		}
	}
	gone, _, _ := attended(t, "")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	gone.child.stdin = write
	if err := gone.SetLease(1); err != nil {
		t.Errorf("who has just ended: %v", err)
	}
	write.Close()
	if err := gone.SetLease(1); err == nil {
		t.Error("nothing can be said, and no error")
	}
}

// The time of an attempt is its supervisor's, but for what that used before, and its runner's;
// without its supervisor it is not known.
func TestWhatAnAttemptUses(t *testing.T) {
	t.Parallel()
	p, _, _ := attended(t, "")
	_ = p.child.cmd.Wait()
	p.runner.Store(int64(os.Getpid()))
	if used, known := p.CPUTime(); known || used != 0 {
		t.Errorf("after its supervisor's end it used %s, %v", used, known)
	}
}

// A sandbox whose supervisor has died has a moment to end by itself, and its end is recorded once
// nothing of it is left.
func TestASandboxWithoutASupervisor(t *testing.T) {
	t.Parallel()
	for _, tree := range []bool{false, true} {
		p, _, _ := attended(t, "")
		p.spec.Tree = tree
		cmd := still(t, 1, waits)
		p.runner.Store(int64(cmd.Process.Pid))
		_ = p.child.cmd.Wait()
		began := time.Now()
		end := p.orphaned(p.child)
		if took := time.Since(began); tree && took < orphanGrace {
			t.Errorf("it had only %s", took)
		}
		if end.Cause != grid.CauseSandbox || end.Text != "the attempt's supervisor died (exit status 3)" {
			t.Errorf("it ended with %+v", end)
		}
		awaitState(t, cmd.Process.Pid, "ZX")
		records, err := lrm.ReadRecords(p.spec.RecordPath)
		if err != nil || len(records) != 1 || records[0].Event != lrm.RecordEnded {
			t.Errorf("the record is %+v, %v", records, err)
		}
	}
}
