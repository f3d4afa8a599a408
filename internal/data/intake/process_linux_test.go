package intake

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// All threads of the process have the lowest priority there is, on the processor and the disk.
// Nothing of a key can be read where others read: arguments and environment.
func TestEachThreadIsLast(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, nil)
	pid := 0
	looked := false
	look := func(context.Context) {
		looked = true
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil || len(tasks) < 3 {
			t.Errorf("%d threads, %v", len(tasks), err)
		}
		for _, task := range tasks {
			checkThread(t, task)
		}
		for _, name := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err != nil || len(text) == 0 || strings.Contains(string(text), string(secret)) {
				t.Errorf("%s is %q, %v", name, text, err)
			}
		}
	}
	in := newIntake(func(p int) { pid = p })
	c := Content{File: fileOf(t, noise(5<<20)), Key: secret}
	if _, err := in.Take(t.Context(), paused{Store: s, at: look}, c); err != nil || !looked {
		t.Errorf("%v, looked at: %t", err, looked)
	}
}

func checkThread(t *testing.T, task string) {
	t.Helper()
	tid, err := strconv.Atoi(filepath.Base(task))
	if err != nil {
		t.Fatal(err)
	}
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != schedIdle {
		t.Errorf("thread %d: %+v, %v; want SCHED_IDLE", tid, attr, err)
	}
	if raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err != nil || 20-raw != lastNice {
		t.Errorf("thread %d: nice %d, %v", tid, 20-raw, err)
	}
	io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, whoProcess, uintptr(tid), 0)
	if errno != 0 || io != idleIO {
		t.Errorf("thread %d: class of the disk %#x, %v", tid, io, errno)
	}
}

// rusageThread is RUSAGE_THREAD: the calling thread alone.
const rusageThread = 1

// used is the processor time of the calling thread, or of children that have ended.
func used(t *testing.T, who int) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The agent has a small part in the work: it hashes and copies nothing. What else a host of libp2p
// does meanwhile is not counted, nor is waiting for the disk.
func TestTheAgentHasASmallPart(t *testing.T) { // not parallel: the children are measured
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	holes := fileOf(t, nil)
	if err := holes.Truncate(128 << 20); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]*os.File{"holes": holes, "noise": fileOf(t, noise(32<<20))} {
		s, _ := newStore(t, nil)
		agent, process := used(t, rusageThread), used(t, syscall.RUSAGE_CHILDREN)
		if _, err := newIntake(nil).Take(t.Context(), s, Content{File: file}); err != nil {
			t.Fatal(err)
		}
		agent = used(t, rusageThread) - agent
		process = used(t, syscall.RUSAGE_CHILDREN) - process
		t.Logf("%s: the agent took %s, the process %s", name, agent, process)
		if agent*4 > process {
			t.Errorf("%s: the agent took %s, the process %s", name, agent, process)
		}
	}
}

// The process ends with its agent, however that ends.
func TestItEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	f := fileOf(t, nil)
	// A leaf and a node of holes are new blocks, the next one comes after 256 GiB.
	if err := f.Truncate(512 << 30); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(
		t.Context(), os.Args[0], argAgent, filepath.Join(t.TempDir(), "data"), f.Name(),
	)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the agent says %q", line)
	}
	if !there(pid) {
		t.Fatal("the process is not there")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the process has ended", func() bool { return !there(pid) })
}

// there reports whether a process is there and no zombie.
func there(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
