package supervise

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

const (
	lowNice    = 10      // a small share
	idleNice   = 19      // with SCHED_IDLE: only what nobody else wants
	schedIdle  = 5       // SCHED_IDLE
	idleIO     = 3 << 13 // IOPRIO_CLASS_IDLE: the disk when nobody else wants it
	whoProcess = 1       // IOPRIO_WHO_PROCESS
	freezeWait = 100 * time.Millisecond
)

// asLeader makes the command the leader of a session and group that dies with the
// thread that starts it. The session is its own because the kernel may share the
// processors out among sessions, and the supervisor must not wait for its turn.
func asLeader(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

func niceOf(idle bool) int {
	if idle {
		return idleNice
	}
	return lowNice
}

// lowerSession gives the session of a process the low priority that its threads
// have: where the kernel shares out among sessions, nice values count only within
// one. Best effort.
func lowerSession(pid int, idle bool) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(niceOf(idle))), 0)
}

// lowerPriority lowers the priority of a thread, 0 for the calling one, and so of what it
// starts. Best effort: the owner's machine still works without it.
func lowerPriority(thread int, idle bool) {
	if raw, err := unix.Getpriority(unix.PRIO_PROCESS, thread); err == nil &&
		20-raw < niceOf(idle) {
		_ = unix.Setpriority(unix.PRIO_PROCESS, thread, niceOf(idle))
	}
	if idle {
		attr := &unix.SchedAttr{
			Size: unix.SizeofSchedAttr, Policy: schedIdle, Nice: idleNice,
		}
		if unix.SchedSetAttr(thread, attr, 0) != nil {
			// the older call, where a service manager forbids the newer
			var priority int32
			//nolint:gosec // as the call wants it
			_, _, _ = unix.Syscall(
				unix.SYS_SCHED_SETSCHEDULER, uintptr(thread), schedIdle,
				uintptr(unsafe.Pointer(&priority)),
			)
		}
	}
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, uintptr(thread), idleIO)
}

// lowerThreads lowers the priority of all threads of a process. One that was listed is low before
// the next list is made, and so is whatever it starts from then on: when a list has nothing new, no
// other thread is left.
func lowerThreads(pid int, idle bool) {
	low := make(map[string]bool)
	for before := -1; before < len(low); {
		before = len(low)
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return // it has ended
		}
		for _, t := range threads {
			if id, err := strconv.Atoi(t.Name()); err == nil && !low[t.Name()] {
				low[t.Name()] = true
				lowerPriority(id, idle)
			}
		}
	}
}

// sacrificeFirst makes the process the first that the kernel kills when the
// machine runs out of memory. Best effort.
func sacrificeFirst(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
}

// freezeGroup stops the group and waits until its leader has stopped, so that
// what is recorded as frozen does not run any more.
func freezeGroup(leader int) error {
	if err := signalGroup(leader, unix.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(freezeWait)
	for time.Now().Before(deadline) {
		state, _, ok := procStat(leader)
		if !ok || strings.ContainsRune("TtZX", rune(state)) {
			return nil
		}
		time.Sleep(200 * time.Microsecond)
	}
	return nil // in a system call that cannot be interrupted: it stops before its next step
}

// onlyZombie reports whether a group's leader has ended but was not reaped, as
// happens where the first process of a container does not care. Signals still
// reach a zombie.
func onlyZombie(leader int) bool {
	state, _, ok := procStat(leader)
	return ok && (state == 'Z' || state == 'X')
}

// ownIdentity is the identity of this process.
func ownIdentity() lrm.Identity {
	id := lrm.Identity{PID: os.Getpid(), Boot: bootID()}
	if _, start, ok := procStat(id.PID); ok {
		id.Start = start
	}
	return id
}

// alive reports whether the process is still there and no zombie.
func alive(id lrm.Identity) bool {
	if id.PID <= 0 || id.Boot != bootID() {
		return false
	}
	state, start, ok := procStat(id.PID)
	return ok && start == id.Start && state != 'Z' && state != 'X'
}

func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// procStat is the state letter and the start time, in clock ticks, of a process.
func procStat(pid int) (state byte, start uint64, ok bool) {
	fields, ok := statFields(pid)
	if !ok {
		return 0, 0, false
	}
	start, err := strconv.ParseUint(fields[startField], 10, 64)
	return fields[0][0], start, err == nil
}

const startField = 19 // of statFields; the 22nd of all

// statFields are the fields of /proc/PID/stat behind the name: the first is the
// state, the second the parent. The name in parentheses may hold anything.
func statFields(pid int) ([]string, bool) { return readStat(fmt.Sprintf("/proc/%d/stat", pid)) }

func readStat(name string) ([]string, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return fields, len(fields) > startField
}

// hasExited reports whether a child has ended, also before it is waited for.
func hasExited(pid int) bool {
	state, _, ok := procStat(pid)
	return !ok || state == 'Z' || state == 'X'
}
