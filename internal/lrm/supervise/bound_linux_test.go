package supervise_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// shell is the enclosure of a shell's script.
func shell(script string) *supervise.Enclosure {
	return &supervise.Enclosure{Program: "/bin/sh", Args: []string{"-c", script}}
}

// canTrace skips the test where no process can be bounded before its first step: where this
// process cannot trace a child either.
func canTrace(t *testing.T) {
	t.Helper()
	s := spec(t, "exit", "9")
	s.Enclosure = shell("exit 4")
	if got := end(t, s); got.Code != 9 {
		return
	}
	if err := supervise.CanTrace(); err != nil {
		t.Skip("this kernel, or a container, lets no process trace its child:", err)
	}
	t.Fatal("a child can be traced here, and yet the runner was started in place of its program")
}

// A program that cannot be bounded does not run: the runner gets its enclosure, and is to
// find the fault.
func TestNothingRunsUnbounded(t *testing.T) {
	t.Parallel()
	canTrace(t)
	for name, spoil := range map[string]func(*supervise.Enclosure){
		"no such group":    func(e *supervise.Enclosure) { e.Join = []string{e.Program + "/none"} },
		"no such resource": func(e *supervise.Enclosure) { e.Rlimits = map[int]uint64{99: 1} },
		"no status":        func(e *supervise.Enclosure) { e.StatusPath = filepath.Dir(e.Program) },
	} {
		s := spec(t, "cat")
		s.Limits.WallTime = 20 * time.Second
		s.Enclosure = shell("echo ran")
		spoil(s.Enclosure)
		got := end(t, s)
		out, err := os.ReadFile(s.Stdout)
		if err != nil || got.Cause != grid.CauseExited || got.Code != 0 ||
			!strings.HasPrefix(string(out), `{"Program":"/bin/sh"`) {
			t.Errorf("%s: ending = %+v, output = %q, %v", name, got, out, err)
		}
	}
}

// The program has the descriptors that it is promised, each behind its number, and no other.
func TestDescriptorsOfAnEnclosure(t *testing.T) {
	t.Parallel()
	canTrace(t)
	const which = `for i in 3 4 5 6; do [ -e /proc/self/fd/$i ] && echo $i; done; cat <&4; echo $0`
	for name, c := range map[string]struct {
		status bool
		filter string
		want   string
	}{
		"nothing": {false, "", "sh\n"},
		"status":  {true, "", "3\nsh\n"},
		"filter":  {false, "f\n", "4\nf\nsh\n"},
		"both":    {true, "f\n", "3\n4\nf\nsh\n"},
	} {
		s := spec(t, "exit", "9")
		s.Enclosure = shell(which)
		s.Enclosure.Filter = []byte(c.filter)
		if c.status {
			s.Enclosure.StatusPath = filepath.Join(s.Dir, "status")
		}
		got := end(t, s)
		out, err := os.ReadFile(s.Stdout)
		if err != nil || string(out) != c.want {
			t.Errorf("%s: ending = %+v, output = %q, %v, want %q", name, got, out, err, c.want)
		}
	}
}

// statField is a field of /proc/PID/stat, counted from 1 as in proc(5).
func statField(t *testing.T, pid, number int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(text), ") ")
	n, err := strconv.Atoi(strings.Fields(behind)[number-3])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever runs yields to all others: processors, disk and, when it is short, memory; it
// leads a session of its own and has joined its groups before it begins.
func TestWhatRunsComesLast(t *testing.T) {
	t.Parallel()
	canTrace(t)
	for name, c := range map[string]struct {
		idle, enclosed bool
		nice, policy   int
	}{
		"a runner":         {false, false, 10, 0},
		"an idle runner":   {true, false, 19, 5},
		"a sandbox":        {false, true, 10, 0},
		"a sandbox, idle ": {true, true, 19, 5},
	} {
		s := spec(t, "sleep")
		s.Idle = c.idle
		doors := []string{filepath.Join(s.Dir, "door"), filepath.Join(s.Dir, "another")}
		for _, door := range doors {
			if err := os.WriteFile(door, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if c.enclosed {
			s.Enclosure = shell("sleep 1000")
			s.Enclosure.Join = doors
		}
		b := startByHand(t)
		b.order(s)
		pid := b.hearEvent(lrm.Started).PID
		// The kernel gives 20 - nice. What this test has itself, the runner has at least.
		own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := statField(t, pid, 19), max(c.nice, 20-own); got != want {
			t.Errorf("%s: nice is %d, want %d", name, got, want)
		}
		if got := statField(t, pid, 41); got != c.policy {
			t.Errorf("%s: policy is %d, want %d", name, got, c.policy)
		}
		if got := statField(t, pid, 6); got != pid {
			t.Errorf("%s: session is %d, want %d", name, got, pid)
		}
		io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
		if errno == 0 && io>>13 != 3 {
			t.Errorf("%s: the disk has class %d for it, want 3", name, io>>13)
		}
		if got, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid)); err != nil ||
			string(got) != "1000\n" {
			t.Errorf("%s: memory is taken from it at %q, %v, want 1000", name, got, err)
		}
		if got, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid)); err == nil &&
			supervise.LowersAll() && !strings.HasSuffix(string(got), fmt.Sprintf("nice %d\n", c.nice)) {
			t.Errorf("%s: its session is %q, want nice %d", name, got, c.nice)
		}
		if low := lowThreads(t, b.cmd.Process.Pid, 20-own); low > 0 {
			t.Errorf("%s: %d threads of its supervisor have a low priority", name, low)
		}
		for _, door := range doors {
			if got, err := os.ReadFile(door); err != nil || c.enclosed && string(got) != strconv.Itoa(pid) {
				t.Errorf("%s: behind %s is %q, %v, want %d", name, door, got, err, pid)
			}
		}
		b.say(s.Attempt, "stop", "done")
		b.hearEnd()
	}
}

// lowThreads counts the threads of a process whose nice value is above this one. A parent that
// waits spins in the kernel while a thread that has ended, and was looked at as here, is cleared
// from /proc by itself, which takes seconds where its priority is low and the machine busy.
func lowThreads(t *testing.T, pid, nice int) (low int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatal("a supervisor without threads", err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		_, behind, _ := strings.Cut(string(text), ") ")
		if got, err := strconv.Atoi(strings.Fields(behind)[19-3]); err != nil || got > nice {
			low++
		}
	}
	return low
}

// orphans is a spec whose runner leaves its group with a process that says which it is.
func orphans(t *testing.T, then string) (supervise.Spec, func() int) {
	t.Helper()
	s := spec(t)
	s.Tree = true
	left := filepath.Join(s.Dir, "left")
	s.Runner = []string{
		"/bin/sh", "-c",
		fmt.Sprintf(`%[3]s __runner leave %[1]s & while ! [ -s %[1]s ]; do :; done; %[2]s`,
			left, then, self(t)),
	}
	s.Env = []string{"PATH=/usr/bin:/bin"}
	return s, func() int {
		t.Helper()
		until(t, func() bool { return toldPID(t, left) != 0 })
		return toldPID(t, left)
	}
}

// What leaves the group stands, goes on and ends with it.
func TestATreeIsHeldWhole(t *testing.T) {
	t.Parallel()
	s, left := orphans(t, "wait")
	b := startByHand(t)
	b.order(s)
	b.hearEvent(lrm.Started)
	pid := left()
	stands := func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(text), ") T ")
	}
	b.say(s.Attempt, "suspend", true)
	b.hearEvent(lrm.Frozen)
	if !stands() {
		t.Error("it does not stand")
	}
	b.say(s.Attempt, "suspend", false)
	b.hearEvent(lrm.Resumed)
	until(t, func() bool { return !stands() })
	b.say(s.Attempt, "stop", "done")
	if end := b.hearEnd(); end.Exited.Cause != grid.CauseStopped || !end.Again {
		t.Errorf("end = %+v", end)
	}
	if runs(pid) {
		t.Error("it outlived its attempt")
	}
}

// What a program leaves behind ends with it, and its supervisor may take another attempt.
func TestWhatATreeLeavesIsEnded(t *testing.T) {
	t.Parallel()
	s, left := orphans(t, "exit 3")
	b := startByHand(t)
	b.order(s)
	b.hearEvent(lrm.Started)
	if end := b.hearEnd(); end.Exited.Code != 3 || !end.Again {
		t.Errorf("end = %+v", end)
	}
	if pid := left(); runs(pid) {
		t.Errorf("process %d outlived its attempt", pid)
	}
}

// Who takes more than its tree may have is ended, and told of what.
func TestATreeThatTakesTooMuch(t *testing.T) {
	t.Parallel()
	for want, limit := range map[grid.ExitCause]func(*supervise.Spec){
		grid.CauseBadWork: func(s *supervise.Spec) { s.Processes = 1 },
		grid.CauseMemory:  func(s *supervise.Spec) { s.WatchMemory, s.Limits.MemoryBytes = true, 1<<16 },
	} {
		s := spec(t)
		s.Tree = true
		s.Runner = []string{"/bin/sh", "-c", "sleep 1000 & sleep 1000 & wait"}
		s.Env = []string{"PATH=/usr/bin:/bin"}
		limit(&s)
		if got := end(t, s); got.Cause != want {
			t.Errorf("ending = %+v, want %v", got, want)
		}
	}
}

// A runner whose spec names no environment has none, and reads what its spec says.
func TestARunnersWorld(t *testing.T) {
	t.Parallel()
	s := spec(t, "env")
	end(t, s)
	if text, err := os.ReadFile(s.Stdout); err != nil || string(text) != "[]\n" {
		t.Errorf("environment = %q, %v", text, err)
	}
	s = spec(t, "cat")
	s.Stdin = []byte("its input")
	end(t, s)
	if text, err := os.ReadFile(s.Stdout); err != nil || string(text) != "its input" {
		t.Errorf("input = %q, %v", text, err)
	}
}

// Where a supervisor lacks descriptors, at whatever moment, an attempt ends as it should or
// says that the sandbox failed; the supervisor does not die of it.
func TestASupervisorWithoutDescriptors(t *testing.T) {
	t.Parallel()
	whole := 0
	for most := uint64(4); whole < 3 && most < 60; most++ {
		s := spec(t, "exit", "9")
		if most%2 == 0 {
			if s.Enclosure = shell("exit 9"); most%4 == 0 {
				s.Enclosure = gated("exit 9")
			}
			s.Enclosure.StatusPath, s.Enclosure.Filter = filepath.Join(s.Dir, "status"), []byte("f")
		}
		b := startByHand(t)
		b.order(next(t, 2, "exit", "0")) // first all that it needs once is there
		b.hearEvent(lrm.Started)
		b.hearEnd()
		if err := unix.Prlimit(
			b.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}, nil,
		); err != nil {
			t.Fatal("limit the supervisor:", err)
		}
		b.order(s)
		h := b.hear()
		if h.Event == lrm.Started {
			h = b.hearEnd()
		}
		switch {
		case h.Exited == nil:
			t.Errorf("%d: heard %+v", most, h)
		case h.Exited.Cause == grid.CauseExited && h.Exited.Code == 9:
			whole++
		case h.Exited.Cause != grid.CauseSandbox || h.Exited.Text == "":
			t.Errorf("%d: ending = %+v", most, h.Exited)
		default:
			whole = 0
		}
	}
	if whole == 0 {
		t.Error("no number of descriptors was enough")
	}
}

// A record that cannot be written any more keeps nobody from freezing and stopping, and the
// log says so.
func TestARecordThatIsFull(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	s := next(t, 2, "sleep")
	earlier, err := lrm.OpenRecorder(s.RecordPath, next(t, 1).Attempt)
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	for range 20 { // so that the log has space below the same limit
		if err = earlier.Append(lrm.Record{Event: lrm.RecordEnded}); err != nil {
			t.Fatal(err)
		}
	}
	b.order(s)
	b.hearEvent(lrm.Started)
	info, err := os.Stat(s.RecordPath)
	if err != nil {
		t.Fatal(err)
	}
	full := unix.Rlimit{Cur: uint64(info.Size()), Max: uint64(info.Size())}
	if err := unix.Prlimit(b.cmd.Process.Pid, unix.RLIMIT_FSIZE, &full, nil); err != nil {
		t.Fatal("limit the supervisor:", err)
	}
	log := func() int {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(s.Dir, "supervisor.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "supervisor: ")
	}
	b.say(s.Attempt, "suspend", true)
	b.hearEvent(lrm.Frozen)
	if n := log(); n != 1 {
		t.Errorf("the log has %d lines after a pause that was not recorded", n)
	}
	b.say(s.Attempt, "stop", "done")
	if end := b.hearEnd(); end.Exited.Cause != grid.CauseStopped {
		t.Errorf("end = %+v", end.Exited)
	}
	if n := log(); n != 2 {
		t.Errorf("the log has %d lines after an end that was not recorded", n)
	}
}

// Without its start in the record nothing runs: two attempts could not be told apart.
func TestARecordThatTakesNoStart(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	b.order(next(t, 1, "exit", "0")) // first all that it needs once is there
	b.hearEvent(lrm.Started)
	b.hearEnd()
	if err := unix.Prlimit(
		b.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: 1}, nil,
	); err != nil {
		t.Fatal("limit the supervisor:", err)
	}
	b.order(next(t, 2, "exit", "0"))
	end := b.hearEnd()
	if end.Exited.Cause != grid.CauseSandbox || !strings.Contains(end.Exited.Text, "run record") {
		t.Errorf("end = %+v, want that the record cannot be written", end.Exited)
	}
}

// What a runner says of its preparations is told as it says it, before and after.
func TestPreparationsAreTold(t *testing.T) {
	t.Parallel()
	b := startByHand(t)
	s := next(t, 1)
	s.Runner = []string{"/bin/sh", "-c", `echo '{"preparing":true}' >&3; read x < first; ` +
		`echo '{"preparing":false}' >&3; read x < second`}
	for _, name := range []string{"first", "second"} { // each is opened once at each end
		if err := unix.Mkfifo(filepath.Join(s.Dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goOn := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte("\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
	b.order(s)
	b.hearEvent(lrm.Started)
	b.hearEvent(lrm.Preparing)
	goOn("first")
	b.hearEvent(lrm.Prepared)
	goOn("second")
	if end := b.hearEnd(); end.Exited.Cause != grid.CauseExited || end.Exited.Code != 0 {
		t.Errorf("end = %+v", end.Exited)
	}
}
