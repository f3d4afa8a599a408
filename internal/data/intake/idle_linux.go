package intake

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	lastNice   = 19
	schedIdle  = 5       // SCHED_IDLE: the processor when nobody else wants it
	idleIO     = 3 << 13 // IOPRIO_CLASS_IDLE: the disk likewise
	whoProcess = 1       // IOPRIO_WHO_PROCESS
)

// Command lets an executable start itself as the process of an intake.
func Command(executable string) []string { return []string{executable, Arg} }

// apart gives the process a session of its own, where no signal of a terminal reaches it, and has
// the kernel kill it when the thread ends that starts it.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// lower gives this process the lowest priority. Priorities belong to threads, and there are
// several already, so the program begins anew from the one that has it: all others descend from
// that. It returns when it could not.
func lower() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Where the kernel shares the processors out among sessions, nice values count within one.
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(lastNice)), 0)
	err := errors.Join(unix.Setpriority(unix.PRIO_PROCESS, 0, lastNice), setIdle())
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, 0, idleIO)
	return errors.Join(err, unix.Exec(
		"/proc/self/exe", []string{os.Args[0], Arg, lowered}, os.Environ(),
	))
}

// setIdle gives the calling thread the policy SCHED_IDLE.
func setIdle() error {
	err := unix.SchedSetAttr(
		0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedIdle, Nice: lastNice}, 0,
	)
	if err == nil {
		return nil
	}
	// the older call, where a service manager forbids the newer
	var priority int32
	//nolint:gosec // as the call wants it
	_, _, errno := unix.Syscall(
		unix.SYS_SCHED_SETSCHEDULER, 0, schedIdle, uintptr(unsafe.Pointer(&priority)),
	)
	if errno != 0 {
		return errno
	}
	return nil
}

// beginSync has the system begin to write a file to the disk, in this process's class, so that
// little is left of that when the agent makes the file durable.
func beginSync(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
