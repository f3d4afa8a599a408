package lrmtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Patience is for anything that must happen, on a busy machine.
const Patience = 2 * time.Minute

// NewAttempt is an attempt in a directory of its own below dir, under a long lease
// and small limits. Its record stands in dir.
func NewAttempt(t testing.TB, dir string, token grid.Token, args ...string) lrm.Attempt {
	t.Helper()
	id := grid.AttemptID{Task: grid.TaskID{Job: job}, Token: token}
	a := lrm.Attempt{
		ID: id, Dir: filepath.Join(dir, fmt.Sprintf("attempt%d", token)),
		RecordPath: filepath.Join(dir, "runs.jsonl"),
		Task:       grid.Task{ID: id.Task, Args: args},
		Limits: lrm.Limits{
			MemoryBytes: 64 << 20, DiskBytes: 1 << 20, OutputBytes: 64 << 10, WallTime: Patience,
		},
		LeaseUntil: lrm.BootNow().Add(time.Hour),
	}
	if err := os.Mkdir(a.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lrm.RemoveTree(a.Dir); err != nil {
			t.Errorf("RemoveTree: %v", err)
		}
	})
	return a
}

// Start starts an attempt that ends with the test.
func Start(t testing.TB, adapter lrm.Adapter, a lrm.Attempt) lrm.Process {
	t.Helper()
	p, err := adapter.Start(context.Background(), a)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		_ = p.Stop("the test is over")
		_, _ = p.Wait(context.Background())
	})
	return p
}

// Wait waits for an attempt's end.
func Wait(t testing.TB, p lrm.Process) lrm.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	r, err := p.Wait(ctx)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	if err := r.Exit.Validate(); err != nil {
		t.Errorf("exit: %v", err)
	}
	return r
}

// Until waits for a condition.
func Until(t testing.TB, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// Text is the content of a file of a result.
func Text(t testing.TB, f lrm.File) string {
	t.Helper()
	if f.HostPath == "" {
		return ""
	}
	content, err := os.ReadFile(f.HostPath)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(content)) != f.Bytes {
		t.Errorf("%s: result says %d bytes, there are %d", f.HostPath, f.Bytes, len(content))
	}
	return string(content)
}

// Processes are the IDs of the processes that work in a directory or below. It
// skips the test where that cannot be seen.
func Processes(t testing.TB, dir string) []int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, link := range links {
		var pid int
		at, err := os.Readlink(link)
		if err != nil || at != dir && !strings.HasPrefix(at, dir+"/") {
			continue
		}
		if _, err := fmt.Sscanf(link, "/proc/%d/cwd", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
