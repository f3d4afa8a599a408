package supervise

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	userField   = 11                    // of statFields: utime; stime, cutime and cstime follow
	timeFields  = 4                     // of them
	clockTick   = 10 * time.Millisecond // of the times in /proc: USER_HZ is 100 on all of Linux
	usageOfTree = "usage_usec"          // in cpu.stat
)

// processTime is the processor time that a process has used, and those of its
// children that it has waited for.
func processTime(pid int) (time.Duration, bool) {
	fields, ok := statFields(pid)
	if !ok {
		return 0, false
	}
	return fieldsTime(fields), true
}

func fieldsTime(fields []string) time.Duration {
	var ticks int64
	for _, f := range fields[userField : userField+timeFields] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err == nil {
			ticks += n
		}
	}
	return time.Duration(ticks) * clockTick
}

// runnerTime is the processor time that a runner of this spec has used, with all
// that it has started.
func (s *Spec) runnerTime(pid int) (time.Duration, bool) {
	if s.Tree && s.FreezeDir != "" {
		if used, ok := groupTime(s.FreezeDir); ok {
			return used, true
		}
	}
	if !s.Tree {
		return clockTime(pid)
	}
	used, ok := processTime(pid)
	if !ok {
		return 0, false
	}
	for _, m := range nearby(pid) {
		if more, known := processTime(m.pid); known {
			used += more
		}
	}
	return used, true
}

// clockTime is the processor time that one process has used, its children's left out. A meter asks
// for it many times a second, and a file of /proc would cost more than some programs do.
func clockTime(pid int) (time.Duration, bool) {
	if pid <= 0 {
		return 0, false
	}
	const ofAProcess = 2 // CPUCLOCK_SCHED; so does clock_getcpuclockid(3) make it
	var used unix.Timespec
	clock := int32(^pid<<3 | ofAProcess) // a PID has 22 bits at most
	if err := unix.ClockGettime(clock, &used); err != nil {
		return 0, false
	}
	return time.Duration(used.Nano()), true
}

// groupTime is the processor time that a group of version 2 has used.
func groupTime(dir string) (time.Duration, bool) {
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, usageOfTree+" "); is {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(n) * time.Microsecond, err == nil
		}
	}
	return 0, false
}
