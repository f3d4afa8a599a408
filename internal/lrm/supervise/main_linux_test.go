package supervise_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// open opens a file until the test's end.
func open(t *testing.T, name string, flag int) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// read reads a whole file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a supervisor was started with stays with it: its runner has its streams and the report.
func TestARunnerGetsNoFileOfOthers(t *testing.T) {
	t.Parallel()
	others := open(t, filepath.Join(t.TempDir(), "others"), os.O_CREATE|os.O_RDWR)
	b := startByHand(t, others, others, others)
	s := next(t, 1)
	s.Runner = []string{
		"/bin/sh", "-c", `for i in 0 1 2 3 4 5 6; do [ -e /proc/$$/fd/$i ] && echo $i; done; exit 0`,
	}
	b.order(s)
	b.hearEvent(lrm.Started)
	b.hearEnd()
	if got := read(t, s.Stdout); got != "0\n1\n2\n3\n" {
		t.Errorf("open are %q", got)
	}
}

// An order may be long, and so may what a runner reads.
func TestALongOrder(t *testing.T) {
	t.Parallel()
	s := spec(t, "cat")
	s.Stdin = bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	if got := end(t, s); got.Cause != grid.CauseExited || read(t, s.Stdout) != string(s.Stdin) {
		t.Errorf("ending = %+v, read %d bytes", got, len(read(t, s.Stdout)))
	}
}

// A supervisor says what of the agent's words it cannot read, once for each line: to its agent
// before it has a log, then there.
func TestALogOfWhatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	say := func(text string) {
		t.Helper()
		if _, err := io.WriteString(b.in, text); err != nil {
			t.Fatal(err)
		}
	}
	say("\n{{{\n[]\nnull\n{\"stop\":7}\n")
	s := next(t, 1, "sleep")
	b.order(s)
	b.hearEvent(lrm.Started)
	say("{\"stop\":\n{}\n\xff\xfe\n")
	b.say(s.Attempt, "stop", "done")
	b.hearEnd()
	if err := b.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		b.said.String(): 4, read(t, filepath.Join(s.Dir, "supervisor.log")): 2,
	} {
		if got := strings.Count(text, "supervisor: unknown command: "); got != want ||
			got != strings.Count(text, "\n") {
			t.Errorf("it said %q, want %d lines", text, want)
		}
	}
}

// One whose agent cannot be read, or told, says so and does what it was told before.
func TestAnAgentThatCannotBeReached(t *testing.T) {
	t.Parallel()
	deaf := exec.Command(self(t), supervise.Arg)
	deaf.Stdin = open(t, t.TempDir(), os.O_RDONLY) // cannot be read
	if said, err := deaf.CombinedOutput(); err != nil ||
		!strings.HasPrefix(string(said), "supervisor: read commands: ") {
		t.Errorf("it said %q and ended with %v", said, err)
	}
	s := next(t, 1, "exit", "3")
	s.LogPath = filepath.Join(s.Dir, "supervisor.log")
	order, err := json.Marshal(map[string]any{"attempt": s.Attempt, "spec": s})
	if err != nil {
		t.Fatal(err)
	}
	mute := exec.Command(self(t), supervise.Arg)
	mute.Stdout = open(t, "/dev/full", os.O_WRONLY)
	in, err := mute.StdinPipe()
	if err == nil {
		err = mute.Start()
	}
	if err == nil {
		_, err = in.Write(append(order, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return len(events(t, s)) == 2 })
	in.Close()
	if err := mute.Wait(); err != nil {
		t.Error(err)
	}
	if log := read(t, s.LogPath); !strings.HasPrefix(log, "supervisor: tell the agent: ") {
		t.Errorf("its log holds %q", log)
	}
}

// A supervisor whose log is nowhere, or cannot be written, does its attempt and takes no other.
func TestASupervisorWithoutALog(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]string{
		"nowhere": "", "no such directory": "/nonexistent/log", "a directory": t.TempDir(),
	} {
		b := startByHand(t)
		s := next(t, 1, "exit", "3")
		s.LogPath = log
		b.say(s.Attempt, "spec", s)
		b.hearEvent(lrm.Started)
		if got := b.hearEnd(); got.Again || got.Exited.Code != 3 {
			t.Errorf("%s: %+v, %+v", name, got, got.Exited)
		}
		if err := b.cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a runner reports is cut to what an end may hold; it knows when nothing can be told.
func TestWhatARunnerTells(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1000)
	s := spec(t, "report", long)
	s.Reports = true
	if got := end(t, s); got.Cause != grid.CauseMemory || got.Text != lrm.ExitText(long) {
		t.Errorf("ending = %+v", got)
	}
	for _, verb := range []string{"report", "prepare"} {
		for to, want := range map[string]int{"/dev/full": 5, "/dev/null": 0} {
			cmd := exec.Command(self(t), "__runner", verb, "x")
			cmd.ExtraFiles = []*os.File{open(t, to, os.O_WRONLY)}
			if err := cmd.Run(); cmd.ProcessState.ExitCode() != want {
				t.Errorf("%s to %s: %v, want status %d", verb, to, err, want)
			}
		}
	}
}
