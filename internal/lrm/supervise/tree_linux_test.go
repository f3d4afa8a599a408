package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// still is a tree of processes that wait until the test is over: sh runs the script, which
// reads from descriptor 3 to wait, once each of its processes has written a line.
func still(t *testing.T, processes int, script string, files ...*os.File) *exec.Cmd {
	t.Helper()
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.ExtraFiles = append([]*os.File{hold}, files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		release.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, processes*len("1\n"))); err != nil {
		t.Fatal(err)
	}
	all := append(descendants(cmd.Process.Pid), member{cmd.Process.Pid})
	for _, m := range all { // so that nothing of it changes any more
		awaitState(t, m.pid, "S")
	}
	return cmd
}

// Each of three processes waits; the middle one has a child.
const three = `(echo 1; (echo 1; read x <&3; true); read x <&3; true) & echo 1; read x <&3; true`

// awaitState waits for a process to be in one of the states; one that is gone is in X.
func awaitState(t *testing.T, pid int, states string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		state, _, ok := procStat(pid)
		if !ok {
			state = 'X'
		}
		if strings.ContainsRune(states, rune(state)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is %q, want one of %s", pid, state, states)
		}
	}
}

// nameless is a file in memory, and one on disk, of so many bytes that nobody finds by name.
func nameless(t *testing.T, bytes int) (memory, disk *os.File, inMemory, onDisk int64) {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal("make a file in memory:", err)
	}
	memory = os.NewFile(uintptr(fd), "memory")
	disk, err = os.CreateTemp(t.TempDir(), "")
	if err == nil {
		err = os.Remove(disk.Name())
	}
	if err != nil {
		t.Fatal(err)
	}
	sizes := make([]int64, 2)
	for i, f := range []*os.File{memory, disk} {
		t.Cleanup(func() { f.Close() })
		if _, err := f.Write(make([]byte, bytes)); err != nil {
			t.Fatal(err)
		}
		_ = f.Sync()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		sizes[i] = diskUse(info)
	}
	if min(sizes[0], sizes[1]) < int64(bytes) {
		t.Fatalf("files of %d bytes take %v", bytes, sizes)
	}
	return memory, disk, sizes[0], sizes[1]
}

// Files without a name count once, however many processes hold them; those with a name,
// and what is no file, are found elsewhere or take nothing.
func TestNamelessFilesCountOnce(t *testing.T) {
	t.Parallel()
	memory, disk, inMemory, onDisk := nameless(t, 3<<20)
	named, err := os.Create(filepath.Join(t.TempDir(), "named"))
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	if _, err := named.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	cmd := still(t, 3, three, memory, named, disk, memory)
	all := append(descendants(cmd.Process.Pid), member{cmd.Process.Pid})
	all = append(all, member{pid: -1}) // one that has ended meanwhile
	gotDisk, gotMemory := namelessUse(all)
	if len(all) != 4 || gotDisk != onDisk || gotMemory != inMemory {
		t.Errorf("%d processes hold %d bytes on disk and %d in memory, want %d and %d",
			len(all), gotDisk, gotMemory, onDisk, inMemory)
	}
	anonymous := sumFields(all, "status", "RssAnon:")
	if got, want := ownMemory(all), inMemory+anonymous; got != want || anonymous <= 0 {
		t.Errorf("the memory of a kernel of its own is %d, want %d: %d in a file and %d anonymous",
			got, want, inMemory, anonymous)
	}
}

// The sums become more exact, and smaller, the less there is to spare: what a process shares
// with its child counts twice until it must be told.
func TestTreeMemoryIsAsExactAsItMustBe(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	cmd := still(t, 2, fmt.Sprintf(
		`x=$(head -c %d /dev/zero | tr '\0' x); (echo 1; read y <&3; true) & echo 1; read y <&3; true`,
		size))
	all := append(descendants(cmd.Process.Pid), member{cmd.Process.Pid})
	exact := sumFields(all, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:")
	anonymous := sumFields(all, "status", "RssAnon:", "RssShmem:")
	mapped := sumFields(all, "status", "VmRSS:")
	if exact < size || anonymous < exact+size/2 || mapped <= anonymous || mapped > 16*size {
		t.Fatalf("exact %d, anonymous %d, mapped %d bytes, with %d shared by two",
			exact, anonymous, mapped, size)
	}
	all = append(all, member{pid: -1}) // one that has ended meanwhile
	if got := sumResident(all); got != mapped {
		t.Errorf("resident are %d bytes, want %d", got, mapped)
	}
	for enough, want := range map[int64]int64{
		mapped: mapped, mapped - 1: anonymous, anonymous: anonymous, anonymous - 1: exact, 0: exact,
	} {
		if got := treeMemory(all, enough); got != want {
			t.Errorf("if %d is enough the memory is %d, want %d", enough, got, want)
		}
	}
}

// A tree is stopped with all that is below it, and goes on with all of it.
func TestFreezingATreeBySignals(t *testing.T) {
	t.Parallel()
	cmd := still(t, 3, three)
	pid := cmd.Process.Pid
	all := append(descendants(pid), member{pid})
	for range 2 { // also when it has been stopped already
		if err := freezeTree(pid, ""); err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			if threads, _ := m.running(); len(threads) > 0 {
				t.Errorf("process %d of %v runs", m.pid, all)
			}
			awaitState(t, m.pid, "T")
		}
	}
	if !starved(all) {
		t.Error("what stands is said to run")
	}
	if err := resumeTree(pid, "", false); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		awaitState(t, m.pid, "S")
		if threads, sleeping := m.running(); !slices.Equal(threads, []int{m.pid}) || sleeping {
			t.Errorf("process %d has %v running, in the kernel: %v", m.pid, threads, sleeping)
		}
	}
	killTree(pid, "")
	for _, m := range all[:len(all)-1] {
		awaitState(t, m.pid, "ZX")
	}
	awaitState(t, pid, "S") // it is left to wait for them
}

// group is a directory that looks like a group of version 2, as far as it is read and written.
func group(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func told(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const usage = "usage_usec 1234567\nuser_usec 7\nsystem_usec 8\n"

func stat(text string) map[string]string { return map[string]string{"cpu.stat": text} }

// Where there is a group it is told, and no process is touched; what the group does not do
// is done by signals.
func TestFreezingATreeByItsGroup(t *testing.T) {
	t.Parallel()
	cmd := still(t, 1, `echo 1; read x <&3; true`)
	pid := cmd.Process.Pid
	for name, c := range map[string]struct {
		files map[string]string
		state string
	}{
		"freezes": {map[string]string{"cgroup.events": "populated 1\nfrozen 1\n"}, "S"},
		"waits for its turn": {
			map[string]string{"cgroup.events": "frozen 0\n", "cpu.stat": usage}, "S",
		},
		"tells nothing":        {nil, "T"},
		"runs, one cannot say": {map[string]string{"cgroup.events": "frozen 0\n"}, "T"},
	} {
		dir := group(t, c.files)
		door := filepath.Join(dir, "cgroup.freeze")
		if err := os.WriteFile(door, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := freezeTree(pid, dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		awaitState(t, pid, c.state)
		if got := told(t, dir, "cgroup.freeze"); got != "1" {
			t.Errorf("%s: the group was told %q, want 1", name, got)
		}
		if err := resumeTree(pid, dir, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		awaitState(t, pid, "S")
		if got := told(t, dir, "cgroup.freeze"); got != "0" {
			t.Errorf("%s: the group was told %q, want 0", name, got)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	if err := resumeTree(pid, none, false); err == nil {
		t.Error("a group that is not there goes on")
	}
	if err := freezeTree(pid, none); err != nil {
		t.Error(err)
	}
	awaitState(t, pid, "T")
	dir := group(t, map[string]string{"cgroup.freeze": "1"})
	killTree(pid, dir) // there is nothing below it
	awaitState(t, pid, "Z")
	if got := told(t, dir, "cgroup.freeze"); got != "0" {
		t.Errorf("a frozen group that is killed was told %q, want 0", got)
	}
}

// Processor time is that of the group where it is known, else of each process of the tree.
func TestProcessorTimeOfATree(t *testing.T) {
	t.Parallel()
	const work = `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo 1; read x <&3; true`
	cmd := still(t, 2, `(`+work+`) & `+work)
	pid := cmd.Process.Pid
	root, ok := processTime(pid)
	below := descendants(pid)
	if len(below) != 1 || !ok {
		t.Fatalf("below are %v, %v", below, ok)
	}
	more, ok := processTime(below[0].pid)
	if !ok || min(root, more) < clockTick {
		t.Fatalf("used %s and %s, %v; want some of both", root, more, ok)
	}
	for name, c := range map[string]struct {
		spec Spec
		want time.Duration
	}{
		"tree": {Spec{Tree: true}, root + more},
		"group": {
			Spec{Tree: true, FreezeDir: group(t, stat(usage))},
			1234567 * time.Microsecond,
		},
		"none":    {Spec{Tree: true, FreezeDir: group(t, nil)}, root + more},
		"another": {Spec{Tree: true, FreezeDir: group(t, stat("usage_usecs 1\n"))}, root + more},
		"garbage": {Spec{Tree: true, FreezeDir: group(t, stat("usage_usec x\n"))}, root + more},
	} {
		if got, ok := c.spec.runnerTime(pid); !ok || got != c.want {
			t.Errorf("%s: used %s, %v, want %s", name, got, ok, c.want)
		}
	}
	// A clock is exact, and counts the first process alone, whatever its group has used.
	for name, spec := range map[string]Spec{
		"one process": {}, "no tree": {FreezeDir: group(t, stat(usage))},
	} {
		got, ok := spec.runnerTime(pid)
		if off := (got - root).Abs(); !ok || off >= timeFields*clockTick {
			t.Errorf("%s: used %s, %v, want about %s", name, got, ok, root)
		}
	}
	for _, gone := range []int{-1, 0} {
		for _, tree := range []bool{false, true} {
			if got, ok := (&Spec{Tree: tree}).runnerTime(gone); ok || got != 0 {
				t.Errorf("what is gone used %s", got)
			}
		}
	}
	fields := strings.Fields("S 1 100 100 100 100 100 100 100 100 100 1 20 300 4000 90000 90000")
	if got := fieldsTime(fields); got != 4321*clockTick {
		t.Errorf("4321 ticks are %s", got)
	}
	p := &process{child: &child{cmd: cmd, used: root / 2}, spec: Spec{Tree: true}}
	if got, ok := p.CPUTime(); !ok || got != root-root/2 {
		t.Errorf("before its runner is known an attempt used %s, %v, want %s", got, ok, root-root/2)
	}
	p.runner.Store(int64(below[0].pid))
	if got, ok := p.CPUTime(); !ok || got != root-root/2+more {
		t.Errorf("an attempt used %s, %v, want %s", got, ok, root-root/2+more)
	}
	p.child.used = root + time.Hour
	if got, ok := p.CPUTime(); !ok || got != more {
		t.Errorf("an attempt used %s, %v, want %s", got, ok, more)
	}
	p.runner.Store(1 << 30) // gone
	if got, ok := p.CPUTime(); !ok || got != 0 {
		t.Errorf("an attempt used %s, %v, want nothing", got, ok)
	}
}

// A sandbox that does not end by the death of its program is killed after a while.
func TestASandboxThatOutlivesItsProgram(t *testing.T) {
	t.Parallel()
	cmd := still(t, 3, three)
	below := descendants(cmd.Process.Pid)
	r := &runner{cmd: cmd, spec: Spec{Tree: true}, gone: make(chan struct{})}
	r.kill()
	for _, m := range below {
		awaitState(t, m.pid, "ZX")
	}
	awaitState(t, cmd.Process.Pid, "ZX")
}

// Those that run are stopped and told of, each once: what has stopped is not found again.
func TestWhoIsStoppedIsNotFoundAgain(t *testing.T) {
	t.Parallel()
	root := still(t, 3, three).Process.Pid
	running, _ := stopRunning(root)
	if len(running) != 2 {
		t.Errorf("%v were running, want the two below the first", running)
	}
	for _, m := range running {
		awaitState(t, m.pid, "T")
	}
	if again, sleeping := stopRunning(root); len(again) != 0 || sleeping != 0 {
		t.Errorf("%v are still running, %d of them asleep", again, sleeping)
	}
}

// Processes that use no time are starved, and one among them that does is found sooner or later.
func TestWhoIsStarved(t *testing.T) {
	t.Parallel()
	below := descendants(still(t, 3, three).Process.Pid)
	if len(below) != 2 || !starved(below) || !starved(nil) {
		t.Errorf("%v use time", below)
	}
	busy := exec.Command("/bin/sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Wait() }()
	defer func() { _ = busy.Process.Kill() }()
	deadline := time.Now().Add(30 * time.Second)
	for starved(append(below, member{busy.Process.Pid})) {
		if time.Now().After(deadline) {
			t.Fatal("who runs all the time counts as starved")
		}
	}
}

// Who is called off in the midst of recovering kills nobody.
func TestRecoveringIsCalledOff(t *testing.T) {
	t.Parallel()
	cmd := still(t, 1, `echo 1; read x <&3; true`)
	_, start, ok := procStat(cmd.Process.Pid)
	if !ok {
		t.Fatal("the process is gone")
	}
	path := filepath.Join(t.TempDir(), "record")
	id := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 1}
	recorder, err := lrm.OpenRecorder(path, id)
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	supervisor := lrm.Identity{PID: cmd.Process.Pid, Boot: bootID(), Start: start}
	err = recorder.Append(lrm.Record{Event: lrm.RecordStarted, Supervisor: supervisor})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Recover(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was called off", err)
	}
	if !alive(supervisor) {
		t.Error("the supervisor was killed")
	}
}

// What a kernel of its own traces is not told to go on: a stop that it waits for is still to come.
func TestWhatIsTracedIsLeftToItsTracer(t *testing.T) {
	t.Parallel()
	if err := CanTrace(); err != nil {
		t.Skip("the system lets this process trace no other: ", err)
	}
	const stop, goOn = 1 << (unix.SIGSTOP - 1), 1 << (unix.SIGCONT - 1)
	cmd := still(t, 2, `setsid sh -c 'echo 1; read x <&3' & echo 1; read x <&3; true`)
	traced := descendants(cmd.Process.Pid)[0]
	runtime.LockOSThread() // who traces is a thread
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(traced.pid); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.PtraceDetach(traced.pid) }()
	awaitState(t, traced.pid, "t")
	for _, c := range []struct {
		ownKernel     bool
		pending, lost uint64
	}{{true, stop, goOn}, {false, goOn, stop}} {
		if err := unix.Kill(traced.pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := resumeTree(cmd.Process.Pid, "", c.ownKernel); err != nil {
			t.Fatal(err)
		}
		if got := pending(t, traced.pid); got&c.pending == 0 || got&c.lost != 0 {
			t.Errorf("own kernel %v: signals %#x are pending", c.ownKernel, got)
		}
	}
}

// pending are the signals that a process is still to get, as bits.
func pending(t *testing.T, pid int) uint64 {
	t.Helper()
	_, after, _ := strings.Cut(content(t, fmt.Sprintf("/proc/%d/status", pid)), "\nShdPnd:\t")
	line, _, _ := strings.Cut(after, "\n")
	set, err := strconv.ParseUint(line, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
