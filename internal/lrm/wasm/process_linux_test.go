package wasm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/wasm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// spinning starts an endless loop and waits until it runs.
func spinning(t *testing.T) (lrm.Attempt, lrm.Process) {
	t.Helper()
	a := attempt(t, guest, "spin")
	p := start(t, a)
	lrmtest.Until(t, "the program prints", lrmtest.Patience, func() bool { return printed(a) })
	return a, p
}

// supervisors are the processes that work in the attempt's directory itself.
func supervisors(t *testing.T, a lrm.Attempt) []int {
	t.Helper()
	below := lrmtest.Processes(t, a.WorkDir())
	return slices.DeleteFunc(lrmtest.Processes(t, a.Dir), func(pid int) bool {
		return slices.Contains(below, pid)
	})
}

func printed(a lrm.Attempt) bool {
	info, err := os.Stat(a.StdoutPath())
	return err == nil && info.Size() > 0
}

func TestRunnerYieldsToOwner(t *testing.T) {
	t.Parallel()
	a, _ := spinning(t)
	pids := lrmtest.Processes(t, a.WorkDir())
	if len(pids) != 1 {
		t.Fatalf("runners = %v, want one", pids)
	}
	const niceField = 16 // behind the name
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pids[0]))
	if err != nil || len(tasks) == 0 {
		t.Fatal(tasks, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread just ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if fields[niceField] < "10" {
			t.Errorf("%s: nice %s, want at least 10", task, fields[niceField])
		}
	}
}

func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	a, p := spinning(t)
	watchers := supervisors(t, a)
	if len(watchers) != 1 {
		t.Fatalf("supervisors = %v, want one", watchers)
	}
	if err := syscall.Kill(watchers[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Exit.Cause != grid.CauseSandbox || !strings.Contains(r.Exit.Text, "supervisor") {
		t.Errorf("exit = %+v", r.Exit)
	}
	if left := lrmtest.Processes(t, a.WorkDir()); len(left) != 0 {
		t.Errorf("the runner %v outlived its supervisor", left)
	}
	records, err := lrm.ReadRecords(a.RecordPath)
	if err != nil || len(lrm.Unended(records)) != 0 {
		t.Errorf("records = %+v, %v; want an end", records, err)
	}
}

// A stopped supervisor cannot notice that its agent died.
func TestRecoverEndsStoppedSupervisor(t *testing.T) {
	t.Parallel()
	a := attempt(t, guest, "spin")
	told, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	agent := harness().Agent(a.RecordPath)
	agent.Stdin = bytes.NewReader(told)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	lrmtest.Until(t, "the program prints", lrmtest.Patience, func() bool { return printed(a) })
	watchers := supervisors(t, a)
	if len(watchers) != 1 {
		t.Fatalf("supervisors = %v, want one", watchers)
	}
	if err := syscall.Kill(watchers[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	if err := harness().New(t, a.RecordPath).Recover(t.Context()); err != nil {
		t.Errorf("Recover: %v", err)
	}
	lrmtest.Until(t, "nothing is left", lrmtest.Patience, func() bool {
		return len(lrmtest.Processes(t, a.Dir)) == 0
	})
}

// TestWall runs this binary again behind the second wall alone.
func TestWall(t *testing.T) {
	t.Parallel()
	notes := harness().New(t, filepath.Join(t.TempDir(), "runs")).Probe(t.Context()).Notes
	if len(notes) > 0 {
		t.Skip("the second wall is not whole on this kernel: ", notes)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir := t.TempDir()
	out, err := exec.Command(os.Args[0], argWall, dir, listener.Addr().String()).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func behindWall(dir, address string) error { return wasm.BehindWall(dir, address) }
