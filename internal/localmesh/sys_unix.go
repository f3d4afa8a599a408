//go:build unix

package localmesh

import (
	"os"
	"syscall"
)

// supported says why the mesh cannot run here, or nothing.
func supported() error { return nil }

func interruptGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGINT) }

// Suspend stops a process until Resume.
func Suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a process go on.
func Resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
