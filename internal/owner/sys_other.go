//go:build !linux

package owner

import (
	"syscall"
	"time"
)

func processorTime() time.Duration { return 0 }

// SelfTime is unknown on this system.
func SelfTime() (time.Duration, bool) { return 0, false }

// BePolite does nothing on this system.
func BePolite() {}

func lastOnDisk(int) {}

func endWithParent(*syscall.SysProcAttr) {}
