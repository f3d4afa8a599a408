//go:build !linux && !darwin && !windows

package lrm

import "time"

// Continuous says that BootNow goes on while the machine is suspended, and that nobody sets it.
const Continuous = false

// BootNow reads the clock of BootTime. Agent and supervisor need a common zero
// and Go offers none for its monotonic clock, so it is the wall clock here: a
// step of the clock moves leases.
func BootNow() BootTime { return BootTime(time.Now().UnixNano()) }
