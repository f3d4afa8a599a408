package lrm

import (
	"time"

	"golang.org/x/sys/unix"
)

// Continuous says that BootNow goes on while the machine is suspended, and that nobody sets it.
const Continuous = true

// BootNow reads the clock of BootTime: mach_continuous_time, by its POSIX name.
func BootNow() BootTime {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts); err != nil {
		return BootTime(time.Now().UnixNano()) // never on macOS >= 10.12
	}
	return BootTime(ts.Nano())
}
