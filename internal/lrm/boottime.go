package lrm

import "time"

// BootTime is a moment in nanoseconds since the machine booted, time of suspend
// included (CLOCK_BOOTTIME on Linux, mach_continuous_time on macOS, GetTickCount64 on
// Windows), and elsewhere, where Continuous is false, by the wall clock. Agent and
// supervisor read the same clock, so that a lease means the same to both and
// ends during a suspend too. It means nothing on another machine.
type BootTime int64

// Add is the moment d later.
func (t BootTime) Add(d time.Duration) BootTime { return t + BootTime(d) }

// Sub is the time from u to t.
func (t BootTime) Sub(u BootTime) time.Duration { return time.Duration(t - u) }
