//go:build !linux

package lrm

import "time"

// BootNow reads the clock of BootTime. Agent and supervisor need a common zero
// and Go offers none for its monotonic clock, so it is the wall clock here: a
// step of the clock moves leases.
func BootNow() BootTime { return BootTime(time.Now().UnixNano()) }
