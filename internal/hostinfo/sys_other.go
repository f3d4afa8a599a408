//go:build !linux

package hostinfo

import (
	"os"
	"time"
)

// threadTime is unknown on this system.
func threadTime() (time.Duration, bool) { return 0, false }

// forget does nothing on this system.
func forget(*os.File) bool { return false }
