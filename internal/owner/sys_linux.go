package owner

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is the processor time of the calling thread, to tell what looking
// costs. A goroutine that changes threads in between makes nonsense of one
// difference, which the caller leaves out when it is negative.
func processorTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// SelfTime is the processor time that this process has used, and its children
// that ended: with what lives of them it is all that the agent's work costs.
func SelfTime() (time.Duration, bool) {
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var use unix.Rusage
		if err := unix.Getrusage(who, &use); err != nil {
			return 0, false
		}
		total += time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	return total, true
}

const (
	ioprioProcess  = 1         // IOPRIO_WHO_PROCESS
	ioprioLastBest = 2<<13 | 7 // IOPRIO_CLASS_BE, the last of its eight levels
	maxThreads     = 1 << 10   // of the agent at its start
	ioprioGroup    = 2         // IOPRIO_WHO_PGRP
	ioprioIdle     = 3 << 13   // IOPRIO_CLASS_IDLE
)

// BePolite lets the disk serve all others before this process, for all of its
// threads; those made later inherit it. Jobs are served only when no other process
// wants the disk; the agent's own facts must get there. Best effort.
func BePolite() {
	for _, tid := range threads(maxThreads) {
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioProcess, uintptr(tid), ioprioLastBest)
	}
}

// threads are those of this process, at most so many.
func threads(most int) []int {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(most) // what it read counts
	var ids []int
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// lastOnDisk has the disk serve a process group when no other process wants it. Best effort.
func lastOnDisk(group int) {
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioGroup, uintptr(group), ioprioIdle)
}

// endWithParent has the kernel kill a process when the thread ends that started it.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
