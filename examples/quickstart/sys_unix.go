//go:build unix

package main

import (
	"os"
	"syscall"
)

// supported says why the mesh cannot run here, or nothing.
func supported() error { return nil }

func interruptGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGINT) }

func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
