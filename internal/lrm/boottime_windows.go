package lrm

import "golang.org/x/sys/windows"

// Continuous says that BootNow goes on while the machine is suspended, and that nobody sets it.
const Continuous = true

// BootNow reads the clock of BootTime, which is exact to about 16 ms.
func BootNow() BootTime { return BootTime(windows.DurationSinceBoot()) }
