//go:build unix

package scripttest

import (
	"os"
	"syscall"
)

func signalsByName() map[string]os.Signal {
	return map[string]os.Signal{
		"HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}
}
