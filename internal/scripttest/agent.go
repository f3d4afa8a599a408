package scripttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Patience of the scripts, on a machine that has more to do than them.
const (
	readyLimit = time.Minute // for an agent to answer
	endLimit   = 30 * time.Second
	firstPause = 100 * time.Millisecond
	lastPause  = time.Second
)

// agentProcess is one agent in the background.
type agentProcess struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when cmd has ended
}

// agent starts and ends the agent of the user.
func agent(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg && args[0] != "start" {
		ts.Fatalf("usage: [!] agent start [FLAGS], agent stop, wait, kill, or signal NAME")
	}
	if args[0] == "start" {
		startAgent(ts, neg, args[1:])
		return
	}
	a := stageOf(ts).agents[ts.Getenv("HOME")]
	if a == nil || !a.running() && args[0] != "wait" {
		ts.Fatalf("this user's agent does not run")
	}
	switch {
	case args[0] == "signal" && len(args) == 2:
		ts.Check(a.signal(args[1]))
	case len(args) != 1:
		ts.Fatalf("agent %s: too many arguments", args[0])
	case args[0] == "stop":
		ts.Check(a.cmd.Process.Signal(syscall.SIGTERM))
		ts.Check(a.await(true))
	case args[0] == "wait":
		ts.Check(a.await(true))
	case args[0] == "kill":
		ts.Check(a.cmd.Process.Kill())
		ts.Check(a.await(false))
	default:
		ts.Fatalf("agent %s: want start, stop, wait, kill or signal", args[0])
	}
}

// startAgent returns when the agent answers or, if it is to fail, has ended.
func startAgent(ts *testscript.TestScript, fails bool, flags []string) {
	s, home := stageOf(ts), ts.Getenv("HOME")
	if old := s.agents[home]; old != nil && old.running() {
		ts.Fatalf("this user's agent runs already")
	}
	a, err := launch(ts, filepath.Join(home, "agent.log"), flags)
	ts.Check(err)
	s.agents[home] = a
	limit := time.After(readyLimit)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case <-a.ended:
			said, _ := os.ReadFile(a.log)
			_, _ = ts.Stderr().Write(said)
			if !fails || a.cmd.ProcessState.Success() {
				ts.Fatalf("the agent ended with %s:\n%s", a.cmd.ProcessState, said)
			}
			return
		case <-limit:
			ts.Fatalf("the agent did not answer within %s:\n%s", readyLimit, a.tail())
		case <-time.After(pause):
		}
		if execute(ts, "siteagent", append([]string{"status"}, flags...)) == nil {
			if fails {
				ts.Fatalf("the agent started")
			}
			return
		}
	}
}

// launch starts siteagent run with the script's settings. Its log grows.
func launch(ts *testscript.TestScript, path string, flags []string) (*agentProcess, error) {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the agent has its own descriptor
	env, err := environment(ts)
	if err != nil {
		return nil, err
	}
	line := stageOf(ts).command(ts, "siteagent", append([]string{"run"}, flags...))
	//nolint:noctx,gosec // the script ends it; G204: what we built
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = ts.MkAbs("."), log, log, env
	dieWithTest(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &agentProcess{cmd: cmd, log: path, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended stands in ProcessState
		close(a.ended)
	}()
	return a, nil
}

// environment is the script's. testscript does not tell it, a process it starts does.
func environment(ts *testscript.TestScript) ([]string, error) {
	if err := ts.Exec("env"); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n"), nil
}

func (a *agentProcess) running() bool {
	select {
	case <-a.ended:
		return false
	default:
		return true
	}
}

// signal sends the signal of this name.
func (a *agentProcess) signal(name string) error {
	signals := signalsByName()
	which, known := signals[name]
	if !known {
		return fmt.Errorf("agent signal %s: want HUP, STOP or CONT", name)
	}
	return a.cmd.Process.Signal(which)
}

// await waits for the end; a good one is one with code 0.
func (a *agentProcess) await(good bool) error {
	select {
	case <-a.ended:
	case <-time.After(endLimit):
		return fmt.Errorf("the agent did not end within %s:\n%s", endLimit, a.tail())
	}
	if good && !a.cmd.ProcessState.Success() {
		return fmt.Errorf("the agent ended with %s:\n%s", a.cmd.ProcessState, a.tail())
	}
	return nil
}

// finish ends the agent when the script has ended, and tells the end of its log,
// which shows why a script failed.
func (a *agentProcess) finish(t testscript.T) {
	if a.running() {
		_ = a.cmd.Process.Signal(syscall.SIGTERM)
		if a.await(false) != nil {
			_ = a.cmd.Process.Kill()
			<-a.ended
		}
	}
	t.Log(a.log + ":\n" + a.tail())
}

// tail is the end of the log.
func (a *agentProcess) tail() string {
	const most = 8 << 10
	text, err := os.ReadFile(a.log)
	if err != nil {
		return err.Error()
	}
	if len(text) > most {
		text = text[len(text)-most:]
		if at := bytes.IndexByte(text, '\n'); at >= 0 {
			text = text[at+1:]
		}
	}
	return string(text)
}
