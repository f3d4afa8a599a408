package lrm

import (
	"time"

	"golang.org/x/sys/unix"
)

// Continuous says that BootNow goes on while the machine is suspended, and that nobody sets it.
const Continuous = true

// BootNow reads the clock of BootTime.
func BootNow() BootTime {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return BootTime(time.Now().UnixNano()) // never on Linux >= 2.6.39
	}
	return BootTime(ts.Nano())
}
