//go:build unix

package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestMain plays supervisor and runner too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "__runner" {
		os.Exit(runner(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == argFake {
		os.Exit(fake(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == supervise.Arg {
		os.Exit(supervise.Main())
	}
	os.Exit(m.Run())
}

func runner(args []string) int {
	switch args[0] {
	case "exit":
		code, _ := strconv.Atoi(args[1])
		return code
	case "env":
		fmt.Println(os.Environ())
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "report":
		if supervise.WriteReport(supervise.Report{
			Cause: grid.CauseMemory, Code: 4, Text: strings.Join(args[1:], " "),
		}) != nil {
			return 5
		}
	case "prepare":
		if errors.Join(supervise.WritePreparing(true), supervise.WritePreparing(false)) != nil {
			return 5
		}
	case "fill":
		_ = os.WriteFile("large", make([]byte, 4<<20), 0o600)
		time.Sleep(time.Hour)
	case "child": // leaves a child that keeps the streams open
		child, err := os.StartProcess(os.Args[0], []string{os.Args[0], "__runner", "sleep"},
			&os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
		fmt.Println("child", child != nil, err)
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "leave": // its session and group
		if _, err := syscall.Setsid(); err != nil {
			return 1
		}
		return runner([]string{"tell", args[1]})
	case "tell":
		_ = os.WriteFile(args[1], []byte(strconv.Itoa(os.Getpid())), 0o600)
		time.Sleep(time.Hour)
	case "print": // so many bytes to both streams
		n, _ := strconv.Atoi(args[1])
		fmt.Print(strings.Repeat("o", n))
		fmt.Fprint(os.Stderr, strings.Repeat("e", n/2))
	case "spin":
		for { //nolint:staticcheck // SA5002: it shall use a processor
		}
	case "sleep":
		time.Sleep(time.Hour)
	}
	return 0
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func spec(t *testing.T, args ...string) supervise.Spec {
	t.Helper()
	dir := t.TempDir()
	return supervise.Spec{
		Attempt: grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 1},
		Runner:  append([]string{self(t), "__runner"}, args...), Dir: dir,
		Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "stderr"),
		Limits:     lrm.Limits{WallTime: time.Minute}.OrDefault(),
		LeaseUntil: lrm.BootNow().Add(time.Hour), RecordPath: filepath.Join(dir, "runs"),
	}
}

func end(t *testing.T, s supervise.Spec) supervise.Ending {
	t.Helper()
	var ending supervise.Ending
	p, err := supervise.NewPool([]string{
		self(t), supervise.Arg,
	}).Start(t.Context(), s.Dir, s, supervise.Hooks{
		Finish: func(e supervise.Ending, _ bool) lrm.Result {
			ending = e
			return lrm.Result{}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ending
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name    string
		args    []string
		reports bool
		cause   grid.ExitCause
		code    int
		text    string
	}{
		{"status 0", []string{"exit", "0"}, false, grid.CauseExited, 0, ""},
		{"status 9", []string{"exit", "9"}, false, grid.CauseExited, 9, ""},
		{"signal", []string{"die"}, false, grid.CauseSignal, int(syscall.SIGTERM), "terminated"},
		{"report", []string{"report", "told"}, true, grid.CauseMemory, 4, "told"},
		{"report missing", []string{"exit", "0"}, true, grid.CauseSandbox, 0, "without a report"},
		{"killed without a report", []string{"die"}, true, grid.CauseSandbox, 0, "without a report"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := spec(t, tt.args...)
			s.Reports = tt.reports
			got := end(t, s)
			if got.Cause != tt.cause || got.Code != tt.code || !strings.Contains(got.Text, tt.text) ||
				got.Wall <= 0 {
				t.Errorf("ending = %+v, want %v %d %q", got, tt.cause, tt.code, tt.text)
			}
		})
	}
}

func TestRunnerMissing(t *testing.T) {
	t.Parallel()
	s := spec(t)
	s.Runner = []string{filepath.Join(s.Dir, "nowhere")}
	if got := end(t, s); got.Cause != grid.CauseSandbox || got.Text == "" {
		t.Errorf("ending = %+v, want a failed sandbox", got)
	}
}

func TestWatchedTreeTooLarge(t *testing.T) {
	t.Parallel()
	s := spec(t, "fill")
	s.WatchDir, s.Limits.DiskBytes = s.Dir, 1<<20
	if got := end(t, s); got.Cause != grid.CauseDisk {
		t.Errorf("ending = %+v, want out of disk", got)
	}
}

func TestRunnerSeesNoEnvironment(t *testing.T) {
	t.Setenv("OWNERS_SECRET", "x")
	s := spec(t, "env")
	s.Env = []string{"A=1"}
	end(t, s)
	text, err := os.ReadFile(s.Stdout)
	if err != nil || string(text) != "[A=1]\n" {
		t.Errorf("environment = %q, %v", text, err)
	}
}

func TestStrayChildEndsWithRunner(t *testing.T) {
	t.Parallel()
	s := spec(t, "child")
	if got := end(t, s); got.Cause != grid.CauseExited || got.Wall > 10*time.Second {
		t.Errorf("ending = %+v", got)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	s := spec(t, "exit", "0")
	never := supervise.Hooks{
		Finish: func(supervise.Ending, bool) lrm.Result { return lrm.Result{} },
	}
	if _, err := supervise.NewPool([]string{filepath.Join(s.Dir, "nowhere")}).Start(
		t.Context(), s.Dir, s, never,
	); err == nil {
		t.Error("a supervisor that is not there was started")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := supervise.NewPool([]string{self(t), supervise.Arg}).Start(
		over, s.Dir, s, never,
	); err == nil {
		t.Error("started after the context's end")
	}
	if records, err := lrm.ReadRecords(s.RecordPath); err != nil || len(records) != 0 {
		t.Errorf("records = %+v, %v; want none", records, err)
	}
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("waited too long")
		}
	}
}
