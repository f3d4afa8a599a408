package hostinfo

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that the calling thread has had; false where
// the system does not tell.
func threadTime() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// forget makes the system drop what it keeps of a file in memory, so that the
// next reading comes from the disk; false where it may not have done that.
func forget(f *os.File) bool {
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) == nil
}
