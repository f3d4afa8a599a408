//go:build unix

package supervise_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// argFake makes this executable a supervisor that fails in the way that follows.
const argFake = "__fake"

func fake(how string) int {
	var order struct{ Spec supervise.Spec }
	line, _ := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if json.Unmarshal(line, &order) != nil {
		return 1
	}
	switch how {
	case "mute":
		return 3
	case "garbage":
		fmt.Print("{{{\nnull\n\n[1]\n{\"event\":77}\n" + `{"pid":0,"event":2}` + "\n")
		fmt.Println(`{"exited":{"cause":1,"code":7}}`)
	case "truncated":
		fmt.Print(`{"exited":{"cause":1,`)
	case "deserter": // leaves a runner
		cmd := exec.Command(order.Spec.Runner[0], order.Spec.Runner[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if cmd.Start() != nil {
			return 1
		}
		fmt.Printf("{\"event\":1,\"pid\":%d}\n", cmd.Process.Pid)
		return 4
	case "stuck":
		time.Sleep(time.Hour)
	}
	return 0
}

// attempt runs a spec under a supervisor of the pool.
func attempt(
	t *testing.T, pool *supervise.Pool, s supervise.Spec,
) (lrm.Process, func() supervise.Ending) {
	t.Helper()
	var ending supervise.Ending
	p, err := pool.Start(t.Context(), s.Dir, s, supervise.Hooks{
		Finish: func(e supervise.Ending, _ bool) lrm.Result {
			ending = e
			return lrm.Result{}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, func() supervise.Ending {
		t.Helper()
		if _, err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return ending
	}
}

func fakePool(t *testing.T, how string) *supervise.Pool {
	t.Helper()
	return supervise.NewPool([]string{self(t), argFake, how})
}

func TestASupervisorThatFails(t *testing.T) {
	tests := []struct {
		how     string
		cause   grid.ExitCause
		code    int
		text    string
		records []lrm.RecordEvent
	}{
		{"mute", grid.CauseSandbox, 0, "exit status 3) before it told", nil},
		{"truncated", grid.CauseSandbox, 0, "supervisor died", nil},
		{"garbage", grid.CauseExited, 7, "", nil},
		{"deserter", grid.CauseSandbox, 0, "(exit status 4)", []lrm.RecordEvent{lrm.RecordEnded}},
	}
	for _, tt := range tests {
		t.Run(tt.how, func(t *testing.T) {
			t.Parallel()
			s := spec(t, "sleep")
			p, wait := attempt(t, fakePool(t, tt.how), s)
			got := wait()
			if got.Cause != tt.cause || got.Code != tt.code || !strings.Contains(got.Text, tt.text) {
				t.Errorf("ending = %+v, want %v %d %q", got, tt.cause, tt.code, tt.text)
			}
			if tt.how == "deserter" && strings.Contains(got.Text, "before it told") {
				t.Errorf("ending = %+v, but the runner was told", got)
			}
			if events := events(t, s); !slices.Equal(events, tt.records) {
				t.Errorf("records = %v, want %v", events, tt.records)
			}
			if _, known := p.(lrm.Meter).CPUTime(); known {
				t.Error("processor time is known after the end")
			}
		})
	}
}

// A runner that its supervisor has left is ended before the attempt counts as ended.
func TestADesertersRunnerIsGone(t *testing.T) {
	t.Parallel()
	s := spec(t, "tell", filepath.Join(t.TempDir(), "pid"))
	_, wait := attempt(t, fakePool(t, "deserter"), s)
	wait()
	if pid := toldPID(t, s.Runner[len(s.Runner)-1]); pid != 0 && runs(pid) {
		t.Errorf("process %d still runs", pid)
	}
}

// What a stuck supervisor does not do by itself is done to it, and to no other.
func TestAStuckSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	pool := fakePool(t, "stuck")
	supervise.SetPatience(pool, 50*time.Millisecond)
	p, wait := attempt(t, pool, spec(t, "sleep"))
	other, waitOther := attempt(t, pool, spec(t, "sleep"))
	if err := p.Stop("enough"); err != nil {
		t.Fatal(err)
	}
	if got := wait(); got.Cause != grid.CauseSandbox || !strings.Contains(got.Text, "killed") {
		t.Errorf("ending = %+v", got)
	}
	if _, known := other.(lrm.Meter).CPUTime(); !known {
		t.Error("the other attempt's supervisor is gone, too")
	}
	if err := other.Stop("enough"); err != nil {
		t.Fatal(err)
	}
	waitOther()
}

// byHand is a supervisor that the test talks to itself.
type byHand struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	said *bytes.Buffer // to nobody, before it has a log; to be read after its end
}

func startByHand(t *testing.T, files ...*os.File) *byHand {
	t.Helper()
	cmd := exec.Command(self(t), supervise.Arg)
	cmd.ExtraFiles = files
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := new(bytes.Buffer)
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &byHand{t, cmd, in, bufio.NewReader(out), said}
}

// say sends a line, written as JSON from what is given.
func (b *byHand) say(of grid.AttemptID, key string, value any) {
	b.t.Helper()
	line, err := json.Marshal(map[string]any{"attempt": of, key: value})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(line, '\n')); err != nil {
		b.t.Fatal(err)
	}
}

func (b *byHand) order(s supervise.Spec) {
	b.t.Helper()
	s.LogPath = filepath.Join(s.Dir, "supervisor.log")
	b.say(s.Attempt, "spec", s)
}

// heard is a line of the supervisor.
type heard struct {
	Event  lrm.EventKind
	PID    int
	Exited *supervise.Ending
	Again  bool
}

func (b *byHand) hear() (h heard) {
	b.t.Helper()
	line, err := b.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		b.t.Fatalf("heard %q, %v", line, err)
	}
	return h
}

func (b *byHand) hearEvent(want lrm.EventKind) heard {
	b.t.Helper()
	h := b.hear()
	if h.Event != want {
		b.t.Fatalf("heard %+v, want %v", h, want)
	}
	return h
}

func (b *byHand) hearEnd() heard {
	b.t.Helper()
	h := b.hear()
	if h.Exited == nil {
		b.t.Fatalf("heard %+v, want an end", h)
	}
	return h
}

// next is the spec of another attempt.
func next(t *testing.T, token grid.Token, args ...string) supervise.Spec {
	t.Helper()
	s := spec(t, args...)
	s.Attempt.Token = token
	return s
}

// A stop, a suspension or a lease that was meant for an attempt that has ended does not
// reach the next one under the same supervisor.
func TestLateCommandsReachNobody(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	first, second := next(t, 1, "exit", "3"), next(t, 2, "sleep")
	b.order(first)
	b.hearEvent(lrm.Started)
	if end := b.hearEnd(); !end.Again || end.Exited.Code != 3 {
		t.Fatalf("end = %+v", end)
	}
	b.say(first.Attempt, "stop", "late while nothing runs")
	b.order(second)
	b.hearEvent(lrm.Started)
	b.say(first.Attempt, "lease", lrm.BootTime(1))
	b.say(first.Attempt, "suspend", true)
	b.say(first.Attempt, "stop", "late")
	b.say(second.Attempt, "suspend", true)
	b.hearEvent(lrm.Frozen)
	b.say(first.Attempt, "suspend", false)
	b.say(second.Attempt, "suspend", false)
	b.hearEvent(lrm.Resumed) // so its lease stands, and it was suspended once
	b.say(second.Attempt, "stop", "in time")
	if end := b.hearEnd(); end.Exited.Cause != grid.CauseStopped || end.Exited.Text != "in time" {
		t.Errorf("end = %+v", end.Exited)
	}
	want := []lrm.RecordEvent{
		lrm.RecordStarted, lrm.RecordFrozen, lrm.RecordResumed, lrm.RecordEnded,
	}
	if got := events(t, second); !slices.Equal(got, want) {
		t.Errorf("records = %v, want %v", got, want)
	}
}

// Garbage among the commands is left out; it changes nothing.
func TestGarbageAmongCommands(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	if _, err := io.WriteString(b.in, "\n{{{\n[]\nnull\n{\"stop\":7}\n"); err != nil {
		t.Fatal(err)
	}
	s := next(t, 1, "sleep")
	b.order(s)
	b.hearEvent(lrm.Started)
	for _, line := range []string{"{\"stop\":\n", "{}\n", "\xff\xfe\n", "{\"suspend\":true}\n"} {
		if _, err := io.WriteString(b.in, line); err != nil {
			t.Fatal(err)
		}
	}
	half, err := json.Marshal(map[string]any{"attempt": s.Attempt, "stop": "half", "lease": "x"})
	if err == nil {
		_, err = b.in.Write(append(half, '\n')) // a part that can be read counts for nothing
	}
	if err != nil {
		t.Fatal(err)
	}
	b.say(s.Attempt, "stop", "done")
	if end := b.hearEnd(); end.Exited.Text != "done" {
		t.Errorf("end = %+v", end.Exited)
	}
	if got := events(t, s); !slices.Equal(got, []lrm.RecordEvent{lrm.RecordStarted, lrm.RecordEnded}) {
		t.Errorf("records = %v", got)
	}
}

// An agent that dies in the midst of a command has died.
func TestAgentDiesInTheMidstOfACommand(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	s := next(t, 1, "sleep")
	b.order(s)
	pid := b.hearEvent(lrm.Started).PID
	if _, err := io.WriteString(b.in, `{"attempt":{"Task":{"Job"`); err != nil {
		t.Fatal(err)
	}
	if err := b.in.Close(); err != nil {
		t.Fatal(err)
	}
	end := b.hearEnd()
	if end.Exited.Cause != grid.CauseSiteRestart || end.Again {
		t.Errorf("end = %+v", end)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("the supervisor ended with %v", err)
	}
	if runs(pid) {
		t.Error("the runner outlived its agent")
	}
	if got := events(t, s); !slices.Equal(got, []lrm.RecordEvent{lrm.RecordStarted, lrm.RecordEnded}) {
		t.Errorf("records = %v", got)
	}
}

func TestSpecsThatAreRefused(t *testing.T) {
	t.Parallel()
	without, foreign := next(t, 1, "sleep"), next(t, 2, "sleep")
	without.Runner = nil
	for name, send := range map[string]func(*byHand){
		"no runner":       func(b *byHand) { b.order(without) },
		"another attempt": func(b *byHand) { b.say(without.Attempt, "spec", foreign) },
	} {
		b := startByHand(t)
		send(b)
		if _, err := b.out.ReadByte(); err != io.EOF {
			t.Errorf("%s: the supervisor speaks, %v", name, err)
		}
		if _ = b.cmd.Wait(); b.cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%s: %v, want exit status 2", name, b.cmd.ProcessState)
		}
		if !strings.Contains(b.said.String(), name) {
			t.Errorf("%s: it said %q", name, b.said)
		}
	}
	if len(events(t, foreign))+len(events(t, without)) != 0 {
		t.Error("something was recorded")
	}
}

func TestASupervisorThatIsToldToTerminate(t *testing.T) {
	t.Parallel()
	idle := startByHand(t)
	idle.order(next(t, 1, "exit", "0"))
	idle.hearEvent(lrm.Started)
	if err := idle.cmd.Process.Signal(syscall.SIGHUP); err != nil { // as when a terminal closes
		t.Fatal(err)
	}
	if !idle.hearEnd().Again {
		t.Error("it takes no other attempt")
	}
	if err := idle.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := idle.cmd.Wait(); err != nil {
		t.Errorf("idle: %v", err)
	}
	busy := startByHand(t)
	busy.order(next(t, 1, "sleep"))
	busy.hearEvent(lrm.Started)
	if err := busy.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if end := busy.hearEnd(); end.Exited.Cause != grid.CauseStopped || end.Again {
		t.Errorf("end = %+v", end)
	}
	if err := busy.cmd.Wait(); err != nil {
		t.Errorf("busy: %v", err)
	}
}

// events are those of the spec's attempt in its run record.
func events(t *testing.T, s supervise.Spec) (all []lrm.RecordEvent) {
	t.Helper()
	records, err := lrm.ReadRecords(s.RecordPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Attempt != s.Attempt {
			t.Errorf("a record of %s", r.Attempt)
		}
		all = append(all, r.Event)
	}
	return all
}

// An idle supervisor ends with its agent.
func TestAnIdleSupervisorEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	if err := b.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
